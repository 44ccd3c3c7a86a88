"""Rolling back failed writes, as Apache Hudi leaves it: a rollback instant on the timeline, nothing of the write.

The order makes every point of death recoverable. First the plan is published (``rollback.requested``); from then on it
alone tells what to do, and whoever comes next finishes it. Then the data files go, the markers, the failed write's
inflight and requested files, and last the rollback is completed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pyhudi.errors import (
    CorruptTableError,
    FormatError,
    InvalidOptionError,
    TransactionError,
    UnsupportedTableError,
)
from pyhudi.metadata.detach import detach_metadata_table, is_attached
from pyhudi.metadata.undo import record_rollback
from pyhudi.table.config import TableConfig
from pyhudi.timeline import heartbeat
from pyhudi.timeline.active import ActiveTimeline
from pyhudi.timeline.gate import close_gates, gated_instants, remove_gates
from pyhudi.timeline.generator import InstantGenerator
from pyhudi.timeline.instants import Action, Instant, State
from pyhudi.timeline.markers import Markers, marked_instants
from pyhudi.timeline.plans import RollbackMetadata, RollbackPlan, RolledBackPartition
from pyhudi.transaction.conflicts import is_clustering
from pyhudi.transaction.locks import number
from pyhudi.transaction.rollback_logs import void_appends
from pyhudi.transaction.rollback_plan import plan_rollback, planned_paths

if TYPE_CHECKING:
    from pyhudi.storage import Storage

POLICY_KEY = "hoodie.clean.failed.writes.policy"
POLICY_OLD_KEY = "hoodie.cleaner.policy.failed.writes"
CONCURRENCY_KEY = "hoodie.write.concurrency.mode"

_WRITES = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
_FORGOTTEN = _WRITES | {Action.LOG_COMPACTION}
"""Actions of which a rollback leaves nothing; of others the plan stays, to be tried again."""
_log = logging.getLogger(__name__)


class FailedWrites(StrEnum):
    """When a pending write of somebody else counts as failed."""

    EAGER = "EAGER"
    """Always: there is one writer, and it is this one."""
    LAZY = "LAZY"
    """When its heartbeat has stopped."""
    NEVER = "NEVER"

    @classmethod
    def of(cls, options: Mapping[str, str]) -> FailedWrites:
        """From the options; several writers mean LAZY unless said otherwise."""
        several = options.get(CONCURRENCY_KEY, "SINGLE_WRITER").upper() != "SINGLE_WRITER"
        named = options.get(POLICY_KEY) or options.get(POLICY_OLD_KEY) or ("LAZY" if several else "EAGER")
        try:
            return cls(named.upper())
        except ValueError:
            raise InvalidOptionError(POLICY_KEY, named, ", ".join(cls)) from None


@dataclass(frozen=True, slots=True)
class Rollbacks:
    """Rolls back on one table. The caller holds the table lock for every call."""

    storage: Storage
    version: int
    generator: InstantGenerator

    def failed_writes(self, active: ActiveTimeline, policy: FailedWrites, options: Mapping[str, str]) -> list[Instant]:
        """Pending writes that count as failed, newest first. Of table services only log compactions that were begun do:
        the plans of others stay, for whoever carries them out next."""
        if policy is FailedWrites.NEVER:
            return []
        writes = [
            i
            for i in active.timeline.pending()
            if (i.action in _WRITES and not is_clustering(active, i))
            or (i.action == Action.LOG_COMPACTION and i.state is State.INFLIGHT)
        ]
        if policy is FailedWrites.LAZY:
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
        """Finish the rollbacks that somebody began, then roll back ``failed``; returns the completed rollbacks."""
        done: list[Instant] = []
        for pending in active.timeline.pending().of_actions(Action.ROLLBACK):
            plan = read_rollback_plan(active, pending)
            if plan is None:
                # a plan that was never whole was never begun with
                active.delete_pending(pending.requested, Action.ROLLBACK)
                continue
            done.append(self._finish(active, pending, plan))
        left = [target for target in failed if active.timeline.find(target.requested, target.action) is not None]
        done += [self.roll_back(active, target) for target in left]
        self._sweep(active, options)
        return done

    def roll_back(self, active: ActiveTimeline, target: Instant) -> Instant:
        """Undo one pending write; returns the completed rollback instant."""
        _log.warning("rolling back the failed %s %s of %s", target.action, target.requested, self.storage.root)
        close_gates(self.storage, target.requested)  # before its files are gathered: no task may add to them
        with self.generator.reserve(locked=True) as slot:
            plan = plan_rollback(active, self.version, target)
            requested = active.create_requested(Action.ROLLBACK, slot.take(newest(active)), plan.encode())
        return self._finish(active, requested, plan)

    def _finish(self, active: ActiveTimeline, rollback: Instant, plan: RollbackPlan) -> Instant:
        self._refuse_log_blocks(plan, rollback)
        begun = time.monotonic()
        if rollback.state is State.REQUESTED:
            rollback = active.to_inflight(rollback)
        target = active.timeline.find(plan.instant, plan.action)
        if target is not None and target.is_completed:
            active.delete(target)  # first of all nobody must see it any more
        paths = planned_paths(plan)
        for files in paths.values():
            self.storage.delete_many(files)
        commands = void_appends(self.storage, plan.requests, rollback.requested, plan.instant)
        self._tell_metadata_table(active, plan, rollback, commands)
        Markers(self.storage, plan.instant).delete()
        keeps_plan = target is not None and (target.action not in _FORGOTTEN or is_clustering(active, target))
        with self.generator.reserve(locked=True) as slot:
            if keeps_plan:
                _revert_to_requested(active, plan)
            else:
                active.delete_pending(plan.instant, plan.action)
            self.storage.delete(heartbeat.heartbeat_path(plan.instant))
            metadata = RollbackMetadata(
                start=rollback.requested,
                millis=int((time.monotonic() - begun) * 1000),
                instant=plan.instant,
                action=plan.action,
                partitions=self._outcome(plan, paths, commands),
            )
            completion = slot.take(newest(active)) if active.layout.version >= 2 else None
            return active.complete(rollback, metadata.encode(), completion)

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
                record_rollback(
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
        interval = number(options, heartbeat.INTERVAL_KEY, heartbeat.DEFAULT_INTERVAL_MS)
        misses = number(options, heartbeat.MISSES_KEY, heartbeat.DEFAULT_TOLERABLE_MISSES)
        return heartbeat.is_dead(self.storage, instant, interval_ms=interval, tolerable_misses=misses)


def _revert_to_requested(active: ActiveTimeline, plan: RollbackPlan) -> None:
    """What a rolled-back attempt at a compaction or clustering leaves: its plan, to be tried again."""
    target = active.timeline.find(plan.instant, plan.action)
    inflight = None if target is None else active.in_state(target, State.INFLIGHT)
    if inflight is not None:
        active.delete(inflight)


def newest(active: ActiveTimeline) -> str | None:
    """The latest time on the timeline, requested or completed: new instants come after it."""
    times = [t for i in active.timeline for t in (i.requested, i.completion) if t is not None]
    return max(times, default=None)


def refuse_pending_restore(active: ActiveTimeline) -> None:
    """Nobody may write to a table that is halfway back to a savepoint."""
    pending = active.timeline.pending().of_actions(Action.RESTORE).first
    if pending is not None:
        raise TransactionError(
            f"a restore (instant {pending.requested}) was begun and not finished; run the restore again before writing"
        )


def read_rollback_plan(active: ActiveTimeline, rollback: Instant) -> RollbackPlan | None:
    """What a rollback undoes; None where its plan was never whole, and so never begun with."""
    requested = active.in_state(rollback, State.REQUESTED)
    if requested is None:
        return None
    try:
        return RollbackPlan.decode(active.read(requested))
    except FormatError:
        return None
