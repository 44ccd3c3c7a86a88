"""Storage protocol: the file operations of every backend and their common rules.

Paths are ``/``-separated and relative to the root of the storage; ``""`` is the root itself. They are literal: nothing
is percent-encoded or decoded, because ``=``, ``%`` and blanks are part of partition paths. A storage has files only. A
folder exists as long as it contains a file (a local file system may also have empty ones), and operations on a missing
folder return an empty result.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, runtime_checkable

import pyarrow as pa

from pyhudi.errors import StorageError

LISTING_SCHEMA = pa.schema([("path", pa.string()), ("size", pa.int64()), ("mtime_ms", pa.int64())])
"""Columns of ``Storage.list``: path relative to the root, size in bytes, last change in epoch milliseconds.

The order of rows is undefined."""


@dataclass(frozen=True, slots=True)
class FileStat:
    """A file. ``mtime_ms`` is in epoch milliseconds. ``version`` changes with every change of the content and is
    opaque: an ETag, a generation or, for local files, a combination of attributes. It is passed to
    ``Storage.replace``."""

    path: str
    size: int
    mtime_ms: int
    version: str


@runtime_checkable
class Storage(Protocol):
    """Files of a table. Implementations are thread-safe and can be pickled, so that they can be sent to Spark
    executors.

    Errors are those of :mod:`pyhudi.errors`: ``NotFoundError``, ``AlreadyExistsError``, ``PreconditionFailedError``,
    ``UnansweredError`` if there is no response, so that the operation may have taken effect or may still do so, and
    ``StorageError`` for all other errors of a backend (permissions, full disk).
    """

    @property
    def root(self) -> str:
        """Canonical URI of the root, without a trailing slash: ``file:///tmp/t``, ``s3://bucket/t``."""

    @property
    def unwrapped(self) -> Storage:
        """The storage inside of all wrappers; the storage itself if it is none."""

    def uri(self, path: str = "") -> str:
        """Return the URI of the file for Spark: ``file:///…``, ``s3a://…``, ``gs://…``, ``abfss://…``. Like Hadoop
        paths, it is not percent-encoded."""

    def read(self, path: str) -> bytes:
        """Return the whole content. Raises ``NotFoundError`` if the file does not exist."""

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Read at most ``length`` bytes from ``offset``. Returns fewer bytes, or none, at the end of the file."""

    def write(self, path: str, data: bytes) -> None:
        """Write the whole content, replacing the file if it exists. Readers see the old or the new content, never a
        part."""

    def create(self, path: str, data: bytes) -> None:
        """Write the whole content if the file does not exist, otherwise raise ``AlreadyExistsError``.

        Of any number of concurrent creators, in any processes, exactly one succeeds. Readers see no file or all of it.
        """

    def replace(self, path: str, data: bytes, version: str | None) -> str:
        """Write the content if the file still has ``version`` (``None``: does not exist). Return the new version.

        Otherwise, also if the file no longer exists, raise ``PreconditionFailedError`` and change nothing.
        """

    def stat(self, path: str) -> FileStat | None:
        """Return size, time and version, or ``None`` if the file does not exist (a folder is not a file)."""

    def exists(self, path: str) -> bool:
        """Return True if the file exists."""

    def list(self, path: str = "", *, recursive: bool = False) -> pa.Table:
        """Return the files in a folder, optionally with those of all its subfolders, as :data:`LISTING_SCHEMA`."""

    def list_dirs(self, path: str = "") -> builtins.list[str]:
        """Return the names (not paths) of the direct subfolders, sorted."""

    def make_dirs(self, path: str) -> None:
        """Create an empty folder and its parents if the backend has folders, otherwise do nothing."""

    def set_modified(self, path: str, mtime_ms: int) -> None:
        """Set the modification time of a file (epoch milliseconds) if the backend supports this, otherwise do nothing.

        Raises:
            NotFoundError: The file does not exist.
        """

    def delete(self, path: str) -> None:
        """Delete a file. A missing file is ignored."""

    def delete_many(self, paths: Iterable[str]) -> None:
        """Delete files, in as few requests as the backend allows. Missing files are ignored."""

    def delete_tree(self, path: str) -> None:
        """Delete a folder with its content. A missing folder is ignored. Not atomic."""

    def open_input(self, path: str) -> Any:
        """Open a random-access ``pyarrow.NativeFile`` for reading. Raises ``NotFoundError``."""

    def open_output(self, path: str) -> AbstractContextManager[BinaryIO]:
        """Open an output stream for a file of any size with bounded memory.

        The file appears, replacing an older one, when the ``with`` block ends without an error, and never if it ends
        with one.
        """


def clean_path(path: str) -> str:
    """Return the path without empty segments, which Hadoop collapses, too.

    Paths may come from timeline files written by other programs, so a path outside the root (``..``, a leading slash)
    raises ``StorageError``.
    """
    if path.startswith("/"):
        raise StorageError(f"path {path!r} is absolute; paths must be relative to the table's root")
    if "\x00" in path:
        raise StorageError(f"path {path!r} contains a NUL character")
    if "." not in path and "//" not in path and not path.endswith("/"):
        return path
    segments = path.split("/")
    if ".." in segments or "." in segments:
        raise StorageError(f"path {path!r} has a segment '.' or '..'; it must be below the table's root")
    return "/".join(segment for segment in segments if segment)


def join_path(*parts: str) -> str:
    """Join path parts, omitting empty ones: ``join_path("", "a", "b.parquet") == "a/b.parquet"``."""
    return "/".join(part for part in parts if part)
