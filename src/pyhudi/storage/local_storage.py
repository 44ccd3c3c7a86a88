"""Files of the local file system, including mounted ones.

Guarantees in the presence of concurrent writers, including Apache Hudi on the JVM:

* A file with content is written under a hidden temporary name in its own folder, then linked (create-if-absent) or
  renamed (overwrite) to its final name, so no reader sees partial content. Temporary names do not resemble data files,
  log files or instants, and listings omit them.
* Hadoop's local file system trusts the checksum file ``.name.crc`` next to each file that it wrote. Whoever changes or
  removes the file must also remove the checksum file, otherwise the JVM refuses the file. Listings omit checksum files.
* Content is on disk before its name appears, and the name before the call returns, so a power failure leaves neither an
  empty commit nor a commit that refers to empty files (``pyhudi.storage.fsync``: ``all`` = all files, ``commit`` = all
  except streamed files, which hold data, ``none``).
"""

# Plain strings and descriptors rather than pathlib: listings run over a million files, and flags matter here.
# ruff: noqa: PTH100, PTH103, PTH104, PTH108, PTH116, PTH118, PTH120, PTH123

from __future__ import annotations

import builtins
import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, cast

import pyarrow as pa

from pyhudi.config.enums import Fsync
from pyhudi.config.options import STORAGE_FSYNC
from pyhudi.errors import AlreadyExistsError, PreconditionFailedError, StorageError
from pyhudi.storage import posix_files
from pyhudi.storage.storage_protocol import LISTING_SCHEMA, FileStat, clean_path

_WRITE_BUFFER = 1 << 20


class LocalStorage:
    """A folder of the local file system. Safe for concurrent threads and processes of one host."""

    def __init__(self, folder: str | os.PathLike[str], *, fsync: str = STORAGE_FSYNC.default) -> None:
        base = os.path.abspath(os.fspath(folder))  # Keep symbolic links, as Hadoop does.
        self._base = "/" + base.lstrip("/")  # POSIX keeps two leading slashes
        self._fsync = STORAGE_FSYNC.parse(fsync)

    @property
    def root(self) -> str:
        return "file://" + self._base

    def uri(self, path: str = "") -> str:
        return "file://" + self.local_path(path)

    def __repr__(self) -> str:
        return f"LocalStorage({self._base!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalStorage) and (self._base, self._fsync) == (other._base, other._fsync)

    def __hash__(self) -> int:
        return hash((LocalStorage, self._base))

    @property
    def unwrapped(self) -> LocalStorage:
        return self

    def local_path(self, path: str) -> str:
        """Return the operating system's path of a file of this storage."""
        path = clean_path(path)
        if not path:
            return self._base
        return f"{self._base}/{path}" if self._base != "/" else f"/{path}"

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        with posix_files.errors(path), open(self.local_path(path), "rb", buffering=0) as file:
            return file.readall()

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        with posix_files.errors(path), open(self.local_path(path), "rb", buffering=0) as file:
            parts = []
            while length > 0 and (part := os.pread(file.fileno(), length, offset)):
                parts.append(part)
                offset += len(part)
                length -= len(part)
            return b"".join(parts)

    def stat(self, path: str) -> FileStat | None:
        try:
            info = os.stat(self.local_path(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise posix_files.translated(error, path) from error
        if not posix_files.is_file(info.st_mode):
            return None
        return FileStat(path, info.st_size, info.st_mtime_ns // 1_000_000, posix_files.version(info))

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None

    def open_input(self, path: str) -> Any:
        with posix_files.errors(path):
            return pa.OSFile(self.local_path(path), "rb")

    # -- listing ---------------------------------------------------------------------------------------------------

    def list(self, path: str = "", *, recursive: bool = False) -> pa.Table:
        paths: list[str] = []
        sizes: list[int] = []
        times: list[int] = []
        path = clean_path(path)
        pending = [(self.local_path(path), f"{path}/" if path else "")]
        while pending:
            folder, prefix = pending.pop()
            with posix_files.errors(path, absent_ok=True), os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    if entry.is_dir():
                        if recursive:
                            pending.append((entry.path, f"{prefix}{name}/"))
                    elif not posix_files.is_hidden_side_file(name):
                        try:
                            info = entry.stat()
                        except FileNotFoundError:  # Deleted during the listing.
                            continue
                        paths.append(prefix + name)
                        sizes.append(info.st_size)
                        times.append(info.st_mtime_ns // 1_000_000)
        try:
            return pa.table([paths, sizes, times], schema=LISTING_SCHEMA)
        except UnicodeEncodeError as error:
            raise StorageError(
                f"cannot list {self.uri(path)!r}: the name {error.object!r} is not valid UTF-8; rename the file"
            ) from error

    def list_dirs(self, path: str = "") -> builtins.list[str]:
        with posix_files.errors(path, absent_ok=True), os.scandir(self.local_path(path)) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())
        return []

    # -- writing ---------------------------------------------------------------------------------------------------

    def write(self, path: str, data: bytes) -> None:
        full = self.local_path(path)
        with posix_files.errors(path), self._temporary(full, data) as temporary:
            posix_files.drop_checksum(full)
            os.rename(temporary, full)
        self._sync_folder(full, data)

    def create(self, path: str, data: bytes) -> None:
        self._create(path, data)

    def _create(self, path: str, data: bytes) -> str:
        """Create the file and return the version that was created, even if another process has replaced it since."""
        full = self.local_path(path)
        with posix_files.errors(path):
            if not data:  # An empty file has no partial state.
                handle = posix_files.open_new(full)
                try:
                    posix_files.drop_checksum(full)
                    return posix_files.version(os.fstat(handle))
                finally:
                    os.close(handle)
            if os.path.lexists(full):  # Detect the common case without writing; the link below is decisive.
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), full)
            with self._temporary(full, data) as temporary:
                version = posix_files.version(os.stat(temporary))
                posix_files.drop_checksum(full)
                posix_files.link(temporary, full)
        self._sync_folder(full, data)
        return version

    def replace(self, path: str, data: bytes, version: str | None) -> str:
        if version is None:
            try:
                return self._create(path, data)
            except AlreadyExistsError as error:
                raise PreconditionFailedError(f"{self.uri(path)!r} already exists") from error
        full = self.local_path(path)
        with posix_files.errors(path, absent_ok=True), posix_files.file_locked(full) as current:
            if posix_files.version(current) == version:
                with self._temporary(full, data) as temporary:
                    # File system clocks are coarse: two changes within one tick must still have different versions.
                    changed = max(os.stat(temporary).st_mtime_ns, current.st_mtime_ns + 1)
                    os.utime(temporary, ns=(changed, changed))
                    version = posix_files.version(os.stat(temporary))
                    posix_files.drop_checksum(full)
                    os.rename(temporary, full)
                self._sync_folder(full, data)
                return version
        raise PreconditionFailedError(f"{self.uri(path)!r} was changed or removed by another process")

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        full = self.local_path(path)
        temporary = posix_files.stream_temporary(full)
        with posix_files.errors(path):
            posix_files.remove(temporary)  # Left behind by a killed writer.
            handle = posix_files.open_new(temporary, durable=self._fsync is Fsync.ALL)
            mine = os.fstat(handle).st_ino
            os.close(handle)
            sink = pa.BufferedOutputStream(pa.OSFile(temporary, "wb"), _WRITE_BUFFER)
        try:
            with posix_files.output_errors(path):
                yield cast("BinaryIO", sink)
            with posix_files.errors(path):
                sink.close()
                if self._fsync is Fsync.ALL:
                    posix_files.sync(temporary)
                if os.stat(temporary).st_ino != mine:
                    raise StorageError(f"two writers write to {self.uri(path)!r} at the same time")
                posix_files.drop_checksum(full)
                os.rename(temporary, full)
        except BaseException:
            with contextlib.suppress(Exception):
                sink.close()
            posix_files.remove(temporary)
            raise
        if self._fsync is Fsync.ALL:
            with posix_files.errors(path):
                posix_files.sync(os.path.dirname(full))

    def make_dirs(self, path: str) -> None:
        with posix_files.errors(path):
            os.makedirs(self.local_path(path), exist_ok=True)

    def set_modified(self, path: str, mtime_ms: int) -> None:
        with posix_files.errors(path):
            os.utime(self.local_path(path), ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))

    # -- deleting --------------------------------------------------------------------------------------------------

    def delete(self, path: str) -> None:
        full = self.local_path(path)
        with posix_files.errors(path, absent_ok=True):
            # The temporary file exists if the writer that streamed this file was killed.
            posix_files.remove(posix_files.stream_temporary(full))
            posix_files.drop_checksum(full)
            os.unlink(full)

    def delete_many(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)

    def delete_tree(self, path: str) -> None:
        full = self.local_path(path)
        for _ in range(3):  # Another process may add a file while the tree is being deleted.
            with posix_files.errors(path, absent_ok=True):
                try:
                    shutil.rmtree(full)
                except OSError as error:
                    if error.errno != errno.ENOTEMPTY:
                        raise
                    continue
            return
        raise StorageError(f"cannot delete folder {self.uri(path)!r}: another process keeps adding files to it")

    # -- helpers ---------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _temporary(self, full: str, data: bytes) -> Iterator[str]:
        """Hidden file with the content in the same folder. It is deleted at the end unless it was renamed."""
        temporary = os.path.join(os.path.dirname(full), posix_files.TEMP_PREFIX + uuid.uuid4().hex)
        try:
            with open(
                posix_files.open_new(temporary, durable=self._fsync is not Fsync.NONE), "wb", buffering=0
            ) as file:
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
                if data and self._fsync is not Fsync.NONE:
                    os.fsync(file.fileno())
            yield temporary
        finally:
            posix_files.remove(temporary)

    def _sync_folder(self, full: str, data: bytes) -> None:
        if data and self._fsync is not Fsync.NONE:
            with posix_files.errors(full):
                posix_files.sync(os.path.dirname(full))


def resolved_root(root: str) -> str:
    """Return the root of a storage without symbolic links, if it is of the local file system."""
    local = root.removeprefix("file://")
    return root if local == root else os.path.realpath(local)
