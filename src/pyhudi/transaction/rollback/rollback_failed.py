"""Rolling back failed writes, as Apache Hudi leaves it: a rollback instant on the timeline, nothing of the write.

The order makes every point of death recoverable. First the plan is published (``rollback.requested``); from then on it
alone tells what to do, and whoever comes next finishes it. Then the data files go, the markers, the failed write's
inflight and requested files, and last the rollback is completed.

A write that was taken for dead may be published nevertheless: just before its rollback was announced, which is then
given up, or by a request that took its time, after the write was undone. Such a file is taken away.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyhudi.config import Options
from pyhudi.config.enums import FailedWritesPolicy
from pyhudi.config.options import FAILED_WRITES_POLICY
from pyhudi.errors import (
    AlreadyExistsError,
    CorruptTableError,
    FormatError,
    TimelineError,
    TransactionError,
    UnsupportedTableError,
)
from pyhudi.index import consistent_hashing
from pyhudi.metadata.disable_metadata import detach_metadata_table, is_attached
from pyhudi.metadata.writer.metadata_rollback import apply_rollback, is_merged
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline import heartbeat
from pyhudi.timeline.action_metadata import RollbackMetadata, RollbackPlan, RolledBackPartition
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.instant_generator import InstantGenerator
from pyhudi.timeline.markers import Markers, marked_instants
from pyhudi.timeline.write_gate import PublicationIntent, close_gates, gated_instants, remove_gates
from pyhudi.transaction.conflicts.conflict_resolution import is_clustering
from pyhudi.transaction.locks.lock_provider import has_several_writers
from pyhudi.transaction.rollback.rollback_log_blocks import void_appends
from pyhudi.transaction.rollback.rollback_plan import plan_rollback, planned_paths, unplanned_paths
from pyhudi.transaction.rollback.rollback_status import read_rollback_plan

if TYPE_CHECKING:
    from pyhudi.storage import Storage

_WRITES = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
_FORGOTTEN = _WRITES | {Action.LOG_COMPACTION}
"""Actions of which a rollback leaves nothing; of others the plan stays, to be tried again."""
_log = logging.getLogger(__name__)


def failed_writes_policy(options: Mapping[str, str]) -> FailedWritesPolicy:
    """Return when a pending write of another writer is taken as failed; several writers mean LAZY unless said
    otherwise."""
    opts = Options.parse(options)
    if not opts.is_set(FAILED_WRITES_POLICY) and has_several_writers(opts):
        return FailedWritesPolicy.LAZY
    return opts.get_typed(FAILED_WRITES_POLICY)


@dataclass(frozen=True, slots=True)
class Rollbacks:
    """Rolls back on one table. The caller holds the table lock for every call."""

    storage: Storage
    version: int
    generator: InstantGenerator

    def failed_writes(
        self, active: ActiveTimeline, policy: FailedWritesPolicy, options: Mapping[str, str]
    ) -> list[Instant]:
        """Pending writes that count as failed, newest first. Of table services only log compactions that were begun do:
        the plans of others stay, for whoever carries them out next."""
        if policy is FailedWritesPolicy.NEVER:
            return []
        writes = [
            i
            for i in active.timeline.pending()
            if (i.action in _WRITES and not is_clustering(active, i))
            or (i.action == Action.LOG_COMPACTION and i.state is State.INFLIGHT)
        ]
        if policy is FailedWritesPolicy.LAZY:
            writes = [i for i in writes if self._is_dead(i.requested, options)]
        return sorted(writes, reverse=True)

    def check(self, active: ActiveTimeline, failed: list[Instant]) -> None:
        """Refuse, before anything is touched, what cannot be rolled back here."""
        for target in failed:
            plan_rollback(active, self.version, target)
        for pending in active.timeline.pending().of_actions(Action.ROLLBACK):
            plan = read_rollback_plan(active, pending)
            if plan is not None:
                self._refuse_log_blocks(plan, pending)

    def clean_up(self, active: ActiveTimeline, failed: list[Instant], options: Mapping[str, str]) -> list[Instant]:
        """Finish rollbacks that others began, then roll back ``failed``; returns the completed rollbacks."""
        self._withdraw_late(active)
        done: list[Instant | None] = []
        for pending in active.timeline.pending().of_actions(Action.ROLLBACK):
            plan = read_rollback_plan(active, pending)
            if plan is None:
                # a plan that was never whole was never begun with
                active.delete_pending(pending.requested, Action.ROLLBACK)
                continue
            done.append(self._finish(active, pending, plan))
        for target in failed:
            found = active.timeline.find(target.requested, target.action)
            if found is not None and not found.is_completed:
                done.append(self.roll_back(active, found))
        self._sweep(active, options)
        return [rollback for rollback in done if rollback is not None]

    def roll_back(self, active: ActiveTimeline, target: Instant, *, whole: bool = False) -> Instant | None:
        """Undo a pending write, or the last completed one, by the rollback that somebody began, if there is one.

        Args:
            active: the timeline; the caller holds the lock.
            target: the write.
            whole: as of `plan_rollback`.

        Returns:
            The completed rollback instant; None if a pending write turns out to be completed.
        """
        for begun in active.timeline.pending().of_actions(Action.ROLLBACK):
            known = read_rollback_plan(active, begun)
            if known is not None and known.instant == target.requested:
                return self._finish(active, begun, known, announced_for=target)
        kind = "completed" if target.is_completed else "failed"
        _log.warning("rolling back the %s %s %s of %s", kind, target.action, target.requested, self.storage.root)
        close_gates(self.storage, target.requested)  # before its files are gathered: no task may add to them
        with self.generator.reserve(locked=True) as slot:
            plan = plan_rollback(active, self.version, target, whole=whole)
            requested = active.create_requested(Action.ROLLBACK, slot.take(newest(active)), plan.encode())
        return self._finish(active, requested, plan, announced_for=target)

    def settle(self, active: ActiveTimeline, instant: str) -> ActiveTimeline:
        """Roll back pending instants, other than ``instant``, whose publication has been sent: its outcome is not
        known, and it could take effect after what conflicts with it. Whoever has sent it has not the lock any more.

        Returns:
            The timeline as it is then.
        """
        others = [i for i in active.timeline.pending() if i.state is State.INFLIGHT and i.requested != instant]
        sent = [i for i in others if PublicationIntent(self.storage, i.requested).is_set()]
        for entry in sent:
            self.roll_back(active, entry)
        return active.reload() if sent else active

    def _finish(
        self, active: ActiveTimeline, rollback: Instant, plan: RollbackPlan, *, announced_for: Instant | None = None
    ) -> Instant | None:
        """Do what a plan says; returns the completed rollback, or None if it is given up. ``announced_for``: the write
        as it was when this process asked for the rollback; None for the rollback of somebody else."""
        self._refuse_log_blocks(plan, rollback)
        begun = time.monotonic()
        active.refresh()  # whoever publishes the write from now on sees the rollback
        target = active.timeline.find(plan.instant)  # a completed compaction or clustering has another action
        if rollback.state is State.REQUESTED:
            if _was_faster(target, rollback, announced_for):
                _log.warning("the rollback %s is given up: %s was completed meanwhile", rollback.requested, target)
                active.delete(rollback)
                return None
            try:
                rollback = active.to_inflight(rollback)
            except AlreadyExistsError:  # by a request that took its time
                _log.warning("%s was begun already", rollback)
        if target is not None and target.is_completed:
            self._detach_if_merged(target)
        _withdraw(active, target)  # first of all nobody must see it any more
        close_gates(self.storage, plan.instant)  # its writer may have opened one since the plan was made
        self.storage.delete_many(unplanned_paths(self.storage, self.version, plan))
        paths = planned_paths(plan)
        for files in paths.values():
            self.storage.delete_many(files)
        commands = void_appends(self.storage, plan.requests, rollback.requested, plan.instant)
        self._tell_metadata_table(active, plan, rollback, commands)
        if plan.action in (Action.CLUSTERING, Action.REPLACE_COMMIT):
            consistent_hashing.forget(self.storage, plan.instant)
        Markers(self.storage, plan.instant).delete()
        # a completed compaction is a commit, so what the plan says counts
        keeps_plan = plan.action not in _FORGOTTEN or (target is not None and is_clustering(active, target))
        with self.generator.reserve(locked=True) as slot:
            active.refresh()
            _withdraw(active, active.timeline.find(plan.instant))
            if keeps_plan:
                _revert_to_requested(active, plan)
            else:
                active.delete_pending(plan.instant, plan.action)
            self.storage.delete(heartbeat.heartbeat_path(plan.instant))
            PublicationIntent(self.storage, plan.instant).remove()
            metadata = RollbackMetadata(
                start=rollback.requested,
                millis=int((time.monotonic() - begun) * 1000),
                instant=plan.instant,
                action=plan.action,
                partitions=self._outcome(plan, paths, commands),
            )
            completion = slot.take(newest(active)) if active.layout.version >= 2 else None
            return _complete(active, rollback, metadata.encode(), completion)

    def _withdraw_late(self, active: ActiveTimeline) -> None:
        """Take away completed files that appeared when their writes had been rolled back: requests may take their time.

        Such a file has no inflight file beside it, as the rollback has deleted that, or it is older than a rollback of
        the attempt that made it. Only where there is one like that, rollbacks are read.
        """
        late = [(files, files[0].requested) for files in active.half_states()]
        wanted = {requested for files, requested in late if files[0].is_write}
        if not wanted:
            return
        for rollback in active.timeline.completed().of_actions(Action.ROLLBACK):
            plan = read_rollback_plan(active, rollback)
            if plan is None or plan.instant not in wanted:
                continue
            for files in (files for files, requested in late if requested == plan.instant):
                for instant in _void(files, rollback, forgets=plan.action in _FORGOTTEN):
                    _log.warning("%s is withdrawn: it appeared after its rollback %s", instant, rollback.requested)
                    active.delete(instant)

    def _detach_if_merged(self, target: Instant) -> None:
        """Take the metadata table away if what a completed write told it cannot be taken back."""
        config = TableConfig.load(self.storage)
        if is_attached(config) and is_merged(self.storage, config, target):
            _log.warning("the metadata table of %s is taken away, to be built anew", self.storage.root)
            detach_metadata_table(self.storage, config)

    def _tell_metadata_table(
        self,
        active: ActiveTimeline,
        plan: RollbackPlan,
        rollback: Instant,
        commands: Mapping[str, Mapping[str, int]],
    ) -> None:
        """Take back what the metadata table was told, as long as the write is pending and nobody looks at that."""
        config = TableConfig.load(self.storage)
        if not is_attached(config):
            return
        files = {
            partition: {path.rpartition("/")[2]: size for path, size in paths.items()}
            for partition, paths in commands.items()
        }
        try:
            with self.generator.reserve(locked=True) as slot:
                apply_rollback(
                    self.storage, config, plan.instant, rollback.requested, files, lambda: slot.take(newest(active))
                )
        except (CorruptTableError, FormatError) as failure:
            _log.warning("the metadata table of %s is taken away: %s", self.storage.root, failure)
            detach_metadata_table(self.storage, config)

    def _outcome(
        self, plan: RollbackPlan, deleted: Mapping[str, list[str]], commands: Mapping[str, Mapping[str, int]]
    ) -> dict[str, RolledBackPartition]:
        voided: dict[str, dict[str, int]] = {}
        for request in plan.requests:
            names = {name.rpartition("/")[2]: size for name, size in request.log_blocks.items()}
            voided.setdefault(request.partition, {}).update(names)
        uri = self.storage.uri
        return {
            partition: RolledBackPartition(
                deleted=tuple(uri(file) for file in deleted.get(partition, ())),
                command_files={uri(path): size for path, size in commands.get(partition, {}).items()},
                log_files=log_files,
            )
            for partition, log_files in voided.items()
        }

    def _refuse_log_blocks(self, plan: RollbackPlan, rollback: Instant) -> None:
        """From version 8 on log files are deleted; a plan that voids blocks is from before an upgrade."""
        if self.version >= 8 and any(request.log_blocks for request in plan.requests):
            raise UnsupportedTableError(
                f"the pending rollback {rollback.requested} of {plan.action} {plan.instant} was planned before the "
                "table was upgraded, and voids blocks of log files; let Apache Hudi finish it (its next write does)"
            )

    def _sweep(self, active: ActiveTimeline, options: Mapping[str, str]) -> None:
        """Remove markers, gates and old heartbeats of writers that died outside the time in which they were pending."""
        marked = sorted(marked_instants(self.storage))
        gated = gated_instants(self.storage)
        beats = self.storage.list(heartbeat.HEARTBEAT_FOLDER)["path"].to_pylist()
        if not marked and not gated and not beats:
            return
        # listed after the traces: whoever makes markers has been on the timeline before
        pending = {i.requested for i in active.reload().timeline.pending()}
        if not gated <= pending:
            remove_gates(self.storage, gated - pending)
        for instant in marked:
            if instant not in pending:
                Markers(self.storage, instant).delete()
        for path in beats:
            instant = path.rpartition("/")[2]
            if instant not in pending and self._is_dead(instant, options):
                self.storage.delete(path)

    def _is_dead(self, instant: str, options: Mapping[str, str]) -> bool:
        return heartbeat.HeartbeatPolicy.of(options).is_dead(self.storage, instant)


def _complete(active: ActiveTimeline, rollback: Instant, content: bytes, completion: str | None) -> Instant:
    """Complete a rollback, unless it is by now: what somebody sent who began it may have taken its time."""
    try:
        return active.complete(rollback, content, completion)
    except (AlreadyExistsError, TimelineError):
        done = next((i for i in active.reload().states(rollback) if i.is_completed), None)
        if done is None:
            raise
        return done


def _was_faster(target: Instant | None, rollback: Instant, announced_for: Instant | None) -> bool:
    """True if a write was completed before the rollback, announced and not begun with, could stop it. A rollback of
    somebody else may be meant for a completed write; then it is the later one. Layout 1 does not tell; there a rollback
    that was not begun with can be asked for again, and a commit that is lost cannot."""
    if target is None or not target.is_completed:
        return False
    if announced_for is not None:
        return not announced_for.is_completed
    return target.completion is None or target.completion > rollback.requested


def _withdraw(active: ActiveTimeline, target: Instant | None) -> None:
    """Delete the completed files of an instant that is rolled back."""
    if target is not None and target.is_completed:
        for instant in active.states(target):
            if instant.is_completed:
                active.delete(instant)


def _void(files: list[Instant], rollback: Instant, *, forgets: bool) -> list[Instant]:
    """Those completed files of an instant that count no more because of a rollback. ``forgets``: it leaves nothing of
    such an instant; else a later attempt may have made a file that counts."""
    states = {instant.state for instant in files}
    undone = State.INFLIGHT not in states and (State.REQUESTED in states or forgets)
    return [
        instant
        for instant in files
        if instant.is_completed
        and (undone or (instant.completion is not None and instant.completion < rollback.requested))
    ]


def _revert_to_requested(active: ActiveTimeline, plan: RollbackPlan) -> None:
    """Revert a rolled-back attempt at a compaction or clustering to its plan, to be tried again."""
    target = active.timeline.find(plan.instant)
    inflight = None if target is None else active.in_state(target, State.INFLIGHT)
    if inflight is not None:
        active.delete(inflight)


def newest(active: ActiveTimeline) -> str | None:
    """The latest time on the timeline, requested or completed: new instants come after it."""
    times = [t for i in active.timeline for t in (i.requested, i.completion) if t is not None]
    return max(times, default=None)


def refuse_pending_restore(active: ActiveTimeline) -> None:
    """Refuse to write to a table that is halfway through a restore to a savepoint."""
    pending = active.timeline.pending().of_actions(Action.RESTORE).first
    if pending is not None:
        raise TransactionError(
            f"a restore (instant {pending.requested}) was begun and not finished; run the restore again before writing"
        )
