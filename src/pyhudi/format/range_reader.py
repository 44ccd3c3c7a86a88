"""Random access to files for the format readers."""

from __future__ import annotations

import io
from typing import Any, Protocol, TypeAlias

from pyhudi.errors import FormatError

Source: TypeAlias = Any
"""Bytes, a memoryview, a `RangeReader`, a pyarrow file or any seekable binary file."""

_SPAN = 64 * 1024


class RangeReader(Protocol):
    """Random access to the bytes of one file that does not change in the meantime."""

    @property
    def size(self) -> int:
        """Size of the file in bytes."""

    def read_range(self, offset: int, length: int) -> memoryview:
        """Read a range. Returns fewer bytes than requested only at the end of the file."""


def open_ranges(source: Source) -> RangeReader:
    """Return a range reader for any `Source`; a range reader is returned unchanged."""
    if isinstance(source, bytes | bytearray | memoryview):
        return BytesRanges(source)
    if hasattr(source, "read_range") and hasattr(source, "size") and not callable(source.size):
        ranges: RangeReader = source
        return ranges
    if hasattr(source, "read_at"):
        return _ArrowFileRanges(source)
    return _FileRanges(source)


def read_exactly(ranges: RangeReader, offset: int, length: int) -> memoryview:
    """Read a complete range.

    Raises:
        FormatError: The file is too short.
    """
    if offset < 0 or length < 0 or offset + length > ranges.size:
        raise FormatError(f"bytes {offset} to {offset + length} are outside a file of {ranges.size} bytes")
    data = ranges.read_range(offset, length)
    if len(data) != length:
        raise FormatError(
            f"read {len(data)} of {length} bytes at offset {offset}; the file was truncated while being read"
        )
    return data


class BytesRanges:
    """Ranges of bytes in memory, without copying."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._view = memoryview(data).cast("B")

    @property
    def size(self) -> int:
        """Total number of bytes."""
        return len(self._view)

    def read_range(self, offset: int, length: int) -> memoryview:
        """Return a view of the bytes."""
        return self._view[offset : offset + length]


class _ArrowFileRanges:
    """Ranges of a pyarrow random-access file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._size = int(file.size())

    @property
    def size(self) -> int:
        return self._size

    def read_range(self, offset: int, length: int) -> memoryview:
        length = max(0, min(length, self._size - offset))
        return memoryview(self._file.read_at(length, offset))


class _FileRanges:
    """Ranges of a seekable binary file. Not thread-safe."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._size = int(file.seek(0, io.SEEK_END))

    @property
    def size(self) -> int:
        return self._size

    def read_range(self, offset: int, length: int) -> memoryview:
        length = max(0, min(length, self._size - offset))
        self._file.seek(offset)
        parts = []
        while length > 0:
            part = self._file.read(length)
            if not part:
                break
            parts.append(part)
            length -= len(part)
        return memoryview(parts[0] if len(parts) == 1 else b"".join(parts))


class Window:
    """Reads small adjacent ranges with few requests: every request reads at least `_SPAN` bytes.

    Keeps the bytes of the last two requests, so that reading ahead once does not evict the earlier ones.
    """

    def __init__(self, ranges: RangeReader) -> None:
        self.ranges = ranges
        self._held: list[tuple[int, memoryview]] = []

    def read(self, offset: int, length: int) -> memoryview:
        """Read a range. Returns fewer bytes than requested only at the end of the file."""
        end = max(offset, min(offset + length, self.ranges.size))
        for start, data in self._held:
            if start <= offset and end <= start + len(data):
                return data[offset - start : end - start]
        data = self.ranges.read_range(offset, max(end - offset, _SPAN))
        self._held = [(offset, data), *self._held[:1]]
        return data[: end - offset]
