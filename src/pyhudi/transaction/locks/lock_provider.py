"""Lock providers: mutual exclusion in the critical sections of all writers of a table.

``hoodie.write.lock.provider`` is one of Apache Hudi's class names (with or without package):

* ``InProcessLockProvider``: threads of this process
* ``FileSystemBasedLockProvider``: a file ``.hoodie/lock`` that is created exclusively
* ``StorageBasedLockProvider``: ``.hoodie/.locks/table_lock.json``, conditional puts and a lease that is renewed
* ``ZookeeperBasedLockProvider``, ``ZookeeperBasedImplicitBasePathLockProvider``: a node in ZooKeeper
* ``DynamoDBBasedLockProvider``, ``DynamoDBBasedImplicitPartitionKeyLockProvider``: an item in DynamoDB
* ``HiveMetastoreBasedLockProvider``: a lock in a Hive metastore

Without the option, several writers (``hoodie.write.concurrency.mode``) with ``hoodie.write.lock.zookeeper.url`` have
``ZookeeperBasedLockProvider``. Otherwise all processes of this host share a lock that leaves no files in a local table.
Object stores have none: with several writers their default is ``StorageBasedLockProvider``, with a single writer a lock
between the threads of this process.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

from pyhudi.config import Options, options
from pyhudi.errors import LockError
from pyhudi.storage import Lock
from pyhudi.transaction.locks.lock_holder import Holder

_NEWS_AFTER = 5.0
"""Seconds of waiting after which the holder is logged."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LockRetryPolicy:
    """Retry policy in seconds: ``tries`` attempts of ``wait`` each, with pauses of ``between``. During an attempt the
    lock is checked at intervals of at most ``poll``."""

    wait: float = 60.0
    tries: int = 51
    between: float = 5.0
    poll: float = 1.0

    @classmethod
    def from_options(cls, opts: Options) -> LockRetryPolicy:
        """Create the policy from ``hoodie.write.lock.wait_time_ms`` and related options."""
        return cls(
            opts.get_typed(options.LOCK_WAIT_TIME_MS) / 1000,
            opts.get_typed(options.LOCK_CLIENT_NUM_RETRIES) + 1,
            opts.get_typed(options.LOCK_CLIENT_RETRY_WAIT_MS) / 1000,
            opts.get_typed(options.LOCK_RETRY_WAIT_MS) / 1000,
        )


class LockProvider(ABC):
    """Lock of a table. Not re-entrant. An object represents one owner and is used by one writer."""

    def __init__(self, retry_policy: LockRetryPolicy | None = None) -> None:
        self.retry_policy = retry_policy or LockRetryPolicy()

    @property
    @abstractmethod
    def held(self) -> bool:
        """True if this owner holds the lock, as far as it knows."""

    @abstractmethod
    def try_acquire(self) -> bool:
        """Acquire the lock if it is free, without waiting."""

    @abstractmethod
    def release(self) -> None:
        """Release the lock if it is held, and any resources of an unsuccessful attempt to acquire it."""

    def ensure_held(self) -> None:
        """Raise ``LockError`` if the lock was lost (its lease expired, or another process broke it). Must be called
        immediately before the protected step."""
        if not self.held:
            raise LockError(
                f"{self.describe()} is no longer held; another writer may hold it, so nothing may be committed or "
                "deleted any more. Run the operation again; what it has begun is continued then, or rolled back"
            )

    def describe(self) -> str:
        """Describe the lock for messages, if possible with its holder and the time since when it is held."""
        return type(self).__name__

    @property
    def cure(self) -> str:
        """Advice for the user if the lock is not released."""
        return "wait for the other writer, or, if it no longer runs, remove its lock"

    def acquire(self, timeout: float) -> bool:
        """Try to acquire the lock for ``timeout`` seconds. Return True if it is held."""
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
        was_held = self.held
        try:
            self._wait()
        except BaseException:
            if not was_held:  # Waiting may have taken something, too, such as a session.
                self.release()
            raise
        return self

    def _wait(self) -> None:
        started = time.monotonic()
        early = min(self.retry_policy.wait, _NEWS_AFTER)
        if self.acquire(early):
            return
        self._warn_of_holder(started)
        if self.acquire(self.retry_policy.wait - early):
            return
        for _ in range(self.retry_policy.tries - 1):
            self._warn_of_holder(started)
            time.sleep(self.retry_policy.between)
            if self.acquire(self.retry_policy.wait):
                return
        raise LockError(
            f"{self.describe()} could not be acquired within {time.monotonic() - started:.0f} s; {self.cure}"
        )

    def _warn_of_holder(self, started: float) -> None:
        _log.warning("waiting for %s since %.0f s; %s", self.describe(), time.monotonic() - started, self.cure)

    def __exit__(self, *error: object) -> None:
        self.release()


class LocalLockProvider(LockProvider):
    """Adapter from a lock of :mod:`pyhudi.storage.lock_primitives` to a provider."""

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
        self._lock.release()  # which may be held although an interrupt has come before it was noted
        self._held = False

    def describe(self) -> str:
        return f"the lock of {self._name!r} between the writers of this machine"

    @property
    def cure(self) -> str:
        return "wait for the other writer; the lock is released when its process ends"


def writer_name() -> str:
    """Return the name of the lock's holder, for users who inspect it, and for `dead_holder`."""
    return Holder.current().describe()


def dead_holder(text: str) -> bool:
    """Return True if the text in a lock names a process of this machine that is known to be dead."""
    holder = Holder.parse(text)
    return holder is not None and holder.is_dead


def new_owner() -> str:
    """Return a unique name for an owner of a lock."""
    return str(uuid.uuid4())
