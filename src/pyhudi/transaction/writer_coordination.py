"""Coordination of one writer with others: lock, instant times and rollbacks of failed writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pyhudi.timeline import heartbeat
from pyhudi.transaction.locks.lock_factory import make_lock_provider, make_time_generator
from pyhudi.transaction.locks.lock_provider import LockProvider
from pyhudi.transaction.rollback.rollback_executor import RollbackExecutor

if TYPE_CHECKING:
    from pyhudi.config import Options
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.timeline.time_generator import TimeGenerator


@dataclass(frozen=True, slots=True)
class WriterCoordination:
    """Lock, instant times and rollbacks with which a writer is coordinated with others.

    Attributes:
        lock: Lock of the table, to check that it is still held.
        generator: Generator of instant times, which holds the lock meanwhile.
        rollbacks: Rollbacks of failed writes.
    """

    lock: LockProvider
    generator: TimeGenerator
    rollbacks: RollbackExecutor

    @classmethod
    def from_options(cls, storage: Storage, config: TableConfig, opts: Options) -> Self:
        """Return the coordination of a writer of a table."""
        lock = make_lock_provider(storage, opts)
        generator = make_time_generator(storage, opts, config.timezone, lock)
        policy = heartbeat.HeartbeatPolicy.from_options(opts)
        return cls(lock, generator, RollbackExecutor(storage, config.version, generator, policy))
