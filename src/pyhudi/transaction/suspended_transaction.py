"""Transfer of a write between processes: one starts it, another commits it or rolls it back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pyhudi.config import Options
from pyhudi.errors import TransactionError
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Instant, State
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.liveness_signals import HeartbeatSignals
from pyhudi.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True)
class SuspendedTransaction:
    """State of an inflight write, to be pickled.

    Attributes:
        storage: Storage of the table.
        config: Configuration of the table since the start of the write.
        operation: Operation type, such as ``BULK_INSERT``.
        opts: Options of the write.
        instant: The inflight instant.
        timeline: The timeline when the requested file was created; later completions may conflict.
        active: The same with its files.
    """

    storage: Storage
    config: TableConfig
    operation: str
    opts: Options
    instant: Instant
    timeline: Timeline
    active: ActiveTimeline


class ResumableTransaction(Transaction):
    """A write that may be ended by another process. It has no heartbeat, which only a running process can refresh, so
    failed writes must be rolled back eagerly (`hoodie.clean.failed.writes.policy`)."""

    def suspend(self) -> SuspendedTransaction:
        """Leave the inflight write to the process that resumes it. This object must not be used afterwards.

        Raises:
            TransactionError: The write is not inflight, or has a heartbeat, which would end.
        """
        has_heartbeat = isinstance(self._signals, HeartbeatSignals)
        if has_heartbeat or self._instant.state is not State.INFLIGHT or self._finished:
            raise TransactionError(f"{self._instant} cannot be suspended: it must be inflight, without a heartbeat")
        self._finished = True
        return SuspendedTransaction(
            self.storage, self.config, self.operation, self.opts, self._instant, self.timeline, self._active
        )

    @classmethod
    def resume(cls, state: SuspendedTransaction) -> Self:
        """Resume a write. It may have been committed or rolled back since: then `abort` only cleans up, and `commit`
        fails."""
        self = cls(state.storage, state.config, state.operation, state.opts)
        self._instant, self.timeline, self._active = state.instant, state.timeline, state.active
        return self
