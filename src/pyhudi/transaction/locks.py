"""Lock providers: one writer at a time in the critical sections of all writers of a table.

``hoodie.write.lock.provider`` names one by Apache Hudi's class name (with or without its package):

* ``InProcessLockProvider``: the threads of this process;
* ``FileSystemBasedLockProvider``: a file ``.hoodie/lock`` that is created exclusively;
* ``StorageBasedLockProvider``: ``.hoodie/.locks/table_lock.json``, conditional puts and a lease that is renewed.

Without the option the widest lock that leaves no trace serves: all processes of this host on a local table.
"""

from __future__ import annotations

import logging
import os
import random
import socket
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pyhudi.errors import InvalidOptionError, LockError
from pyhudi.storage import Lock, Storage, host_lock

PROVIDER_KEY = "hoodie.write.lock.provider"
_PACKAGES = ("org.apache.hudi.client.transaction.lock.", "org.apache.hudi.aws.transaction.lock.", "org.apache.hudi.")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a writer waits for the lock, in seconds: ``tries`` times ``wait``, with ``between`` after each; within
    a try the lock is looked at again after at most ``poll``."""

    wait: float = 60.0
    tries: int = 51
    between: float = 5.0
    poll: float = 1.0

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Patience:
        """From ``hoodie.write.lock.wait_time_ms`` and its companions."""
        return cls(
            number(options, "hoodie.write.lock.wait_time_ms", 60_000) / 1000,
            number(options, "hoodie.write.lock.client.num_retries", 50) + 1,
            number(options, "hoodie.write.lock.client.wait_time_ms_between_retry", 5_000) / 1000,
            number(options, "hoodie.write.lock.wait_time_ms_between_retry", 1_000) / 1000,
        )


class LockProvider(ABC):
    """A table's lock. Not re-entrant. One object stands for one owner and is used by one writer."""

    def __init__(self, patience: Patience | None = None) -> None:
        self.patience = patience or Patience()

    @property
    @abstractmethod
    def held(self) -> bool:
        """Whether this owner holds the lock, as far as it knows."""

    @abstractmethod
    def try_acquire(self) -> bool:
        """Take the lock if it is free, without waiting."""

    @abstractmethod
    def release(self) -> None:
        """Give the lock back; nothing when it is not held."""

    def ensure_held(self) -> None:
        """``LockError`` when the lock was lost (its lease ran out, somebody broke it). To be called right before the
        step that the lock protects."""
        if not self.held:
            raise LockError(f"{self.describe()} is not held any more; another writer may have it, so do not commit")

    def describe(self) -> str:
        """The lock and, if that can be known, its holder, for messages."""
        return type(self).__name__

    def acquire(self, timeout: float) -> bool:
        """Try for ``timeout`` seconds; whether the lock is held now."""
        deadline = time.monotonic() + timeout
        pause = min(0.02, self.patience.poll)
        while not self.try_acquire():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, pause * random.uniform(0.5, 1.0)))
            pause = min(pause * 2, self.patience.poll)
        return True

    def __enter__(self) -> Self:
        begun = time.monotonic()
        for left in range(self.patience.tries - 1, -1, -1):
            if self.acquire(self.patience.wait):
                return self
            _log.warning("waiting for %s since %.0f s", self.describe(), time.monotonic() - begun)
            if left:
                time.sleep(self.patience.between)
        raise LockError(
            f"{self.describe()} could not be taken within {time.monotonic() - begun:.0f} s; wait for the other writer, "
            "or, if it is gone for good, remove its lock"
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class TracelessLockProvider(LockProvider):
    """A lock of :mod:`pyhudi.storage.locking` as a provider."""

    def __init__(self, lock: Lock, name: str, patience: Patience | None = None) -> None:
        super().__init__(patience)
        self._lock = lock
        self._name = name
        self._held = False

    @property
    def held(self) -> bool:
        return self._held

    def try_acquire(self) -> bool:
        return self.acquire(0.0)

    def acquire(self, timeout: float) -> bool:
        got = self._lock.acquire(timeout)
        self._held = self._held or got
        return got

    def release(self) -> None:
        if self._held:
            self._held = False
            self._lock.release()

    def describe(self) -> str:
        return f"the lock of {self._name!r} among the writers of this machine"


def writer_name() -> str:
    """Who holds a lock, for people who look into the lock file."""
    return f"pyhudi on {socket.gethostname()}, process {os.getpid()}, thread {threading.current_thread().name}"


def new_owner() -> str:
    """A name for the owner of a lock that nobody else has."""
    return str(uuid.uuid4())


def number(options: Mapping[str, str], key: str, default: int, least: int = 0) -> int:
    """An option that is a whole number; ``InvalidOptionError`` otherwise."""
    raw = options.get(key, str(default))
    try:
        value = int(raw)
    except ValueError:
        value = least - 1
    if value < least:
        raise InvalidOptionError(key, raw, f"a whole number, {least} or more")
    return value


def lock_provider(storage: Storage, options: Mapping[str, str]) -> LockProvider:
    """The lock of a table as the options name it; a new owner each time."""
    from pyhudi.storage import InProcessLock
    from pyhudi.transaction.file_lock import FileSystemBasedLockProvider
    from pyhudi.transaction.storage_lock import StorageBasedLockProvider

    patience = Patience.of(options)
    known: dict[str, Callable[[], LockProvider]] = {
        "": lambda: TracelessLockProvider(host_lock(storage, ""), storage.root, patience),
        "InProcessLockProvider": lambda: TracelessLockProvider(InProcessLock(storage.root), storage.root, patience),
        "FileSystemBasedLockProvider": lambda: FileSystemBasedLockProvider.of(storage, options, patience),
        "StorageBasedLockProvider": lambda: StorageBasedLockProvider.of(storage, options, patience),
    }
    named = options.get(PROVIDER_KEY, "")
    short = named
    for package in _PACKAGES:
        short = short.removeprefix(package)
    if short not in known:
        raise InvalidOptionError(PROVIDER_KEY, named, ", ".join(name for name in known if name))
    return known[short]()
