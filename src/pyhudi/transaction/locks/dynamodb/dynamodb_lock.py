"""Lock in DynamoDB, as of Apache Hudi's ``DynamoDBBasedLockProvider``.

The lock is an item of a table (:mod:`pyhudi.transaction.locks.dynamodb.dynamodb_lock_table`) that has a lease. A thread
changes its version several times within the lease. Others take over the lock if its version has not changed for the
duration of the lease, so no clocks are compared. Apache Hudi uses the DynamoDB Lock Client of AWS, whose items are the
same, so writers of both exclude each other.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from dataclasses import replace
from typing import Self

from pyhudi.config import Options, options
from pyhudi.errors import HudiError, LockError
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.transaction.locks.base_path_hash import base_path_hash
from pyhudi.transaction.locks.dynamodb.dynamodb_client import ThrottledError
from pyhudi.transaction.locks.dynamodb.dynamodb_lock_table import DynamoDbLockItem, DynamoDbLockTable
from pyhudi.transaction.locks.lock_heartbeat import LockHeartbeat
from pyhudi.transaction.locks.lock_provider import LockProvider, LockRetryPolicy, dead_holder, new_owner, writer_name

MIN_LEASE_S = 5.0
"""Shortest lease of locks from options: a shorter one could be lost between two requests."""
_HEARTBEATS = 3
"""Number of renewals within a lease, as in Apache Hudi."""
_USABLE = 0.9
"""Part of a lease within which its owner relies on it. The rest is for the protected step, and for the difference in
speed of two clocks."""
_log = logging.getLogger(__name__)


class DynamoDBBasedLockProvider(LockProvider):
    """Lock with a lease that is renewed.

    Args:
        table: Table of locks.
        key: Name of the lock.
        lease_s: Seconds after which others may take the lock over unless it is renewed.
        retry_policy: Time limits.
    """

    def __init__(
        self,
        table: DynamoDbLockTable,
        key: str,
        *,
        lease_s: float = 60.0,
        retry_policy: LockRetryPolicy | None = None,
    ) -> None:
        super().__init__(retry_policy)
        self._table, self._key = table, key
        self._lease_s, self._heartbeat_s = lease_s, lease_s / _HEARTBEATS
        self._owner = f"{new_owner()} {writer_name()}"
        self._guard = threading.Lock()
        self._item: DynamoDbLockItem | None = None
        self._renewed = 0.0
        self._seen: DynamoDbLockItem | None = None
        self._seen_since = 0.0
        self._heartbeat: LockHeartbeat | None = None

    @classmethod
    def from_options(
        cls, storage: Storage, opts: Options, retry_policy: LockRetryPolicy, *, implicit: bool = False
    ) -> Self:
        """Create the lock from the options ``hoodie.write.lock.dynamodb.*``. As in Apache Hudi its lease is
        ``hoodie.write.lock.wait_time_ms``, but at least `MIN_LEASE_S`.

        Args:
            storage: Storage of the table.
            opts: Options of the lock.
            retry_policy: Time limits.
            implicit: The name of the lock follows from the path of the table
                (``DynamoDBBasedImplicitPartitionKeyLockProvider``).

        Raises:
            ConfigError: Options are invalid.
            SetupError: The package boto3 is not installed.
        """
        lease_s = max(retry_policy.wait, MIN_LEASE_S)
        # A request is sent up to three times, so one that is not answered leaves time for another one.
        table = DynamoDbLockTable.from_options(opts, timeout_s=min(max(lease_s / 12, 1.0), 5.0))
        key = base_path_hash(storage) if implicit else _partition_key(storage, opts)
        return cls(table, key, lease_s=lease_s, retry_policy=retry_policy)

    @property
    def held(self) -> bool:
        return self._item is not None and time_with_suspension() - self._renewed < self._lease_s * _USABLE

    def ensure_held(self) -> None:
        """Renew the lease, and raise ``LockError`` if another owner has the lock. If DynamoDB does not answer, the lock
        is held as long as its lease."""
        try:
            self.renew()
        except HudiError as error:
            if not self.held:
                raise LockError(
                    f"{self._name()} could not be checked ({error}), and its lease has expired, so nothing may be "
                    "committed; write again when DynamoDB responds"
                ) from error
            _log.warning("could not renew the lease of %s, which is still valid: %s", self._name(), error)
        super().ensure_held()

    def describe(self) -> str:
        try:
            current = self._table.get(self._key)
        except HudiError as error:
            return f"{self._name()} (unreadable, {error})"
        if current is None or current.released:
            return f"{self._name()} (free)"
        return f"{self._name()} (held by: {current.owner}; lease of {current.lease_ms / 1000:g} s)"

    def _name(self) -> str:
        return f"lock {self._key!r} in {self._table}"

    @property
    def cure(self) -> str:
        lease = self._seen.lease_ms / 1000 if self._seen is not None else self._lease_s
        return (
            f"wait for the other writer; if it no longer runs, the lock is taken over by who waits for {lease:g} s "
            f"({options.LOCK_WAIT_TIME_MS.key}, {options.LOCK_CLIENT_NUM_RETRIES.key})"
        )

    def acquire(self, timeout: float) -> bool:
        """Try to acquire the lock for ``timeout`` seconds.

        If its owner has not renewed it for more than half of its lease, it is probably dead, and the wait continues to
        the end of the lease. Otherwise writers that wait for no longer than the lease would never take a lock over.
        """
        if super().acquire(timeout):
            return True
        while self._seen is not None:
            lease_s, unchanged_s = self._seen.lease_ms / 1000, self._unchanged_s()
            if not lease_s / 2 < unchanged_s <= lease_s:
                break
            time.sleep(min(self.retry_policy.poll, max(lease_s - unchanged_s, 0.01)))
            if self.try_acquire():
                return True
        return False

    def try_acquire(self) -> bool:
        if self._item is not None:
            return False
        self._end_heartbeat()  # of a lock that was lost
        try:
            with self._guard:
                if not self._take_if_free():
                    return False
        except ThrottledError as error:
            _log.warning("could not ask for %s: %s", self._name(), error)
            return False
        acquired = False
        try:
            self._heartbeat = LockHeartbeat(self.renew, self._heartbeat_s, self._name())
            acquired = self.held  # The put may have taken longer than the lease.
        finally:
            if not acquired:
                self.release()
        return acquired

    def _take_if_free(self) -> bool:
        current = self._table.get(self._key)
        if current is not None and not self._is_free(current):
            return False
        self._seen = None
        return self._take(current)

    def _is_free(self, current: DynamoDbLockItem) -> bool:
        """Return True if a lock may be taken over: it was released, its owner is dead or has not renewed it for as long
        as its lease, or a failed attempt of this owner has created it."""
        if current.released or current.owner == self._owner:
            return True
        if self._seen is None or self._seen.version != current.version:
            # The item was read before now, so the lease of its owner ends before the one that is counted here.
            self._seen, self._seen_since = current, time.monotonic()
        if dead_holder(current.owner):
            _log.warning("taking over %s from a dead writer: %s", self._name(), current.owner)
            return True
        if self._unchanged_s() <= current.lease_ms / 1000:
            return False
        _log.warning("taking over %s, not renewed for %.0f s by: %s", self._name(), self._unchanged_s(), current.owner)
        return True

    def _unchanged_s(self) -> float:
        return time.monotonic() - self._seen_since

    def _take(self, current: DynamoDbLockItem | None) -> bool:
        """Put an item of this owner over one that is free. Return True if it is stored."""
        item = self._next_item()
        started = time_with_suspension()
        try:
            if not self._table.put(item, current.version if current else None) and not self._is_stored(item):
                return False
        except BaseException:
            self._withdraw(item)
            raise
        self._item, self._renewed = item, started
        return True

    def _next_item(self) -> DynamoDbLockItem:
        return DynamoDbLockItem(self._key, self._owner, int(self._lease_s * 1000), str(uuid.uuid4()))

    def _is_stored(self, item: DynamoDbLockItem) -> bool:
        """Return True if a refused request had been sent twice, and the first one has stored the item."""
        return self._table.get(self._key) == item

    def _withdraw(self, item: DynamoDbLockItem) -> None:
        """Delete an item that may have been stored by a request that failed."""
        try:
            self._table.delete(item)
        except HudiError as error:
            _log.warning(
                "%s may have been acquired by a request that failed; its lease expires: %s", self._name(), error
            )

    def renew(self) -> bool:
        """Renew the lease. Return False if the lock is not held, or held by another owner."""
        with self._guard:
            if self._item is None:
                return False
            started = time_with_suspension()
            renewed = self._renewal(self._item)
            if renewed is None:
                self._item = None
                _log.warning("lost: %s", self._name())
                return False
            self._item, self._renewed = renewed, started
            return True

    def _renewal(self, item: DynamoDbLockItem) -> DynamoDbLockItem | None:
        """Give the item another version. Return None if it is another owner's."""
        renewed = self._next_item()
        if self._table.renew(renewed, item.version):
            return renewed
        # A request that was not answered, this one or an earlier one, may have changed the version.
        current = self._table.get(self._key)
        if current is None or current.owner != self._owner:
            return None
        if current.version == renewed.version or self._table.renew(renewed, current.version):
            return renewed
        return None

    def release(self) -> None:
        self._end_heartbeat()
        with self._guard:
            item, self._item = self._item, None
            if item is not None:
                try:
                    self._delete(item)
                except HudiError as error:  # The protected work is done; the lease expires.
                    _log.warning("could not release %s; its lease expires: %s", self._name(), error)

    def _end_heartbeat(self) -> None:
        heartbeat, self._heartbeat = self._heartbeat, None
        if heartbeat is not None:
            heartbeat.end()

    def _delete(self, item: DynamoDbLockItem) -> None:
        """Delete the item if it is this owner's, in any version."""
        if self._table.delete(item):
            return
        current = self._table.get(self._key)
        if current is None:  # Deleted by a request that was sent twice, or removed by somebody.
            return
        if current.owner != self._owner or not self._table.delete(replace(item, version=current.version)):
            _log.warning("lost before it was released: %s", self._name())


def time_with_suspension() -> float:
    """Return seconds of a clock that continues while the machine is suspended, as the leases of others do."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


def _partition_key(storage: Storage, opts: Options) -> str:
    key = opts.get_typed(options.LOCK_DYNAMODB_PARTITION_KEY) or opts.get_typed(options.TABLE_NAME)
    return key or TableConfig.load(storage).name
