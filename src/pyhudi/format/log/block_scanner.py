"""Scanner of the blocks of a log file.

A block::

     0  6  magic "#HUDI#"
     6  8  length L of the rest of the block, including the last field
    14  4  log format version, 1
    18  4  block type
    22  …  header map: count, then count times (key, length, UTF-8 bytes)
     …  8  content length
     …  …  content
     …  …  footer map, laid out like the header map, always empty
     …  8  L + 6

All integers are big-endian. A writer that is killed leaves a block without its end. A block is complete if its last
field agrees with its first, and another block or the end of the file follows. Incomplete blocks are skipped up to the
next magic. Apache Hudi applies the same rules, so both read the same rows from a damaged file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from pyhudi.errors import FormatError
from pyhudi.format.log import block_checksum
from pyhudi.format.log.log_block import FORMAT_VERSION, MAGIC, BlockType, LogBlock
from pyhudi.format.range_reader import RangeReader, Source, Window, open_ranges

_LENGTH = struct.Struct(">q")
_INT = struct.Struct(">i")
_PAIR = struct.Struct(">ii")

_HEAD = len(MAGIC) + _LENGTH.size
_TAIL = _INT.size + _LENGTH.size
_LEAST = 2 * _INT.size + _INT.size + _LENGTH.size + _INT.size + _LENGTH.size
"""L of a block without headers and content."""
_SEARCH_SPAN = 1024 * 1024


def scan_blocks(source: Source, *, with_corrupt: bool = False) -> Iterator[LogBlock]:
    """Yield the complete blocks of a log file in file order, with headers only; ``LogBlock.content()`` reads contents.

    Reads at least one small range per block and skips contents. ``source`` must stay open as long as blocks are used.
    With ``with_corrupt``, skipped ranges are yielded as blocks of type CORRUPT.

    Raises:
        FormatError: The file does not start with a block, or a complete block has an unknown type or layout.
    """
    window = Window(open_ranges(source))
    search = _MagicSearch(window.ranges)
    size = window.ranges.size
    at = 0
    # As in Apache Hudi, fewer bytes than a magic are the end of the file.
    while size - at >= len(MAGIC):
        if bytes(window.read(at, len(MAGIC))) != MAGIC:
            # Between blocks the magic has already been found, so this is the start of the file.
            raise FormatError(f"not a log file: it starts with {bytes(window.read(0, 6))!r} instead of {MAGIC!r}")
        end = _block_end(window, at)
        if end is not None:
            yield _parse(window, at, end)
        else:
            end = search.next(at + len(MAGIC))
            if with_corrupt:
                start = at + len(MAGIC)
                yield LogBlock(BlockType.CORRUPT, {}, at, end, start, end - start, window.ranges)
        at = end


def _block_end(window: Window, at: int) -> int | None:
    """Return the end offset of the block at ``at``, or None if it is corrupt."""
    start = at + _HEAD
    head = window.read(at + len(MAGIC), _LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    # Apache Hudi uses the low 32 bits of the field.
    (length,) = _INT.unpack_from(head, _LENGTH.size - _INT.size)
    end: int = start + length
    if length < _LEAST or end > window.ranges.size:
        return None
    # The preceding empty footer is read, too.
    last = window.read(end - _TAIL, _TAIL + len(MAGIC))
    if _LENGTH.unpack_from(last, _INT.size)[0] != length + len(MAGIC):
        return None
    after = bytes(last[_TAIL:])
    return end if len(after) < len(MAGIC) or after == MAGIC else None


class _MagicSearch:
    """Finds the magics of a file in forward order; every byte is read once."""

    def __init__(self, ranges: RangeReader) -> None:
        self._ranges = ranges
        self._start = 0
        self._data = b""

    def next(self, at: int) -> int:
        """Return the offset of the next magic at or after ``at``, or the end of the file."""
        while True:
            offset = self._data.find(MAGIC, at - self._start) if at >= self._start else -1
            if offset >= 0:
                return self._start + offset
            # A magic may extend beyond the end of the read range.
            at = max(at, self._start + len(self._data) - len(MAGIC) + 1)
            if self._ranges.size - at < len(MAGIC):
                return self._ranges.size
            self._start, self._data = at, bytes(self._ranges.read_range(at, _SEARCH_SPAN))
            if len(self._data) < len(MAGIC):
                return self._ranges.size


def _parse(window: Window, at: int, end: int) -> LogBlock:
    try:
        version, kind = _PAIR.unpack(window.read(at + _HEAD, _PAIR.size))
        if version != FORMAT_VERSION:
            raise FormatError(f"log block at offset {at} has format version {version}; only version 1 is supported")
        headers, pos = _parse_map(window, at + _HEAD + _PAIR.size, end)
        (length,) = _LENGTH.unpack(window.read(pos, _LENGTH.size))
        pos += _LENGTH.size
        footer = end - _LENGTH.size - _INT.size
        if not 0 <= length <= footer - pos:
            raise ValueError(f"content of {length} bytes exceeds the block")
        _, footer_end = _parse_map(window, pos + length, end)
        if footer_end != end - _LENGTH.size:
            raise ValueError(f"content of {length} bytes does not match the size of the block")
        checksums = block_checksum.hashes(headers)
        if block_checksum.is_misplaced(headers) or (
            checksums and checksums[0] != block_checksum.hash_headers(kind, headers)
        ):
            raise ValueError("its headers do not match their checksum")
        return LogBlock(BlockType(kind), headers, at, end, pos, length, window.ranges)
    except (struct.error, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"cannot parse the log block at offset {at}: {error}") from error


def _parse_map(window: Window, pos: int, end: int) -> tuple[dict[int, str], int]:
    """Return the entries of a header map and its end; ``end`` is that of the block."""
    (count,) = _INT.unpack(window.read(pos, _INT.size))
    pos += _INT.size
    if not 0 <= count <= (end - pos) // _PAIR.size:
        raise ValueError(f"a header map with {count} entries")
    result: dict[int, str] = {}
    for _ in range(count):
        key, length = _PAIR.unpack(window.read(pos, _PAIR.size))
        pos += _PAIR.size
        if not 0 <= length <= end - pos:
            raise ValueError(f"a header of {length} bytes")
        if key in result:
            raise ValueError(f"header {key} twice")
        result[key] = str(window.read(pos, length), "utf-8")
        pos += length
    return result, pos
