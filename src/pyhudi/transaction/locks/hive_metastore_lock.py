"""Lock in a Hive metastore, as of Apache Hudi's ``HiveMetastoreBasedLockProvider``.

The lock is an exclusive one on a table of the metastore, whose database and table options name. A thread sends
heartbeats while it is held. The metastore expires locks without heartbeats (`hive.txn.timeout`), if its housekeeping
runs. Writers of Apache Hudi request the same locks, so that writers of both exclude each other.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from typing import Self

from pyhudi.config import Options, options
from pyhudi.errors import CatalogError, ConfigError, HudiError, LockError, NotInCatalogError
from pyhudi.hive_metastore.metastore_address import MetastoreAddress, find_uris
from pyhudi.hive_metastore.metastore_client import MetastoreClient
from pyhudi.hive_metastore.metastore_locks import LockEntry, LockState, MetastoreLocks
from pyhudi.storage import Storage
from pyhudi.transaction.locks.lock_heartbeat import LockHeartbeat
from pyhudi.transaction.locks.lock_holder import Holder
from pyhudi.transaction.locks.lock_provider import LockProvider, LockRetryPolicy

_AGENT = re.compile(r"pyhudi process (?P<pid>\d+) kernel (?P<kernel>\S*) started (?P<started>\d*)")
_POLL_S = 0.1
_log = logging.getLogger(__name__)


class HiveMetastoreBasedLockProvider(LockProvider):
    """Lock on a table of a metastore, with heartbeats.

    Args:
        locks: Locks on the table.
        heartbeat_s: Seconds between heartbeats.
        retry_policy: Time limits.
    """

    def __init__(self, locks: MetastoreLocks, *, heartbeat_s: float, retry_policy: LockRetryPolicy) -> None:
        super().__init__(retry_policy)
        self._locks, self._heartbeat_s = locks, heartbeat_s
        self._guard = threading.Lock()
        self._id: int | None = None
        self._heartbeat: LockHeartbeat | None = None

    @classmethod
    def from_options(cls, storage: Storage, opts: Options, retry_policy: LockRetryPolicy) -> Self:
        """Create the lock from the options ``hoodie.write.lock.hivemetastore.*``.

        Args:
            storage: Storage of the table; the options alone determine the lock.
            opts: Options of the lock, and settings of Hive by name.
            retry_policy: Time limits.

        Raises:
            ConfigError: Options are invalid or incomplete.
            SetupError: The package pymetastore is not installed.
        """
        del storage
        database, table = (
            _required(opts, option.key)
            for option in (options.LOCK_HIVE_METASTORE_DATABASE, options.LOCK_HIVE_METASTORE_TABLE)
        )
        uris = opts.get_typed(options.LOCK_HIVE_METASTORE_URIS) or find_uris(opts)
        if not uris:
            raise ConfigError(
                f"locks in the Hive metastore require {options.LOCK_HIVE_METASTORE_URIS.key}=thrift://host:9083, or "
                "hive.metastore.uris in a hive-site.xml of the folder HIVE_CONF_DIR"
            )
        heartbeat_s = opts.get_typed(options.LOCK_HEARTBEAT_INTERVAL_MS) / 1000
        client = MetastoreClient(MetastoreAddress.parse(uris, timeout_s=min(max(retry_policy.wait, 1.0), 30.0)))
        holder = Holder.current()
        locks = MetastoreLocks(client, database, table, holder.host, agent_text(holder))
        return cls(locks, heartbeat_s=heartbeat_s, retry_policy=retry_policy)

    @property
    def held(self) -> bool:
        return self._id is not None

    def ensure_held(self) -> None:
        """Send a heartbeat, and raise ``LockError`` if the metastore has no such lock any more, or does not answer."""
        super().ensure_held()
        try:
            self.send_heartbeat()
        except CatalogError as error:
            raise LockError(
                f"{self._locks} could not be checked ({error}), so nothing may be committed; write again when the "
                "metastore responds"
            ) from error
        super().ensure_held()

    def describe(self) -> str:
        try:
            with self._guard:
                entries = self._locks.entries()
        except HudiError as error:
            return f"{self._locks} (unreadable, {error})"
        if not entries:
            return f"{self._locks} (free)"
        holder = entries[0]
        return f"{self._locks} (held by: {holder.user} on {holder.host}, {holder.agent}, lock {holder.id})"

    @property
    def cure(self) -> str:
        return (
            "wait for the other writer; if it no longer runs, the metastore expires its lock after hive.txn.timeout if "
            "its housekeeping is enabled, or remove it by ABORT TRANSACTIONS or the metastore's unlock"
        )

    def try_acquire(self) -> bool:
        return self.acquire(0.0)

    def acquire(self, timeout: float) -> bool:
        """Try to acquire the lock for ``timeout`` seconds, in the queue of the metastore."""
        if self.held:
            return False
        self._end_heartbeat()  # of a lock that was lost
        deadline = time.monotonic() + timeout
        try:
            with self._guard:
                lock_id, state = self._locks.request()
        except CatalogError as error:
            raise LockError(f"{self._locks} could not be acquired: {error}") from error
        try:
            state = self._await(lock_id, state, deadline)
        except BaseException:
            self._give_up(lock_id)
            raise
        if state is not LockState.ACQUIRED:
            self._give_up(lock_id)
            return False
        self._id = lock_id
        self._heartbeat = LockHeartbeat(self.send_heartbeat, self._heartbeat_s, str(self._locks))
        return True

    def _await(self, lock_id: int, state: LockState, deadline: float) -> LockState:
        """Wait until a lock that is queued is acquired. Locks of dead processes of this machine are released."""
        looked = False
        while state is LockState.WAITING:
            if not looked:
                looked = True
                self._release_dead(lock_id)
            elif time.monotonic() >= deadline:
                return state
            else:
                time.sleep(min(_POLL_S, max(deadline - time.monotonic(), 0.0)))
            try:
                with self._guard:
                    state = self._locks.check(lock_id)
            except NotInCatalogError:
                return LockState.NOT_ACQUIRED
            except CatalogError as error:
                raise LockError(f"{self._locks} could not be acquired: {error}") from error
        return state

    def _release_dead(self, lock_id: int) -> None:
        try:
            with self._guard:
                for entry in self._locks.entries():
                    if entry.id != lock_id and _is_dead(entry):
                        _log.warning("releasing %s of a dead writer: %s on %s", self._locks, entry.agent, entry.host)
                        self._locks.release(entry.id)
        except CatalogError as error:
            _log.warning("could not look for dead holders of %s: %s", self._locks, error)

    def _give_up(self, lock_id: int) -> None:
        try:
            with self._guard:
                self._locks.release(lock_id)
        except HudiError as error:
            _log.warning("could not leave the queue of %s, which expires: %s", self._locks, error)

    def send_heartbeat(self) -> bool:
        """Keep the lock. Return False if it is not held, or the metastore has it no longer.

        Raises:
            CatalogError: The metastore does not answer.
        """
        with self._guard:
            if self._id is None:
                return False
            try:
                self._locks.heartbeat(self._id)
            except NotInCatalogError as error:
                self._id = None
                _log.warning("lost: %s (%s)", self._locks, error)
                return False
            return True

    def release(self) -> None:
        self._end_heartbeat()
        with self._guard:
            lock_id, self._id = self._id, None
            try:
                if lock_id is not None:
                    self._locks.release(lock_id)
            except HudiError as error:  # The protected work is done; the metastore expires the lock.
                _log.warning("could not release %s; the metastore expires it: %s", self._locks, error)
            self._locks.close()

    def _end_heartbeat(self) -> None:
        heartbeat, self._heartbeat = self._heartbeat, None
        if heartbeat is not None:
            heartbeat.end()


def agent_text(holder: Holder) -> str:
    """Return the text by which a holder is recognized, as short as metastores store it."""
    return f"pyhudi process {holder.pid} kernel {holder.kernel} started {holder.started}"


def _is_dead(entry: LockEntry) -> bool:
    """Return True if a lock belongs to a process of this machine that is known to be dead."""
    match = _AGENT.fullmatch(entry.agent)
    return match is not None and Holder(entry.host, int(match["pid"]), match["kernel"], match["started"]).is_dead


def _required(opts: Options, key: str) -> str:
    value = opts.get(key)
    if not value:
        raise ConfigError(f"locks in the Hive metastore require {key}, the same for all writers of the table; set it")
    return value
