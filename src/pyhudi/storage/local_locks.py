"""The least that the lower rooms need of a lock, and locks that leave nothing in the table.

``pyhudi.transaction.locks.lock_provider`` has the lock providers of the table format; all of them are :class:`Lock`
too.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from pyhudi.errors import LockError
from pyhudi.storage import posix_files
from pyhudi.storage.fault_injection import FaultyStorage
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.storage.object_storage import ObjectStorage
from pyhudi.storage.storage_protocol import Storage

_NOT_WORTH_A_THREAD = 0.005
_log = logging.getLogger(__name__)

_registry_guard = threading.Lock()
_registry: dict[str, threading.Lock] = {}


@runtime_checkable
class Lock(Protocol):
    """Mutual exclusion, not re-entrant. ``with lock:`` acquires with the lock's own patience."""

    def acquire(self, timeout: float) -> bool:
        """Try for ``timeout`` seconds; whether the lock is held now."""

    def release(self) -> None:
        """Release the lock; nothing if it is not held."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class InProcessLock:
    """A lock among the threads of this process that use the same name (for a table: its root)."""

    def __init__(self, name: str, timeout: float = 60.0) -> None:
        self.name = name
        self.timeout = timeout
        with _registry_guard:
            self._lock = _registry.setdefault(name, threading.Lock())
        self._held = False

    @property
    def held(self) -> bool:
        """True if this object holds the lock."""
        return self._held

    def acquire(self, timeout: float) -> bool:
        """Try for ``timeout`` seconds; whether the lock is held now."""
        got = self._lock.acquire(timeout=max(timeout, 0.0))
        if got:
            self._held = True
        return got

    def release(self) -> None:
        """Release the lock; nothing if it is not held."""
        if self._held:
            self._held = False
            self._lock.release()

    def __enter__(self) -> Self:
        if not self.acquire(self.timeout):
            raise LockError(f"another thread of this process holds the lock of {self.name!r} since {self.timeout:g} s")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class FolderLock:
    """Mutual exclusion of all threads and processes of this host, on an existing folder, leaving no file behind.

    The kernel drops it when its holder dies.
    """

    def __init__(self, storage: LocalStorage, folder: str, timeout: float = 60.0) -> None:
        self._folder = storage.local_path(folder)
        self.timeout = timeout
        self._handle: int | None = None

    @property
    def held(self) -> bool:
        """True if this object holds the lock."""
        return self._handle is not None

    def acquire(self, timeout: float) -> bool:
        """Try for ``timeout`` seconds; whether the lock is held now. ``NotFoundError`` without the folder."""
        deadline = time.monotonic() + timeout
        with posix_files.errors(self._folder):
            handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        pause = 0.0005
        try:
            while not posix_files.try_flock(handle, self._folder):
                if time.monotonic() >= deadline:
                    os.close(handle)
                    return False
                time.sleep(pause)
                pause = min(pause * 1.5, 0.02)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        return True

    def release(self) -> None:
        """Release the lock; nothing if it is not held."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            fcntl.flock(handle, fcntl.LOCK_UN)  # a forked child may keep the descriptor open
            os.close(handle)

    def __enter__(self) -> Self:
        if not self.acquire(self.timeout):
            raise LockError(f"another process holds the lock on folder {self._folder!r} since {self.timeout:g} s")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class DeferredReleaseLock:
    """A lock that may have to be kept for longer than its holder has work: it is given back when the time is over, and
    the holder goes on meanwhile.

    One object has one user. If that takes it again before it was given back, it goes on holding it, at once; what must
    not be done before the time is over calls `wait_for_earlier`. The end of the interpreter waits until the lock was
    given back.
    """

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._until = 0.0
        self._earlier = 0.0
        self._leaving: threading.Thread | None = None
        self._stay = threading.Event()
        self._released = True

    def keep_until(self, moment: float) -> None:
        """Defer the release of the lock to a moment of the monotonic clock."""
        self._until = max(self._until, moment)

    def wait_for_earlier(self) -> bool:
        """Wait until the lock could have been given back after it was held the last time; whether that took time."""
        left = self._earlier - time.monotonic()
        if left <= 0:
            return False
        time.sleep(left)
        return True

    def __enter__(self) -> Self:
        self._earlier = self._until
        if self._leaving is not None:
            self._stay.set()
            self._leaving.join()
            self._leaving = None
            self._stay.clear()
            if not self._released:
                if getattr(self._lock, "held", True):
                    return self
                self._lock.release()  # lost meanwhile
        self._lock.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = self._until - time.monotonic()
        if left <= _NOT_WORTH_A_THREAD:
            time.sleep(max(left, 0.0))
            self._lock.release()
            return
        self._released = False
        self._leaving = threading.Thread(target=self._leave, args=(left,), name="pyhudi-lock", daemon=False)
        self._leaving.start()

    def _leave(self, seconds: float) -> None:
        if self._stay.wait(seconds):
            return
        self._released = True
        try:
            self._lock.release()
        except Exception as failure:  # its lease runs out, or who wants it next says who has it
            _log.warning("a lock was not given back: %s", failure)


def is_remote(storage: Storage) -> bool:
    """Return True if processes of other machines reach the same files, so that no lock of this machine keeps them out.
    A local path counts as this machine's, though it may be mounted elsewhere, too."""
    while isinstance(storage, FaultyStorage):
        storage = storage.inner
    return isinstance(storage, ObjectStorage) and not storage.is_in_process


def host_lock(storage: Storage, folder: str = ".hoodie") -> Lock:
    """The widest lock that a storage gives without leaving a trace: among all processes of this host that use the
    same table on a local file system, else among the threads of this process. For short critical sections such as
    taking an instant time; writers that need more name a lock provider."""
    while isinstance(storage, FaultyStorage):
        storage = storage.inner
    if isinstance(storage, LocalStorage):
        return FolderLock(storage, folder)
    return InProcessLock(f"host:{storage.root}/{folder}")
