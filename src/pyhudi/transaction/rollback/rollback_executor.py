"""Rollback of failed writes, with the same result as in Apache Hudi: a rollback instant in the timeline, and no files
of the write.

The order of steps allows recovery from a crash at any point. First the plan is published (``rollback.requested``); from
then on it alone determines the rollback, which the next writer completes. Then the data files are deleted, the markers,
and the inflight and requested files of the failed write; finally the rollback is completed.

A write that was considered dead may be published nevertheless: immediately before its rollback was planned, which is
then abandoned, or by a delayed request after the rollback. Such a file is deleted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Self

from pyhudi.config import Options
from pyhudi.config.enums import FailedWritesPolicy
from pyhudi.errors import AlreadyExistsError, TimelineError, UnsupportedTableError
from pyhudi.index import bucket_counts, consistent_hashing
from pyhudi.storage import Storage
from pyhudi.table.bootstrap_index import BOOTSTRAP_INSTANTS
from pyhudi.table.moved_instants import refuse_moved_instants
from pyhudi.table.schema_history import delete_history
from pyhudi.table.view.pending_file_groups import is_clustering
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.fencing.publication_intent import PublicationIntent
from pyhudi.timeline.fencing.write_fence import close_fences
from pyhudi.timeline.heartbeat import HeartbeatPolicy, heartbeat_path
from pyhudi.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from pyhudi.timeline.markers import Markers
from pyhudi.timeline.plans.rollback_plan import RollbackMetadata, RollbackPlan
from pyhudi.timeline.time_generator import TimeGenerator
from pyhudi.transaction.rollback.instant_backup import back_up_instant, backup_folder
from pyhudi.transaction.rollback.late_timeline_files import (
    REMOVED_WITH_PLAN,
    delete_completed_files,
    delete_late_completed_files,
)
from pyhudi.transaction.rollback.metadata_table_rollback import (
    delete_metadata_table_if_merged,
    roll_back_metadata_table,
)
from pyhudi.transaction.rollback.rollback_log_blocks import write_rollback_blocks
from pyhudi.transaction.rollback.rollback_planner import plan_rollback, planned_paths, unplanned_paths
from pyhudi.transaction.rollback.rollback_status import read_rollback_plan
from pyhudi.transaction.rollback.rolled_back_files import metadata_rollback, rolled_back_partitions
from pyhudi.transaction.rollback.stale_files import delete_stale_files

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RollbackExecutor:
    """Rollbacks on one table. The caller holds the lock of the table for every call.

    ``heartbeats`` determines which writers are considered dead; ``backup_folder`` gets copies of the timeline files of
    the writes that are rolled back. A process that has lost the lock raises LockError before its next change: the one
    that has it now completes the rollback.
    """

    storage: Storage
    version: int
    generator: TimeGenerator
    heartbeats: HeartbeatPolicy
    backup_folder: str | None = None

    @classmethod
    def from_options(cls, storage: Storage, version: int, generator: TimeGenerator, opts: Options) -> Self:
        """Return the rollbacks of a process with these options."""
        return cls(storage, version, generator, HeartbeatPolicy.from_options(opts), backup_folder(opts))

    def failed_writes(
        self, active: ActiveTimeline, policy: FailedWritesPolicy, *, bootstraps: bool = False
    ) -> list[Instant]:
        """Return pending writes that are considered failed, newest first. Of table services only started log
        compactions are included: plans of others remain, for the next process to execute. So do ``bootstraps``, but
        for their next attempts, because they tell writers that rows are missing."""
        if policy is FailedWritesPolicy.NEVER:
            return []
        writes = [
            i
            for i in active.timeline.pending()
            if (i.action in WRITE_ACTIONS and not is_clustering(active, i))
            or (i.action == Action.LOG_COMPACTION and i.state is State.INFLIGHT)
        ]
        if not bootstraps:
            writes = [i for i in writes if i.requested not in BOOTSTRAP_INSTANTS]
        if policy is FailedWritesPolicy.LAZY:
            writes = [i for i in writes if self.heartbeats.is_dead(self.storage, i.requested)]
        return sorted(writes, reverse=True)

    def check(self, active: ActiveTimeline, failed: list[Instant]) -> None:
        """Raise an error, before anything is changed, for writes that pyhudi cannot roll back, and for those that only
        look failed, because Apache Hudi has moved their completed instants."""
        if failed:
            refuse_moved_instants(active)
        for target in failed:
            plan_rollback(active, self.version, target)
        for pending in active.timeline.pending().of_actions(Action.ROLLBACK):
            plan = read_rollback_plan(active, pending)
            if plan is not None:
                self._refuse_log_blocks(plan, pending)

    def complete_and_roll_back(
        self, active: ActiveTimeline, failed: list[Instant], *, leave_running: bool = False
    ) -> list[Instant]:
        """Complete unfinished rollbacks, then roll back ``failed``. Return the completed rollbacks.

        ``leave_running``: leave rollbacks with a heartbeat, which Apache Hudi 1.2.0 executes without the lock.
        """
        delete_late_completed_files(active, self.generator.lock)
        done: list[Instant | None] = []
        left: set[str] = set()
        for pending in active.timeline.pending().of_actions(Action.ROLLBACK):
            plan = read_rollback_plan(active, pending)
            if plan is None:
                # A rollback whose plan is incomplete was never started.
                active.delete_pending(pending.requested, Action.ROLLBACK)
                continue
            if leave_running and not self.heartbeats.is_dead(self.storage, pending.requested):
                left.add(plan.instant)
                continue
            done.append(self._finish(active, pending, plan))
        for target in failed:
            if target.requested in left:
                continue
            current = active.timeline.find(target.requested, target.action)
            if current is not None and not current.is_completed:
                done.append(self.roll_back(active, current))
        delete_stale_files(active, self.heartbeats)
        return [rollback for rollback in done if rollback is not None]

    def roll_back(self, active: ActiveTimeline, target: Instant, *, with_plan: bool = False) -> Instant | None:
        """Roll back a pending write, or the last completed one, continuing an unfinished rollback if there is one.

        Args:
            active: The timeline; the caller holds the lock.
            target: The write.
            with_plan: As in `plan_rollback`.

        Returns:
            The completed rollback instant; None if a pending write turns out to be completed.
        """
        for pending in active.timeline.pending().of_actions(Action.ROLLBACK):
            existing_plan = read_rollback_plan(active, pending)
            if existing_plan is not None and existing_plan.instant == target.requested:
                return self._finish(active, pending, existing_plan, announced_for=target)
        kind = "completed" if target.is_completed else "failed"
        _log.warning("rolling back the %s %s %s of %s", kind, target.action, target.requested, self.storage.root)
        self.generator.lock.ensure_held()
        close_fences(self.storage, target.requested)  # Before its files are collected, because no task may add to them.
        with self.generator.reserve(locked=True) as reserved:
            plan = plan_rollback(active, self.version, target, with_plan=with_plan)
            self.generator.lock.ensure_held()
            requested = active.create_requested(Action.ROLLBACK, reserved.take(active.latest_time), plan.encode())
        return self._finish(active, requested, plan, announced_for=target)

    def resolve_unanswered_publications(self, active: ActiveTimeline, instant: str) -> ActiveTimeline:
        """Roll back pending instants, other than ``instant``, whose publication has been sent: its outcome is unknown,
        and it could take effect after conflicting commits. The sender no longer holds the lock.

        Returns:
            The resulting timeline.
        """
        others = [i for i in active.timeline.pending() if i.state is State.INFLIGHT and i.requested != instant]
        sent = [i for i in others if PublicationIntent(self.storage, i.requested).is_set()]
        for unanswered in sent:
            self.roll_back(active, unanswered)
        return active.reload() if sent else active

    def _finish(
        self, active: ActiveTimeline, rollback: Instant, plan: RollbackPlan, *, announced_for: Instant | None = None
    ) -> Instant | None:
        """Execute a rollback plan. Return the completed rollback, or None if it is abandoned.

        ``announced_for``: the write when this process planned the rollback; None for the rollback of another process.
        """
        self._refuse_log_blocks(plan, rollback)
        started = time.monotonic()
        active.refresh()  # A process that publishes the write from now on detects the rollback.
        # Who has the lock completes this rollback, and may have started another attempt at the same instant.
        self.generator.lock.ensure_held()
        target = active.timeline.find(plan.instant)  # A completed compaction or clustering has another action.
        if rollback.state is State.REQUESTED:
            if _completed_before_rollback(target, rollback, announced_for):
                _log.warning("the rollback %s is abandoned: %s was completed concurrently", rollback.requested, target)
                active.delete(rollback)
                return None
            try:
                rollback = active.to_inflight(rollback)
            except AlreadyExistsError:  # By a delayed request.
                _log.warning("%s was begun already", rollback)
        back_up_instant(active, target, self.backup_folder)
        paths, commands = self._delete_data(active, plan, rollback, target)
        self.generator.lock.ensure_held()
        roll_back_metadata_table(active, metadata_rollback(self.storage, plan, rollback, commands), self.generator)
        self.generator.lock.ensure_held()
        self._delete_records_of_write(active, plan)
        with self.generator.reserve(locked=True) as reserved:
            self._close_instant(active, plan, target)
            metadata = RollbackMetadata(
                start=rollback.requested,
                millis=int((time.monotonic() - started) * 1000),
                instant=plan.instant,
                action=plan.action,
                partitions=rolled_back_partitions(self.storage, plan, paths, commands),
            )
            completion = reserved.take(active.latest_time) if active.layout.version >= 2 else None
            self.generator.lock.ensure_held()
            return _complete(active, rollback, metadata.encode(), completion)

    def _delete_data(
        self, active: ActiveTimeline, plan: RollbackPlan, rollback: Instant, target: Instant | None
    ) -> tuple[Mapping[str, list[str]], Mapping[str, Mapping[str, int]]]:
        """Make the write invisible, and delete its data files, or void its log blocks.

        Returns:
            By partition: the planned files, and the command blocks with their sizes.
        """
        if target is not None and target.is_completed:
            delete_metadata_table_if_merged(self.storage, target)
        delete_completed_files(active, target)  # First make it invisible.
        close_fences(self.storage, plan.instant)  # Its writer may have created one since the plan was made.
        unplanned = unplanned_paths(self.storage, self.version, plan)
        self.generator.lock.ensure_held()  # Markers of a later attempt name its files, too.
        self.storage.delete_many(unplanned)
        paths = planned_paths(plan)
        self.storage.delete_many(chain.from_iterable(paths.values()))
        return paths, write_rollback_blocks(self.storage, plan.requests, rollback.requested, plan.instant)

    def _delete_records_of_write(self, active: ActiveTimeline, plan: RollbackPlan) -> None:
        """Delete what the write has recorded besides its data and its instant. Its markers go last, because a rollback
        that is resumed needs them."""
        if plan.action in (Action.CLUSTERING, Action.REPLACE_COMMIT):
            consistent_hashing.delete_metadata(self.storage, [plan.instant])
            bucket_counts.delete_counts(self.storage, plan.instant)
        delete_history(active, plan.instant)
        Markers(self.storage, plan.instant).delete()

    def _close_instant(self, active: ActiveTimeline, plan: RollbackPlan, target: Instant | None) -> None:
        """Remove the write from the timeline, or revert it to its plan, and its signs of life."""
        # A completed compaction is a commit, so the action in the plan is used.
        keeps_plan = plan.action not in REMOVED_WITH_PLAN or (target is not None and is_clustering(active, target))
        active.refresh()
        self.generator.lock.ensure_held()
        # A delayed request may have published the write since its completed files were deleted.
        delete_completed_files(active, active.timeline.find(plan.instant))
        if keeps_plan:
            _revert_to_requested(active, plan)
        else:
            active.delete_pending(plan.instant, plan.action)
        self.storage.delete(heartbeat_path(plan.instant))
        PublicationIntent(self.storage, plan.instant).remove()

    def _refuse_log_blocks(self, plan: RollbackPlan, rollback: Instant) -> None:
        """Refuse plans with command blocks from version 8 on, where log files are deleted: such a plan is from before
        an upgrade."""
        if self.version >= 8 and any(request.log_blocks for request in plan.requests):
            raise UnsupportedTableError(
                f"the pending rollback {rollback.requested} of {plan.action} {plan.instant} was planned before "
                "the table was upgraded, with command blocks for log files; let Apache Hudi complete it (its "
                "next write does)"
            )


def _complete(active: ActiveTimeline, rollback: Instant, content: bytes, completion: str | None) -> Instant:
    """Complete a rollback, unless it has been completed by a delayed request of the process that started it."""
    try:
        return active.complete(rollback, content, completion)
    except (AlreadyExistsError, TimelineError):
        done = next((i for i in active.reload().states(rollback) if i.is_completed), None)
        if done is None:
            raise
        return done


def _completed_before_rollback(target: Instant | None, rollback: Instant, announced_for: Instant | None) -> bool:
    """Return True if a write was completed before the rollback, planned but not started, could stop it.

    A rollback of another process may target a completed write; then it is the later one. Layout 1 does not show this;
    there an unstarted rollback can be requested again, but a lost commit cannot.
    """
    if target is None or not target.is_completed:
        return False
    if announced_for is not None:
        return not announced_for.is_completed
    return target.completion is None or target.completion > rollback.requested


def _revert_to_requested(active: ActiveTimeline, plan: RollbackPlan) -> None:
    """Revert a rolled-back attempt at a compaction or clustering to its plan, to be retried."""
    target = active.timeline.find(plan.instant)
    inflight = None if target is None else active.in_state(target, State.INFLIGHT)
    if inflight is not None:
        active.delete(inflight)
