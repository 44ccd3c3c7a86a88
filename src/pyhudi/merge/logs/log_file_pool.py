"""The log files of a slice, opened when something of them is read, and as many of them held as a limit allows.

A slice may have hundreds of log files: neither their contents nor their handles are to pile up while it is read. So a
block refers to its file by name, so to speak: reading its content opens the file anew where it is not held any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pyhudi.format.corruption import as_corruption
from pyhudi.format.log import LogBlock, scan_blocks
from pyhudi.format.range_reader import BytesRanges, RangeReader, open_ranges
from pyhudi.storage import Storage

_WHOLE_FILE = 4 * 1024 * 1024
"""Log files up to this size are read in one go rather than range by range."""
_OPEN_FILES = 16
"""Number of other files that are open at a time."""
LOG_BYTES = 256 * 1024 * 1024
"""Default bytes of small files that are held at a time."""


class LogFiles:
    """Log files of one slice. Use as a context manager, or `close` it; blocks can be read as long as it is open.

    ``limit``: bytes of small files that are held; one file is held whatever its size. Not for several threads at once.
    """

    def __init__(self, storage: Storage, limit: int = LOG_BYTES) -> None:
        self._storage, self._limit = storage, max(limit, 1)
        self._held: dict[str, _Held] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def blocks(self, paths: Sequence[str], sizes: Sequence[int] = ()) -> Iterator[LogBlock]:
        """The blocks of files, in order. ``sizes`` in bytes tell which files are small; none: they are not known, and
        only headers are read of any.

        Raises:
            FormatError: a file is damaged; names it.
            NotFoundError: it is gone.
        """
        known = sizes or (_WHOLE_FILE + 1,) * len(paths)
        for path, size in zip(paths, known, strict=True):
            with as_corruption(self._storage.uri(path)):
                yield from scan_blocks(_LogFile(self, path, whole=size <= _WHOLE_FILE))

    def opened(self, path: str, *, whole: bool) -> RangeReader:
        """A file, which stays open until another one is asked for."""
        held = self._held.get(path)
        if held is None:
            held = self._whole(path) if whole else self._open(path)
            # what was read last goes first: files are gone through in their order, once for headers and once for
            # contents, so that those at the front are the next to be needed
            while self._held and held.share + sum(other.share for other in self._held.values()) > 1:
                self._drop(next(reversed(self._held)))
        else:
            del self._held[path]
        self._held[path] = held
        return held.ranges

    def close(self) -> None:
        """Close all files; blocks that are read later open their files again."""
        while self._held:
            self._drop(next(reversed(self._held)))

    def _drop(self, path: str) -> None:
        with self._held.pop(path).file:
            pass

    def _whole(self, path: str) -> _Held:
        data = self._storage.read(path)
        return _Held(BytesRanges(data), nullcontext(), len(data) / self._limit)

    def _open(self, path: str) -> _Held:
        file = self._storage.open_input(path)
        return _Held(open_ranges(file), file, 1 / _OPEN_FILES)


@dataclass(frozen=True, slots=True)
class _Held:
    """A file that is held, and which share of what may be held it takes."""

    ranges: RangeReader
    file: AbstractContextManager[object]
    share: float


class _LogFile:
    """Ranges of one of the files."""

    def __init__(self, files: LogFiles, path: str, *, whole: bool) -> None:
        self._files, self._path, self._whole = files, path, whole
        self._size: int | None = None

    @property
    def size(self) -> int:
        """Bytes in the file when it was first opened."""
        if self._size is None:
            self._size = self._files.opened(self._path, whole=self._whole).size
        return self._size

    def read_range(self, offset: int, length: int) -> memoryview:
        """The bytes of a range."""
        return self._files.opened(self._path, whole=self._whole).read_range(offset, length)
