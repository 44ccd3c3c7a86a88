"""Locks of a Hive metastore: entries on a table, which need not exist, with heartbeats."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pyhudi.errors import NotInCatalogError
from pyhudi.hive_metastore.metastore_client import MetastoreClient, current_user

_EXCLUSIVE, _TABLE = 3, 2
"""Type and level of a lock: of a whole table, for one owner."""
_NO_TRANSACTION = 6
"""Operation of a lock that belongs to no transaction of Hive."""


class LockState(Enum):
    """State of a lock, by the numbers of Hive."""

    ACQUIRED = 1
    WAITING = 2
    ABORT = 3
    NOT_ACQUIRED = 4


@dataclass(frozen=True, slots=True)
class LockEntry:
    """A lock of another or this owner.

    Attributes:
        id: Number in the metastore.
        state: Its state.
        user: User of the owner.
        host: Machine of the owner.
        agent: What the owner says of itself.
    """

    id: int
    state: LockState
    user: str
    host: str
    agent: str


class MetastoreLocks:
    """Locks on one table. For one thread at a time.

    Args:
        client: Client of the metastore.
        database: Database of the lock.
        table: Table of the lock.
        host: Machine of the owner, as shown to others.
        agent: What the owner says of itself; at most 128 characters, which is what metastores store.
    """

    def __init__(self, client: MetastoreClient, database: str, table: str, host: str, agent: str) -> None:
        self._client, self._database, self._table = client, database, table
        self._host, self._agent = host, agent

    def __str__(self) -> str:
        return f"lock on {self._database}.{self._table} in {self._client}"

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def request(self) -> tuple[int, LockState]:
        """Request the lock. Return its number and state; one that waits has to be asked for again, or released."""
        from pymetastore.hive_metastore.ttypes import LockComponent, LockRequest

        component = LockComponent(
            type=_EXCLUSIVE,
            level=_TABLE,
            dbname=self._database,
            tablename=self._table,
            operationType=_NO_TRANSACTION,
        )
        request = LockRequest(
            component=[component], user=current_user(), hostname=self._host, agentInfo=self._agent[:128]
        )
        response = self._client.send(lambda client: client.lock(request))
        return response.lockid, LockState(response.state)

    def check(self, lock_id: int) -> LockState:
        """Return the state of a lock that waits."""
        from pymetastore.hive_metastore.ttypes import CheckLockRequest

        request = CheckLockRequest(lockid=lock_id)
        return LockState(self._client.send(lambda client: client.check_lock(request)).state)

    def heartbeat(self, lock_id: int) -> None:
        """Keep a lock.

        Raises:
            NotInCatalogError: The metastore has no such lock any more.
            CatalogError: The metastore does not answer.
        """
        from pymetastore.hive_metastore.ttypes import HeartbeatRequest

        request = HeartbeatRequest(lockid=lock_id)
        self._client.send(lambda client: client.heartbeat(request))

    def release(self, lock_id: int) -> None:
        """Release a lock, whoever holds it."""
        from pymetastore.hive_metastore.ttypes import UnlockRequest

        request = UnlockRequest(lockid=lock_id)
        try:
            self._client.send(lambda client: client.unlock(request))
        except NotInCatalogError:
            return

    def entries(self) -> list[LockEntry]:
        """Return the locks on the table, the one that is held or the oldest one first."""
        from pymetastore.hive_metastore.ttypes import ShowLocksRequest

        request = ShowLocksRequest(dbname=self._database.lower(), tablename=self._table.lower())
        shown = self._client.send(lambda client: client.show_locks(request)).locks or []
        place = (self._database.lower(), self._table.lower())
        found = [
            LockEntry(one.lockid, LockState(one.state), one.user or "", one.hostname or "", one.agentInfo or "")
            for one in shown
            if (one.dbname, one.tablename) == place
        ]
        return sorted(found, key=lambda one: (one.state is not LockState.ACQUIRED, one.id))
