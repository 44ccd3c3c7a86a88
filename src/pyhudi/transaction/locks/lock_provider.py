"""Lock providers: one writer at a time in the critical sections of all writers of a table.

``hoodie.write.lock.provider`` names one by Apache Hudi's class name (with or without its package):

* ``InProcessLockProvider``: the threads of this process;
* ``FileSystemBasedLockProvider``: a file ``.hoodie/lock`` that is created exclusively;
* ``StorageBasedLockProvider``: ``.hoodie/.locks/table_lock.json``, conditional puts and a lease that is renewed.

Without the option all processes of this host share a lock that leaves no trace on a local table. An object store has
none such: with several writers (``hoodie.write.concurrency.mode``) its default is ``StorageBasedLockProvider``, with
one a lock among the threads of this process.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pyhudi.config import Options, options
from pyhudi.config.enums import ConcurrencyMode
from pyhudi.errors import LockError
from pyhudi.storage import Lock
from pyhudi.transaction.locks.lock_holder import Holder

_NEWS_AFTER = 5.0
"""Seconds of waiting after which it is said for whom."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LockRetryPolicy:
    """Waiting times for the lock, in seconds: ``tries`` times ``wait``, with ``between`` after each; within a try the
    lock is looked at again after at most ``poll``."""

    wait: float = 60.0
    tries: int = 51
    between: float = 5.0
    poll: float = 1.0

    @classmethod
    def of(cls, given: Mapping[str, str]) -> LockRetryPolicy:
        """From ``hoodie.write.lock.wait_time_ms`` and its companions."""
        opts = Options.parse(given)
        return cls(
            opts.get_typed(options.LOCK_WAIT_TIME_MS) / 1000,
            opts.get_typed(options.LOCK_CLIENT_NUM_RETRIES) + 1,
            opts.get_typed(options.LOCK_CLIENT_RETRY_WAIT_MS) / 1000,
            opts.get_typed(options.LOCK_RETRY_WAIT_MS) / 1000,
        )


class LockProvider(ABC):
    """A table's lock. Not re-entrant. One object stands for one owner and is used by one writer."""

    def __init__(self, retry_policy: LockRetryPolicy | None = None) -> None:
        self.retry_policy = retry_policy or LockRetryPolicy()

    @property
    @abstractmethod
    def held(self) -> bool:
        """True if this owner holds the lock, as far as it knows."""

    @abstractmethod
    def try_acquire(self) -> bool:
        """Take the lock if it is free, without waiting."""

    @abstractmethod
    def release(self) -> None:
        """Release the lock; nothing if it is not held."""

    def ensure_held(self) -> None:
        """``LockError`` when the lock was lost (its lease ran out, somebody broke it). To be called right before the
        step that the lock protects."""
        if not self.held:
            raise LockError(f"{self.describe()} is not held any more; another writer may have it, so do not commit")

    def describe(self) -> str:
        """The lock and, if that can be known, who holds it since when, for messages."""
        return type(self).__name__

    @property
    def cure(self) -> str:
        """Advice for a person when the lock is not given back."""
        return "wait for the other writer, or, if it is gone for good, remove its lock"

    def acquire(self, timeout: float) -> bool:
        """Try for ``timeout`` seconds; whether the lock is held now."""
        deadline = time.monotonic() + timeout
        pause = min(0.02, self.retry_policy.poll)
        while not self.try_acquire():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, pause * random.uniform(0.5, 1.0)))
            pause = min(pause * 2, self.retry_policy.poll)
        return True

    def __enter__(self) -> Self:
        begun = time.monotonic()
        early = min(self.retry_policy.wait, _NEWS_AFTER)
        if self.acquire(early):
            return self
        self._say_for_whom(begun)
        if self.acquire(self.retry_policy.wait - early):
            return self
        for _ in range(self.retry_policy.tries - 1):
            self._say_for_whom(begun)
            time.sleep(self.retry_policy.between)
            if self.acquire(self.retry_policy.wait):
                return self
        raise LockError(f"{self.describe()} could not be taken within {time.monotonic() - begun:.0f} s; {self.cure}")

    def _say_for_whom(self, begun: float) -> None:
        _log.warning("waiting for %s since %.0f s; %s", self.describe(), time.monotonic() - begun, self.cure)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class LocalLockProvider(LockProvider):
    """A lock of :mod:`pyhudi.storage.local_locks` as a provider."""

    def __init__(self, lock: Lock, name: str, retry_policy: LockRetryPolicy | None = None) -> None:
        super().__init__(retry_policy)
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

    @property
    def cure(self) -> str:
        return "wait for the other writer; the lock is free as soon as its process has ended"


def writer_name() -> str:
    """Return the name of the lock's holder, for people who look into it, and for `dead_holder`."""
    return Holder.current().describe()


def dead_holder(text: str) -> bool:
    """Return True if what a lock says names a process of this machine that is known to be dead."""
    holder = Holder.parse(text)
    return holder is not None and holder.is_dead


def new_owner() -> str:
    """Return a unique name for an owner of a lock."""
    return str(uuid.uuid4())


def has_several_writers(opts: Options) -> bool:
    """True if the options say that others write to the table at the same time."""
    return opts.get_typed(options.CONCURRENCY_MODE) is not ConcurrencyMode.SINGLE_WRITER
