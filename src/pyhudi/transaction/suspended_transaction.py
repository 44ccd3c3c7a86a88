"""Hand-over of a write to another process: one begins it, another commits it or rolls it back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pyhudi.errors import TransactionError
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Instant, State
from pyhudi.timeline.instant_generator import InstantGenerator
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from pyhudi.transaction.transaction import Transaction

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig


@dataclass(frozen=True, slots=True)
class SuspendedTransaction:
    """State of an inflight write, to be pickled.

    Args:
        storage: The table's.
        config: The table's configuration since the write began.
        operation: Operation type, such as ``BULK_INSERT``.
        options: Options of the write.
        entry: The inflight instant.
        timeline: The timeline when the write was announced: what completed later may be a conflict.
        active: The same with its files.
    """

    storage: Storage
    config: TableConfig
    operation: str
    options: Mapping[str, str]
    entry: Instant
    timeline: Timeline
    active: ActiveTimeline


class ResumableTransaction(Transaction):
    """A write whose process may be another one when it ends. It has no heartbeat, which only a living process could
    give, so failed writes have to be rolled back eagerly (`hoodie.clean.failed.writes.policy`)."""

    def suspend(self) -> SuspendedTransaction:
        """Leave the inflight write to whoever resumes it; this object is done with.

        Raises:
            TransactionError: it is not inflight, or gives signs of life, which would end.
        """
        if self._heartbeat is not None or self._entry.state is not State.INFLIGHT or self._finished:
            raise TransactionError(f"{self._entry} cannot be handed over: it must be inflight, without a heartbeat")
        self._finished = True
        return SuspendedTransaction(
            self.storage, self.config, self.operation, dict(self.options), self._entry, self.timeline, self._active
        )

    @classmethod
    def resume(cls, state: SuspendedTransaction) -> Self:
        """Go on with a write. It may have been committed or rolled back since: then `abort` only tidies up, and
        `commit` fails."""
        lock = make_lock_provider(state.storage, state.options)
        generator = InstantGenerator(state.storage, state.options, state.config.timezone, lock=lock)
        self = cls(state.storage, state.config, state.operation, state.options, lock, generator)
        self._entry, self.timeline, self._active = state.entry, state.timeline, state.active
        return self
