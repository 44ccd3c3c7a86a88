"""Carrying out what a plan on the timeline says: compactions and log compactions, from taking up the plan to its
publication.

Unlike a write, a plan outlives a failed attempt. Whoever takes it up first undoes what an earlier attempt left. A
failed compaction goes back to its plan, to be tried again; the plan of a log compaction goes, too, because logs that it
names may have been compacted since.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConflictError, TransactionError
from pyhudi.metadata.maintain import without_unwanted
from pyhudi.timeline import heartbeat
from pyhudi.timeline.active import ActiveTimeline
from pyhudi.timeline.generator import InstantGenerator
from pyhudi.timeline.instants import Action, Instant, State
from pyhudi.timeline.layout import Layout
from pyhudi.timeline.metadata import CommitMetadata
from pyhudi.transaction.conflicts import find_later_compaction, touched_groups
from pyhudi.transaction.locks import lock_provider, number
from pyhudi.transaction.outcome import Conflicted
from pyhudi.transaction.reconcile import reconcile
from pyhudi.transaction.rollback import FailedWrites, refuse_pending_restore
from pyhudi.transaction.transaction import Transaction, current_config, new_heartbeat

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.metaclient import TableMetaClient

_CHECK_THREADS = 16


class PlannedTransaction(Transaction):
    """A compaction or log compaction under way. Not thread-safe; use it in a ``with`` block like a `Transaction`."""

    @classmethod
    def take_up(
        cls, client: TableMetaClient, action: str, instant: str, operation: str, options: Mapping[str, str]
    ) -> Self | None:
        """Begin to carry out the pending plan ``instant``; None when it is not to be carried out any more: it is gone
        from the timeline or completed, or it was a log compaction that failed before.

        Raises:
            TransactionError: a restore is pending, or somebody else is carrying out the plan.
            UnsupportedTableError: the table cannot be written, or a failed attempt cannot be rolled back here.
            LockError: the table's lock could not be taken.
        """
        storage = client.storage
        lock = lock_provider(storage, options)
        generator = InstantGenerator(storage, options, client.config.timezone, lock=lock)
        several = FailedWrites.of(options) is not FailedWrites.EAGER
        with lock:
            config = current_config(storage, client.config)
            self = cls(storage, config, operation, options, lock, generator)
            active = ActiveTimeline.load(storage, Layout.of(config.properties))
            refuse_pending_restore(active)
            self._rollbacks.check(active, [])
            entry = _pending(active, action, instant)
            if entry is None:
                return None
            if several and entry.state is State.INFLIGHT:
                _refuse_while_alive(storage, entry, options)
            self.config = without_unwanted(storage, config, self.typed_options)
            self._rollbacks.clean_up(active, [], options)
            entry = _pending(active, action, instant)
            if entry is not None and entry.state is State.INFLIGHT:
                self._rollbacks.roll_back(active, entry)
                entry = _pending(active, action, instant)
            if entry is None:
                return None
            self.timeline = active.timeline
            if several:
                self._heartbeat = new_heartbeat(storage, instant, options)
                self._heartbeat.start()
            self._active, self._entry = active, entry
        return self

    def _tidy(self, metadata: CommitMetadata) -> None:
        """Nothing yet: another attempt bears the same instant, and only under the lock is it sure that what has markers
        is not of one that took over from this."""

    def _find_conflict(self, metadata: CommitMetadata, active: ActiveTimeline) -> Conflicted | None:
        """What is written beside a compaction belongs to the slice after it, so writes are not in its way. A log
        compaction comes too late when its logs are being compacted."""
        _check_files(self.storage, self._entry, metadata.stats)
        reconcile(self.storage, self.instant, metadata.stats)
        if self.action != Action.LOG_COMPACTION:
            return None
        return find_later_compaction(touched_groups(metadata), self.instant, active)

    def abort(self) -> None:
        """Undo what was begun; the plan of a compaction stays."""
        if self._entry.state is State.REQUESTED and self.action == Action.COMPACTION and not self._finished:
            self._finish()
        else:
            super().abort()

    def is_overtaken(self, groups: pa.Table) -> bool:
        """Whether a compaction that was planned later works on one of the file groups (partition, file_id), so that
        there is no use in compacting their logs."""
        return find_later_compaction(groups, self.instant, self._active) is not None


def _pending(active: ActiveTimeline, action: str, instant: str) -> Instant | None:
    found = active.timeline.find(instant, action)
    return found if found is not None and found.action == action and not found.is_completed else None


def _refuse_while_alive(storage: Storage, entry: Instant, options: Mapping[str, str]) -> None:
    interval = number(options, heartbeat.INTERVAL_KEY, heartbeat.DEFAULT_INTERVAL_MS)
    misses = number(options, heartbeat.MISSES_KEY, heartbeat.DEFAULT_TOLERABLE_MISSES)
    if not heartbeat.is_dead(storage, entry.requested, interval_ms=interval, tolerable_misses=misses):
        raise TransactionError(
            f"{entry} is being carried out by another process, whose heartbeat is alive; wait for it, or, if that "
            f"process has died, try again in {interval * (misses + 1) / 1000:g} s"
        )


def _check_files(storage: Storage, entry: Instant, stats: pa.Table) -> None:
    """Somebody may have taken this attempt for dead, deleted its files and begun another one under the same instant."""
    paths = stats["path"].drop_null().to_pylist()
    with ThreadPoolExecutor(_CHECK_THREADS) as pool:
        there = pa.array(list(pool.map(storage.exists, paths)), pa.bool_())
    if pc.all(there, min_count=0).as_py():
        return
    gone = paths[there.to_pylist().index(False)]
    raise ConflictError(
        f"{gone!r}, a file of {entry}, is gone: another process took this attempt for dead and rolled it back. With "
        "several processes at work set hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL"
    )
