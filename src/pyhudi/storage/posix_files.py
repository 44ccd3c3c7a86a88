"""Operating system functions for :mod:`pyhudi.storage.local_storage`: hidden names, locks, links, errors."""

# Plain strings and descriptors rather than pathlib: listings run over a million files, and flags matter here.
# ruff: noqa: PTH103, PTH108, PTH112, PTH116, PTH118, PTH120

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator

from pyhudi.errors import AlreadyExistsError, NotFoundError, StorageError, UnansweredError

TEMP_PREFIX = ".pyhudi-tmp-"
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV}
"""Errors of ``link`` on file systems without hard links."""
_UNANSWERED = {errno.EIO, errno.ETIMEDOUT, errno.ESTALE, errno.ECONNRESET, errno.EHOSTDOWN, errno.EINTR}
"""Errors of network file systems after which the server may have executed the request."""
_NO_PERMISSION = "give the user of this process the permission, which writes need for the table's folder, too"
_NO_SPACE = "free some space and try again; the next write removes what a failed one has left"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Errors that only files have that are being written."""
_CURES = {
    errno.EACCES: _NO_PERMISSION,
    errno.EPERM: _NO_PERMISSION,
    errno.EROFS: "mount the file system for writing, or only read the table",
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EFBIG: "raise the limit of the size of files (ulimit -f)",
    errno.EMFILE: "raise the limit of open files of this process (ulimit -n)",
}
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1


def try_flock(handle: int, full: str) -> bool:
    """Acquire the exclusive lock of an open file or folder if it is free."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StorageError(
            f"the file system of {full!r} does not support locks ({error.strerror}); mount it with lock support"
        ) from error
    return True


def has_name(handle: int, full: str) -> bool:
    """Return True if a name is that of an open file or folder; it may have passed to another one.

    Raises:
        FileNotFoundError: Nothing has the name.
    """
    opened, named = os.fstat(handle), os.stat(full)
    return (opened.st_dev, opened.st_ino) == (named.st_dev, named.st_ino)


@contextlib.contextmanager
def file_locked(full: str) -> Iterator[os.stat_result]:
    """Critical section of all processes that replace a file by renaming another one over it.

    The lock is on the file that currently has the name. If the name has passed to another file while waiting, the lock
    is acquired again on that file.

    Raises:
        NotFoundError: The file does not exist.
    """
    while True:
        handle = os.open(full, os.O_RDWR)  # Network file systems lock only files that are open for writing.
        try:
            while not try_flock(handle, full):
                time.sleep(0.001)
            if has_name(handle, full):
                yield os.fstat(handle)
                return
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # A forked child may keep the descriptor open.
            os.close(handle)


@contextlib.contextmanager
def errors(path: str, *, absent_ok: bool = False) -> Iterator[None]:
    """Convert errors of the operating system to those of pyhudi. With ``absent_ok`` a missing file just ends the
    block."""
    try:
        yield
    except StorageError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        if not absent_ok:
            raise translated(error, path) from error
    except OSError as error:
        raise translated(error, path) from error


@contextlib.contextmanager
def output_errors(path: str) -> Iterator[None]:
    """Convert the errors of a block that can only come from the file that it writes, not from others that it reads."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise translated(error, path) from error


def translated(error: OSError, path: str) -> StorageError:
    """Return pyhudi's error for one of the operating system."""
    if isinstance(error, NotADirectoryError):
        return NotFoundError(f"no file {path!r} ({error.filename}), because a folder of this path is a file")
    if isinstance(error, FileNotFoundError | IsADirectoryError):
        return NotFoundError(f"no file {path!r} ({error.filename})")
    if isinstance(error, FileExistsError):
        return AlreadyExistsError(f"file {path!r} already exists ({error.filename})")
    kind = UnansweredError if error.errno in _UNANSWERED else StorageError
    place = f" ({error.filename})" if error.filename else ""
    cure = _CURES.get(error.errno or 0, "")
    return kind(f"{path!r}: {error.strerror or error}{place}{'; ' if cure else ''}{cure}")


def is_file(mode: int) -> bool:
    """Return True if ``st_mode`` is that of a regular file."""
    return mode & 0o170000 == 0o100000


def is_hidden_side_file(name: str) -> bool:
    """Return True for checksum files of Hadoop and temporary files, which are not files of the table."""
    return name[0] == "." and (name.endswith(".crc") or name.startswith(TEMP_PREFIX))


def version(info: os.stat_result) -> str:
    """Return a text that differs between any two contents of a file: time in ns, size, inode."""
    return f"{info.st_mtime_ns}-{info.st_size}-{info.st_ino}"


def stream_temporary(full: str) -> str:
    """Return the temporary name of a streamed file.

    It is derived from the final name, so that whoever deletes an unfinished file finds it, and hashed, so that it is
    not mistaken for a data or log file.
    """
    folder, name = os.path.split(full)
    return os.path.join(folder, TEMP_PREFIX + hashlib.blake2b(os.fsencode(name), digest_size=12).hexdigest())


def drop_checksum(full: str) -> None:
    """Remove the checksum file that Hadoop may have written for a file."""
    folder, name = os.path.split(full)
    remove(os.path.join(folder, f".{name}.crc"))


def remove(full: str) -> None:
    """Delete a file if it exists."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(full)


def open_new(full: str, *, durable: bool = False) -> int:
    """Return the descriptor of a new, empty file. Its folder is created if needed and, with ``durable``, synced to
    disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    for _ in range(10):  # Another process may remove the folder again.
        try:
            return os.open(full, flags, 0o666)
        except FileNotFoundError:
            _make_folder(os.path.dirname(full), durable=durable)
    return os.open(full, flags, 0o666)


def _make_folder(folder: str, *, durable: bool) -> None:
    """Create a folder and those above it, or some of them if another process removes one meanwhile."""
    missing = []
    above = folder
    while durable and not os.path.isdir(above):
        missing.append(above)
        above = os.path.dirname(above)
    with contextlib.suppress(FileNotFoundError):
        os.makedirs(folder, exist_ok=True)
    for made in missing:  # A folder is an entry of its parent folder.
        with contextlib.suppress(FileNotFoundError):
            sync(os.path.dirname(made))


def sync(full: str) -> None:
    """Wait until a file or folder is on disk."""
    handle = os.open(full, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:  # Some mounted file systems cannot sync a folder.
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.EOPNOTSUPP):
            raise
    finally:
        os.close(handle)


def link(temporary: str, full: str) -> None:
    """Rename the temporary file if the name is free."""
    try:
        os.link(temporary, full)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _rename_without_replacing(temporary, full)


def _rename_without_replacing(temporary: str, full: str) -> None:
    """Rename by Linux's ``renameat2(RENAME_NOREPLACE)``, for file systems without hard links."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        code = errno.ENOSYS
    else:
        if rename(_AT_FDCWD, os.fsencode(temporary), _AT_FDCWD, os.fsencode(full), _RENAME_NOREPLACE) == 0:
            return
        code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL):
        raise StorageError(
            f"the file system of {full!r} supports neither hard links nor atomic renames without replacement, so it "
            "cannot store a table; use another one"
        )
    raise OSError(code, os.strerror(code), full)
