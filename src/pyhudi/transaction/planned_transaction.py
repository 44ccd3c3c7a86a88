"""Execution of a plan in the timeline (compaction, log compaction or clustering), from taking it over to its
publication.

Unlike a write, a plan survives a failed attempt. Each attempt first rolls back leftovers of an earlier one. A failed
compaction or clustering returns to its requested state, to be retried; the plan of a log compaction is removed, because
its logs may have been compacted since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options
from pyhudi.config.enums import FailedWritesPolicy
from pyhudi.errors import BusyError, ConflictError
from pyhudi.metadata.writer.enabled_partitions import delete_if_disabled
from pyhudi.metadata.writer.initial_statistics import LOCAL, FileStatsReader
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.fencing.attempt_claim import AttemptClaim
from pyhudi.timeline.fencing.write_fence import WriteFence
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.concurrency_mode import failed_writes_policy
from pyhudi.transaction.conflicts.changed_groups import touched_groups
from pyhudi.transaction.conflicts.plan_conflicts import find_change_since, find_concurrent_change, find_later_compaction
from pyhudi.transaction.file_reconciliation import reconcile_against_markers
from pyhudi.transaction.liveness_signals import liveness_signals
from pyhudi.transaction.plan_ownership import check_no_heartbeat, check_not_running_elsewhere, newest_rollback
from pyhudi.transaction.rollback import late_data_files
from pyhudi.transaction.rollback.rollback_status import find_rollback
from pyhudi.transaction.table_checks import current_snapshot, refuse_pending_restore
from pyhudi.transaction.transaction import Transaction

_TAKEN_FOR_DEAD = (
    "another process considered it dead and rolled it back. With several processes set "
    "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL"
)


@dataclass(frozen=True, slots=True)
class PlanAttempt:
    """Attempt to execute a plan of the timeline.

    Attributes:
        action: Action of the plan.
        instant: Requested instant of the plan.
        operation: Operation type of the commit.
        id: Unique text that distinguishes attempts at the plan.
    """

    action: str
    instant: str
    operation: str
    id: str


class PlannedTransaction(Transaction):
    """A running compaction, log compaction or clustering. Not thread-safe; used in a ``with`` block like a
    `Transaction`.

    Another process may consider this attempt dead and start another one under the same instant. From then on the
    instant, its markers and its heartbeat belong to the other attempt, and this one only ends.
    """

    _attempt: str
    _claim: AttemptClaim

    @classmethod
    def start_attempt(
        cls,
        client: TableMetaClient,
        attempt: PlanAttempt,
        options: Mapping[str, str],
        stats_reader: FileStatsReader = LOCAL,
        *,
        take_over: bool = False,
    ) -> Self | None:
        """Start executing a pending plan.

        Args:
            client: The table.
            attempt: The plan and this attempt at it.
            options: Options of the service.
            stats_reader: As in `Transaction`.
            take_over: The user has requested the plan by its instant, knowing that no other process executes it.

        Returns:
            The transaction. None if the plan is no longer to be executed: it was removed from the timeline or
            completed, or is a log compaction that failed before.

        Raises:
            BusyError: Another process is executing the plan, or another program may be.
            TransactionError: A restore is pending, or Apache Hudi has changed the version of the table halfway.
            UnsupportedTableError: The table cannot be written, or a failed attempt cannot be rolled back by pyhudi.
            LockError: The lock of the table could not be acquired.
        """
        self = cls(client.storage, client.config, attempt.operation, Options.parse(options), stats_reader)
        try:
            with self.lock:  # Kept until the clock skew of the rollbacks' instant times has passed.
                is_claimed = self._claim_plan(client, attempt, take_over=take_over)
        except BaseException:
            self._signals.stop()
            raise
        return self if is_claimed else None

    def _claim_plan(self, client: TableMetaClient, attempt: PlanAttempt, *, take_over: bool) -> bool:
        """Claim a plan, if it is still to be executed, and signal that it is; return whether it is. The caller holds
        the lock of the table."""
        storage, instant = self.storage, attempt.instant
        table = current_snapshot(storage, client.config)
        self.config, active = table.config, table.active
        requested = self._requested_plan(active, attempt, take_over=take_over)
        if requested is None:
            return False
        self._attempt, self._claim = attempt.id, AttemptClaim(storage, instant, attempt.id)
        self.lock.ensure_held()
        self._claim.take(newest_rollback(active))
        self.timeline = active.timeline
        self._signals = liveness_signals(storage, instant, self.opts)
        self._signals.start()
        self._active, self._instant = active, requested
        return True

    def _requested_plan(self, active: ActiveTimeline, attempt: PlanAttempt, *, take_over: bool) -> Instant | None:
        """Return the plan, whose failed attempts are rolled back before; None if it is no longer to be executed. The
        caller holds the lock of the table."""
        storage, opts, instant = self.storage, self.opts, attempt.instant
        policy = failed_writes_policy(opts)
        # If only services run on the table, no other action removes failed log compactions.
        failed = [i for i in self._rollbacks.failed_writes(active, policy) if _is_other_log(i, instant)]
        self._rollbacks.check(active, failed)
        pending = _pending(active, attempt.action, instant)
        if pending is None:
            return None
        if pending.state is State.INFLIGHT:
            if policy is not FailedWritesPolicy.EAGER:
                check_no_heartbeat(storage, pending, opts)
            check_not_running_elsewhere(active, pending, opts, take_over=take_over)
        self.config = delete_if_disabled(storage, self.config, opts)
        self._rollbacks.complete_and_roll_back(active, failed, leave_running=policy is FailedWritesPolicy.LAZY)
        pending = _pending(active, attempt.action, instant)
        if pending is not None and pending.state is State.INFLIGHT:
            self._rollbacks.roll_back(active, pending)
            pending = _pending(active, attempt.action, instant)
        return pending

    @property
    def fence(self) -> WriteFence:
        return WriteFence(self.storage, self.instant, self._attempt)

    def _after_inflight(self) -> None:
        self._claim.begin()

    def reconcile_files(self, metadata: CommitMetadata) -> None:
        """Do nothing yet: another attempt has the same instant, and only under the lock is it certain that files with
        markers do not belong to one that took over."""

    def _reconcile_under_lock(self, metadata: CommitMetadata, active: ActiveTimeline) -> None:
        """Delete files left behind by retried tasks and by other attempts.

        Raises:
            ConflictError: Another process took over and deleted files of this attempt.
        """
        _check_files(self.storage, self._instant, metadata.stats)
        reconcile_against_markers(self.storage, self.instant, metadata)
        late_data_files.delete_files_of_other_attempts(active, self.instant, metadata.named_files())

    def _check_alive(self, active: ActiveTimeline, expected: State) -> None:
        if expected is State.REQUESTED:
            refuse_pending_restore(active)
            self._refuse_if_taken(active)
        self._refuse_if_superseded(active)
        super()._check_alive(active, expected)

    def _refuse_if_taken(self, active: ActiveTimeline) -> None:
        """Refuse to begin a plan that another process has taken or removed. It did not consider this one dead: a plan
        may be taken by several processes until one of them begins.

        Raises:
            BusyError: Another process executes the plan, or has executed it.
            ConflictError: The plan was removed.
        """
        current = active.timeline.find(self.instant)
        if current is None:
            raise ConflictError(
                f"{self._instant} of {self.storage.root} was removed from the timeline by another process, with a "
                "rollback or a restore, so there is nothing to execute; a new plan can be made"
            )
        if current.is_completed:
            raise BusyError(
                f"{self._instant} of {self.storage.root} was executed by another process, which took it at the same "
                f"time ({current}); there is nothing left to do"
            )
        if self._is_superseded(active):
            raise BusyError(
                f"{self._instant} of {self.storage.root} is being executed by another process, which took it at the "
                "same time; wait for it, or, if that process was killed, execute the plan again"
            )

    def _find_conflict(self, metadata: CommitMetadata, active: ActiveTimeline) -> Conflicted | None:
        """Find a conflict. Writes concurrent with a compaction belong to the slice after it, so they do not conflict. A
        log compaction conflicts if its logs are being compacted, a clustering if its file groups were changed."""
        if metadata.replaced is not None:
            return find_concurrent_change(metadata.replaced, self.instant, self.timeline, active)
        if self.action != Action.LOG_COMPACTION:
            return None
        return find_later_compaction(touched_groups(metadata), self.instant, active)

    def _undo(self, active: ActiveTimeline) -> None:
        """Roll back this attempt; the plan of a compaction or clustering remains. Ends under the lock, because the next
        process may take over the plan under the same instant."""
        if self._is_superseded(active):
            self.fence.close()
            self._signals.abandon()
            self._finished = True
            return
        if self._instant.state is State.INFLIGHT or self.action == Action.LOG_COMPACTION:
            super()._undo(active)
        self._finish()

    def _cleanup_steps(self) -> list[Callable[[], object]]:
        return [*super()._cleanup_steps(), self._claim.release]

    def _refuse_if_superseded(self, active: ActiveTimeline) -> None:
        if self._is_superseded(active):
            raise ConflictError(f"{self._instant} no longer belongs to this attempt: {_TAKEN_FOR_DEAD}")

    def _is_superseded(self, active: ActiveTimeline) -> bool:
        """Return True if the instant belongs to another attempt, which has claimed it or, in another program, begun to
        execute it or rolled back this attempt."""
        if not self._claim.is_current():
            return True
        current = active.timeline.find(self.instant)
        if self._instant.state is State.REQUESTED and current is not None and current.state is not State.REQUESTED:
            return True
        return find_rollback(active, self.timeline, self.instant) is not None

    def is_outdated(self, groups: pa.Table) -> bool:
        """Return True if a write completed since the plan was made has changed one of the file groups (partition,
        file_id)."""
        return find_change_since(groups, self.instant, self._active) is not None

    def is_overtaken(self, groups: pa.Table) -> bool:
        """Return True if a later compaction plan includes one of the file groups (partition, file_id), so that
        compacting their logs is useless."""
        return find_later_compaction(groups, self.instant, self._active) is not None


def _is_other_log(pending: Instant, instant: str) -> bool:
    return pending.action == Action.LOG_COMPACTION and pending.requested != instant


def _pending(active: ActiveTimeline, action: str, instant: str) -> Instant | None:
    pending = active.timeline.find(instant, action)
    return pending if pending is not None and pending.action == action and not pending.is_completed else None


def _check_files(storage: Storage, instant: Instant, stats: pa.Table) -> None:
    """Check that no other process has considered this attempt dead, deleted its files and started another one under the
    same instant."""
    paths = stats["path"].drop_null().to_pylist()
    exists = pa.array(concurrent_map(storage.exists, paths), pa.bool_())
    if pc.all(exists, min_count=0).as_py():
        return
    missing = paths[exists.to_pylist().index(False)]
    raise ConflictError(f"{missing!r}, a file of this attempt at {instant}, no longer exists: {_TAKEN_FOR_DEAD}")
