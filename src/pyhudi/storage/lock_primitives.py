"""Lock protocol, and locks that leave no files in the table.

``pyhudi.transaction.locks.lock_provider`` has the lock providers of the table format, which also implement
:class:`Lock`.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from abc import ABC, abstractmethod
from typing import Protocol, Self, runtime_checkable

from pyhudi.errors import LockError
from pyhudi.storage import posix_files
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.storage.object_store.object_storage import ObjectStorage
from pyhudi.storage.storage_protocol import Storage
from pyhudi.storage.table_paths import META_FOLDER

_NOT_WORTH_A_THREAD = 0.005
_log = logging.getLogger(__name__)

_registry_guard = threading.Lock()
_registry: dict[str, threading.Lock] = {}


@runtime_checkable
class Lock(Protocol):
    """Mutual exclusion, not re-entrant. ``with lock:`` acquires the lock within the lock's own time limit."""

    def acquire(self, timeout: float) -> bool:
        """Try to acquire the lock for ``timeout`` seconds. Return True if it is held."""

    def release(self) -> None:
        """Release the lock if it is held."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class _TimedLock(ABC):
    """Lock with a time limit for ``with``."""

    timeout: float

    @abstractmethod
    def acquire(self, timeout: float) -> bool:
        """Try to acquire the lock for ``timeout`` seconds. Return True if it is held."""

    @abstractmethod
    def release(self) -> None:
        """Release the lock if it is held."""

    @abstractmethod
    def _describe(self) -> tuple[str, str]:
        """Return names of the locked object and of other possible holders, for messages."""

    def __enter__(self) -> Self:
        if not self.acquire(self.timeout):
            what, holder = self._describe()
            raise LockError(f"the lock {what} could not be acquired within {self.timeout:g} s: {holder} holds it")
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


class InProcessLock(_TimedLock):
    """Lock between threads of this process that use the same name (for a table: its root)."""

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
        """Try to acquire the lock for ``timeout`` seconds. Return True if it is held."""
        got = self._lock.acquire(timeout=max(timeout, 0.0))
        if got:
            self._held = True
        return got

    def release(self) -> None:
        """Release the lock if it is held."""
        if self._held:
            self._held = False
            self._lock.release()

    def _describe(self) -> tuple[str, str]:
        return f"of {self.name!r}", "another thread of this process"


class FolderLock(_TimedLock):
    """Mutual exclusion between all threads and processes of this host. Locks an existing folder and leaves no file
    behind.

    The kernel releases the lock when its holder dies.
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
        """Try to acquire the lock for ``timeout`` seconds. Return True if it is held.

        Raises:
            NotFoundError: The folder does not exist.
        """
        deadline = time.monotonic() + timeout
        pause = 0.0005
        while not self._try_acquire():
            if time.monotonic() >= deadline:
                return False
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        return True

    def _try_acquire(self) -> bool:
        """Lock the folder that has the name now: while another process held the lock, it may have been replaced."""
        with posix_files.errors(self._folder):
            handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                if posix_files.try_flock(handle, self._folder) and posix_files.has_name(handle, self._folder):
                    self._handle = handle
            finally:
                if self._handle != handle:
                    os.close(handle)
        return self._handle == handle

    def release(self) -> None:
        """Release the lock if it is held."""
        handle = self._handle
        if handle is not None:
            fcntl.flock(handle, fcntl.LOCK_UN)  # A forked child may keep the descriptor open.
            self._handle = None
            os.close(handle)

    def _describe(self) -> tuple[str, str]:
        return f"on folder {self._folder!r}", "another process"


class DeferredReleaseLock:
    """Lock whose release can be deferred to a later time, while its holder continues.

    An object has a single user. If the user acquires the lock again before its release, the lock is simply kept.
    Operations that must not run before the deferred time call `wait_for_earlier`. The interpreter exits only after the
    release. An interrupt (Ctrl-C) while the release is awaited or deferred releases the lock at once.
    """

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._until = 0.0
        self._earlier = 0.0
        self._release: _DeferredRelease | None = None

    def keep_until(self, moment: float) -> None:
        """Defer the release of the lock until ``moment`` of the monotonic clock."""
        self._until = max(self._until, moment)

    def ensure_held(self) -> None:
        """Check that the lock was not lost, if it can be. Must be called immediately before the protected step.

        Raises:
            LockError: Another process may hold it.
        """
        check = getattr(self._lock, "ensure_held", None)
        if check is not None:
            check()

    def wait_for_earlier(self) -> bool:
        """Wait until the time of the last deferred release has passed. Return True if this took time."""
        left = self._earlier - time.monotonic()
        if left <= 0:
            return False
        time.sleep(left)
        return True

    def __enter__(self) -> Self:
        self._earlier = self._until
        try:
            if self._is_kept():
                return self
        except BaseException:
            self._lock.release()
            raise
        self._lock.__enter__()
        return self

    def _is_kept(self) -> bool:
        """Return True if the lock has not been released since its last use, and will not be."""
        release, self._release = self._release, None
        if release is None:
            return False
        release.cancel()
        release.join()
        if release.is_done:
            return False
        if getattr(self._lock, "held", True):
            return True
        self._lock.release()  # The lock has been lost in the meantime.
        return False

    def __exit__(self, *error: object) -> None:
        left = self._until - time.monotonic()
        try:
            if left > _NOT_WORTH_A_THREAD:
                self._release = _DeferredRelease(self._lock, left)
                self._release.start()
                return
            time.sleep(max(left, 0.0))
            self._lock.release()
        except BaseException:
            release, self._release = self._release, None
            if release is not None:
                release.cancel()
            if getattr(self._lock, "held", True):
                self._lock.release()
            raise


class _DeferredRelease(threading.Thread):
    """Releases a lock after a number of seconds, unless it is cancelled before."""

    def __init__(self, lock: Lock, seconds: float) -> None:
        super().__init__(name="pyhudi-lock", daemon=False)
        self._lock = lock
        self._seconds = seconds
        self._cancelled = threading.Event()
        self.is_done = False

    def cancel(self) -> None:
        """Cancel the release, if it is not too late."""
        self._cancelled.set()

    def run(self) -> None:
        if self._cancelled.wait(self._seconds):
            return
        self.is_done = True
        try:
            self._lock.release()
        except Exception as failure:  # Its lease expires, or the next holder reports who has it.
            _log.warning("a lock was not released: %s", failure)


def is_remote(storage: Storage) -> bool:
    """Return True if processes on other machines can access the same files, so that a lock of this machine does not
    exclude them.

    A local path counts as local even if it is mounted elsewhere, too.
    """
    unwrapped = storage.unwrapped
    return isinstance(unwrapped, ObjectStorage) and not unwrapped.is_in_process


def host_lock(storage: Storage, folder: str = META_FOLDER) -> Lock:
    """Return the widest lock of a storage that leaves no files.

    On a local file system it excludes all processes of this host that use the same table, otherwise the threads of this
    process. It protects short critical sections such as issuing an instant time; writers that need more use a lock
    provider.
    """
    unwrapped = storage.unwrapped
    if isinstance(unwrapped, LocalStorage):
        return FolderLock(unwrapped, folder)
    return InProcessLock(f"host:{storage.root}/{folder}")
