"""Execution of a plan on the timeline (compaction, log compaction or clustering), from taking up the plan to its
publication.

Unlike a write, a plan outlives a failed attempt. Whoever takes it up first undoes what an earlier attempt left. A
failed compaction or clustering goes back to its plan, to be tried again; the plan of a log compaction goes, too,
because logs that it names may have been compacted since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import FailedWritesPolicy
from pyhudi.errors import ConflictError
from pyhudi.metadata.writer.file_stats_reader import LOCAL, FileStatsReader
from pyhudi.metadata.writer.metadata_writer import without_disabled
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.instant_generator import InstantGenerator
from pyhudi.timeline.timeline_layout import Layout
from pyhudi.timeline.write_gate import Claim, WriteGate
from pyhudi.transaction.action_start import current_config, new_heartbeat
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.conflicts.conflict_resolution import find_change, find_later_compaction, touched_groups
from pyhudi.transaction.file_reconciliation import reconcile
from pyhudi.transaction.foreign_plans import newest_rollback, refuse_foreign, refuse_while_alive
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from pyhudi.transaction.rollback import late_files
from pyhudi.transaction.rollback.rollback_failed import failed_writes_policy, refuse_pending_restore
from pyhudi.transaction.rollback.rollback_status import find_rollback
from pyhudi.transaction.transaction import Transaction

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.meta_client import TableMetaClient

_CHECK_THREADS = 16
_TAKEN_FOR_DEAD = (
    "another process took it for dead and rolled it back. With several processes at work set "
    "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL"
)


class PlannedTransaction(Transaction):
    """A compaction, log compaction or clustering under way. Not thread-safe; use it in a ``with`` block like a
    `Transaction`.

    Another process may take this attempt for dead and begin one of its own under the same instant. From then on the
    instant, its markers and its heartbeat are the other one's, and this attempt only ends.
    """

    _attempt: str
    _claim: Claim

    @classmethod
    def take_up(
        cls,
        client: TableMetaClient,
        action: str,
        instant: str,
        operation: str,
        options: Mapping[str, str],
        attempt: str,
        stats_reader: FileStatsReader = LOCAL,
        *,
        asked_for: bool = False,
    ) -> Self | None:
        """Begin to carry out the pending plan ``instant``; None when it is not to be carried out any more: it is gone
        from the timeline or completed, or it was a log compaction that failed before. ``attempt`` is a text that no
        other attempt at the plan has, ``stats_reader`` as of `Transaction`. ``asked_for``: somebody who knows that
        nobody is carrying out the plan has named it.

        Raises:
            BusyError: somebody else is carrying out the plan, or another program may be.
            TransactionError: a restore is pending.
            UnsupportedTableError: the table cannot be written, or a failed attempt cannot be rolled back here.
            LockError: the table's lock could not be taken.
        """
        storage = client.storage
        lock = make_lock_provider(storage, options)
        generator = InstantGenerator(storage, options, client.config.timezone, lock=lock)
        policy = failed_writes_policy(options)
        several = policy is not FailedWritesPolicy.EAGER
        with generator.lock:  # kept until the times that rollbacks take have been waited out
            config = current_config(storage, client.config)
            self = cls(storage, config, operation, options, lock, generator)
            self.stats_reader = stats_reader
            active = ActiveTimeline.load(storage, Layout.of(config.properties))
            refuse_pending_restore(active)
            # nobody else would clear away log compactions that died, if only services run on the table
            failed = [i for i in self._rollbacks.failed_writes(active, policy, options) if _is_other_log(i, instant)]
            self._rollbacks.check(active, failed)
            entry = _pending(active, action, instant)
            if entry is None:
                return None
            if several and entry.state is State.INFLIGHT:
                refuse_while_alive(storage, entry, options)
            if entry.state is State.INFLIGHT:
                refuse_foreign(active, entry, self.typed_options, asked_for=asked_for)
            self.config = without_disabled(storage, config, self.typed_options)
            self._rollbacks.clean_up(active, failed, options)
            entry = _pending(active, action, instant)
            if entry is not None and entry.state is State.INFLIGHT:
                self._rollbacks.roll_back(active, entry)
                entry = _pending(active, action, instant)
            if entry is None:
                return None
            self._attempt, self._claim = attempt, Claim(storage, instant, attempt)
            self._claim.take(newest_rollback(active))
            self.timeline = active.timeline
            if several:
                self._heartbeat = new_heartbeat(storage, instant, options)
                self._heartbeat.start()
            self._active, self._entry = active, entry
        return self

    @property
    def _gate(self) -> WriteGate:
        return WriteGate(self.storage, self.instant, self._attempt)

    def _begun(self) -> None:
        self._claim.begin()

    def _tidy(self, metadata: CommitMetadata) -> None:
        """Nothing yet: another attempt bears the same instant, and only under the lock is it sure that what has markers
        is not of one that took over from this."""

    def _check_alive(self, active: ActiveTimeline, expected: State) -> None:
        self._refuse_if_superseded(active)
        super()._check_alive(active, expected)

    def _find_conflict(self, metadata: CommitMetadata, active: ActiveTimeline) -> Conflicted | None:
        """Find a conflict. Writes concurrent with a compaction belong to the slice after it, so they are none. A log
        compaction comes too late when its logs are being compacted, a clustering when its file groups were changed."""
        _check_files(self.storage, self._entry, metadata.stats)
        reconcile(self.storage, self.instant, metadata)
        late_files.delete_of_attempts(active, self.instant, metadata.named_files())
        if metadata.replaced is not None:
            return find_change(metadata.replaced, self.instant, self.timeline, active)
        if self.action != Action.LOG_COMPACTION:
            return None
        return find_later_compaction(touched_groups(metadata), self.instant, active)

    def _undo(self, active: ActiveTimeline) -> None:
        """Undo what was begun; the plan of a compaction or clustering stays. Ends while the lock is held: whoever
        comes next may take up the plan under the same instant."""
        if self._is_superseded(active):
            self._gate.close()
            if self._heartbeat is not None:
                self._heartbeat.abandon()
            self._finished = True
            return
        if self._entry.state is State.INFLIGHT or self.action == Action.LOG_COMPACTION:
            super()._undo(active)
        self._finish()

    def _last_steps(self) -> list[Callable[[], object]]:
        return [*super()._last_steps(), self._claim.release]

    def _refuse_if_superseded(self, active: ActiveTimeline) -> None:
        if self._is_superseded(active):
            raise ConflictError(f"{self._entry} is not this attempt's any more: {_TAKEN_FOR_DEAD}")

    def _is_superseded(self, active: ActiveTimeline) -> bool:
        """True if the instant is another attempt's: it has claimed it or, not being of this library, rolled this
        attempt back."""
        if not self._claim.is_mine():
            return True
        return find_rollback(active, self.timeline, self.instant) is not None

    def is_overtaken(self, groups: pa.Table) -> bool:
        """Return True if a compaction that was planned later works on one of the file groups (partition, file_id), so
        that there is no use in compacting their logs."""
        return find_later_compaction(groups, self.instant, self._active) is not None


def _is_other_log(pending: Instant, instant: str) -> bool:
    return pending.action == Action.LOG_COMPACTION and pending.requested != instant


def _pending(active: ActiveTimeline, action: str, instant: str) -> Instant | None:
    found = active.timeline.find(instant, action)
    return found if found is not None and found.action == action and not found.is_completed else None


def _check_files(storage: Storage, entry: Instant, stats: pa.Table) -> None:
    """Somebody may have taken this attempt for dead, deleted its files and begun another one under the same instant."""
    paths = stats["path"].drop_null().to_pylist()
    with ThreadPoolExecutor(_CHECK_THREADS) as pool:
        there = pa.array(list(pool.map(storage.exists, paths)), pa.bool_())
    if pc.all(there, min_count=0).as_py():
        return
    gone = paths[there.to_pylist().index(False)]
    raise ConflictError(f"{gone!r}, a file of this attempt at {entry}, is gone: {_TAKEN_FOR_DEAD}")
