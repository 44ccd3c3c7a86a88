"""Pool of a slice's log files, opened on demand and cached up to a limit.

A slice may have hundreds of log files, so neither their contents nor their handles may accumulate while it is read. A
block therefore refers to its file by path: reading its content reopens the file if it is no longer cached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Self

from pyhudi.format.corruption_errors import as_corruption
from pyhudi.format.log import LogBlock, scan_blocks
from pyhudi.format.range_reader import BytesRanges, RangeReader, open_ranges
from pyhudi.storage import Storage

_WHOLE_FILE = 4 * 1024 * 1024
"""Size in bytes up to which log files are read in one request rather than range by range."""
_OPEN_FILES = 16
"""Maximum number of other files that are open at a time."""
LOG_BYTES = 256 * 1024 * 1024
"""Default of cached bytes of small files."""


class LogFiles:
    """Log files of one slice. Use as a context manager, or call `close`; blocks can be read as long as it is open.

    ``limit``: cached bytes of small files; one file is cached regardless of its size. Not thread-safe.
    """

    def __init__(self, storage: Storage, limit: int = LOG_BYTES) -> None:
        self._storage, self._limit = storage, max(limit, 1)
        self._open_files: dict[str, _CachedFile] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def blocks(self, paths: Sequence[str], sizes: Sequence[int] = ()) -> Iterator[LogBlock]:
        """Yield the blocks of files, in order. ``sizes`` in bytes determine which files are small; empty: unknown, and
        only headers are read.

        Raises:
            FormatError: A file is corrupt. The message names it.
            NotFoundError: A file no longer exists.
        """
        known_sizes = sizes or (_WHOLE_FILE + 1,) * len(paths)
        for path, size in zip(paths, known_sizes, strict=True):
            with as_corruption(self._storage.uri(path)):
                yield from scan_blocks(_LogFile(self, path, whole=size <= _WHOLE_FILE))

    def opened(self, path: str, *, whole: bool) -> RangeReader:
        """Return the open file, which stays open until another one is requested."""
        cached = self._open_files.get(path)
        if cached is None:
            cached = self._read_whole(path) if whole else self._open(path)
            # The most recently used file is evicted first: files are read in order, once for headers and once for
            # contents, so the first ones are needed next.
            while self._open_files and cached.share + sum(other.share for other in self._open_files.values()) > 1:
                self._drop(next(reversed(self._open_files)))
        else:
            del self._open_files[path]
        self._open_files[path] = cached
        return cached.ranges

    def close(self) -> None:
        """Close all files. Blocks that are read later reopen their files."""
        while self._open_files:
            self._drop(next(reversed(self._open_files)))

    def _drop(self, path: str) -> None:
        with self._open_files.pop(path).file:
            pass

    def _read_whole(self, path: str) -> _CachedFile:
        data = self._storage.read(path)
        return _CachedFile(BytesRanges(data), nullcontext(), len(data) / self._limit)

    def _open(self, path: str) -> _CachedFile:
        file = self._storage.open_input(path)
        return _CachedFile(open_ranges(file), file, 1 / _OPEN_FILES)


@dataclass(frozen=True, slots=True)
class _CachedFile:
    """A cached file, and its share of the limit."""

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
        """Size of the file in bytes when it was first opened."""
        if self._size is None:
            self._size = self._files.opened(self._path, whole=self._whole).size
        return self._size

    def read_range(self, offset: int, length: int) -> memoryview:
        return self._files.opened(self._path, whole=self._whole).read_range(offset, length)
