"""Storage protocol: the operations on files that every backend offers, and the few rules that all of them share.

Paths are ``/``-separated and relative to the root of the storage; ``""`` is the root itself. They are taken
literally: nothing is percent-encoded or decoded, because ``=``, ``%`` and blanks are part of partition paths.
A storage has files only; a folder exists as long as something is in it (a local file system may also show an empty
one), and every question about a missing folder has an empty answer.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, runtime_checkable

import pyarrow as pa

from pyhudi.errors import StorageError

#: Columns of ``Storage.list``: path relative to the root, size in bytes, last change in epoch milliseconds.
#: The order of rows is not defined.
LISTING_SCHEMA = pa.schema([("path", pa.string()), ("size", pa.int64()), ("mtime_ms", pa.int64())])


@dataclass(frozen=True, slots=True)
class FileStat:
    """One file: ``mtime_ms`` is epoch milliseconds; ``version`` changes with every change of the content and is what
    ``Storage.replace`` takes (opaque: an ETag, a generation, or for local files a combination of file attributes)."""

    path: str
    size: int
    mtime_ms: int
    version: str


@runtime_checkable
class Storage(Protocol):
    """A table's files. Every implementation pickles, so that it can go to Spark's executors, and is thread-safe.

    Errors are those of :mod:`pyhudi.errors`: ``NotFoundError``, ``AlreadyExistsError``, ``PreconditionFailedError``,
    ``UnansweredError`` where no answer came, so that the operation may have been done or may yet be, and
    ``StorageError`` for all that a backend reports otherwise (permission, full disk).
    """

    @property
    def root(self) -> str:
        """Canonical URI of the root, without a slash at its end: ``file:///tmp/t``, ``s3://bucket/t``."""

    def uri(self, path: str = "") -> str:
        """The file's address as Spark takes it: ``file:///…``, ``s3a://…``, ``gs://…``, ``abfss://…``; literal, never
        percent-encoded, as Hadoop paths are."""

    def read(self, path: str) -> bytes:
        """Return the whole content; ``NotFoundError`` when there is no such file."""

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Read at most ``length`` bytes from ``offset``; fewer, or none, where the file ends before."""

    def write(self, path: str, data: bytes) -> None:
        """Write the whole content, replacing what was there. Readers see the old or the new content, never a part."""

    def create(self, path: str, data: bytes) -> None:
        """Write the whole content if there is no such file, else ``AlreadyExistsError``. Of any number of racing
        creators, in any processes, exactly one returns; readers see no file or all of it."""

    def replace(self, path: str, data: bytes, version: str | None) -> str:
        """Write the content if the file still has ``version`` (``None``: does not exist); return the new version. Else,
        also when the file is gone, ``PreconditionFailedError``, and nothing has changed."""

    def stat(self, path: str) -> FileStat | None:
        """Size, time and version, or ``None`` when there is no such file (a folder is no file)."""

    def exists(self, path: str) -> bool:
        """Return True if there is such a file."""

    def list(self, path: str = "", *, recursive: bool = False) -> pa.Table:
        """The files in a folder, or in it and all folders below, as :data:`LISTING_SCHEMA`."""

    def list_dirs(self, path: str = "") -> builtins.list[str]:
        """Names (not paths) of the direct sub-folders, sorted."""

    def make_dirs(self, path: str) -> None:
        """Make an empty folder and its parents where a backend knows folders; nothing elsewhere."""

    def set_modified(self, path: str, mtime_ms: int) -> None:
        """Set the time of a file's last change (epoch milliseconds) where a backend lets that be set; nothing
        elsewhere. ``NotFoundError``."""

    def delete(self, path: str) -> bool:
        """Delete a file; ``False`` when it was not there."""

    def delete_many(self, paths: Iterable[str]) -> None:
        """Delete files, as many in one request as the backend can; absent ones are no error."""

    def delete_tree(self, path: str) -> None:
        """Delete a folder with all that is in it; an absent one is no error. Not atomic."""

    def open_input(self, path: str) -> Any:
        """A random-access ``pyarrow.NativeFile`` for reading; ``NotFoundError``."""

    def open_output(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A sink to stream a file of any size with bounded memory. The file appears, replacing an older one, when the
        ``with`` block ends without an error, and never when it ends with one."""


def clean_path(path: str) -> str:
    """The path without empty segments, as Hadoop paths collapse them.

    Paths come out of timeline files that anybody may have written, so one that would leave the root (``..``,
    a leading slash) is refused with ``StorageError``.
    """
    if path.startswith("/"):
        raise StorageError(f"path {path!r} is absolute; paths are relative to the table's root")
    if "\x00" in path:
        raise StorageError(f"path {path!r} contains a NUL character")
    if "." not in path and "//" not in path and not path.endswith("/"):
        return path
    segments = path.split("/")
    if ".." in segments or "." in segments:
        raise StorageError(f"path {path!r} has a segment '.' or '..'; it must name a place below the table's root")
    return "/".join(segment for segment in segments if segment)


def join_path(*parts: str) -> str:
    """Join path parts, leaving out empty ones: ``join_path("", "a", "b.parquet") == "a/b.parquet"``."""
    return "/".join(part for part in parts if part)


def empty_listing() -> pa.Table:
    """A listing with no files."""
    return LISTING_SCHEMA.empty_table()
