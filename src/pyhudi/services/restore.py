"""Restore: reverts a table to the snapshot of a write by rolling back all later writes, the last one first.

An interrupted restore is pending, and nobody can write before it is run again. Its plan lists the writes to roll back;
each of them has its own rollback, which can be recovered independently. Finally the restore records the results of all
of them, and they are removed from the timeline.
"""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options
from pyhudi.config.enums import FailedWritesPolicy
from pyhudi.config.options import ARCHIVE_BEYOND_SAVEPOINT
from pyhudi.errors import InstantNotFoundError, TransactionError
from pyhudi.metadata.delete_metadata_table import delete_metadata_table
from pyhudi.metadata.writer.initial_statistics import FileStatsReader
from pyhudi.metrics.progress import Progress, report_progress
from pyhudi.services.rollback import rebuild_metadata, refuse_savepoint
from pyhudi.services.savepoint import completed_write
from pyhudi.services.service_result import PhaseTimer, ServiceResult
from pyhudi.services.snapshot_availability import check_not_cleaned
from pyhudi.storage.concurrent_reads import read_each
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.moved_instants import load_whole_timeline
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.action_avro import encode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import archived_writes, read_archived_timeline
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.instant import Action, Instant, State, completed_action
from pyhudi.timeline.operation_types import REWRITING_OPERATIONS
from pyhudi.timeline.plans.restore_plan import RestorePlan, instant_infos
from pyhudi.transaction.concurrency_mode import failed_writes_policy
from pyhudi.transaction.locks.lock_factory import make_time_generator
from pyhudi.transaction.plan_ownership import check_no_heartbeat
from pyhudi.transaction.post_commit.metadata_updates import MetadataUpdates
from pyhudi.transaction.rollback import late_data_files
from pyhudi.transaction.rollback.rollback_executor import RollbackExecutor
from pyhudi.transaction.rollback.upgraded_log_files import check_log_files
from pyhudi.transaction.single_writer_locks import in_process_writer_lock
from pyhudi.transaction.table_checks import current_config

SERVICE = "restore"


def plan_restore(table: TableSnapshot, to: str) -> RestorePlan:
    """Return the plan of a restore to the snapshot of a write, without writing anything.

    Raises:
        InstantNotFoundError: The active timeline has no such completed write.
        TransactionError: Cleaning has deleted files of that snapshot, a later write has been archived, has a savepoint,
            or shares a log file with another one.
    """
    active = table.active
    restored = completed_write(active, to, table.storage.uri())
    _refuse_archived(active, restored)
    check_not_cleaned(table, restored, f"cannot restore the table to {to}")
    writes = active.timeline.writes()
    pending = [i for i in reversed(writes.pending().instants) if i.requested > to]
    done = [i for i in reversed(writes.completed().by_completion()) if i.order_time > restored.order_time]
    done = [i for i in done if i.requested > to or active.commit_metadata(i).operation not in REWRITING_OPERATIONS]
    for target in (*pending, *done):
        refuse_savepoint(active, target)
    check_log_files(active, table.config.version, done)
    return RestorePlan(to, tuple((i.requested, i.action) for i in (*pending, *done)))


def _refuse_archived(active: ActiveTimeline, target: Instant) -> None:
    """Refuse a restore to a write that archival has passed: archived writes cannot be rolled back, and would count as
    committed again after the next write."""
    history = archived_writes(active.storage, active.layout)
    order_times = pc.coalesce(history["completion"], history["requested"])
    later = history.filter(pc.greater(order_times, target.order_time))["requested"].to_pylist()
    concurrent = [requested for requested in later if requested <= target.requested]
    rewrites = _archived_rewrites(active, concurrent) if concurrent else set()
    later = [requested for requested in later if requested not in rewrites]
    if later:
        shown = ", ".join(later[:3]) + (", …" if len(later) > 3 else "")
        raise TransactionError(
            f"cannot restore the table to {target.requested}: {len(later)} later writes have been archived and cannot "
            f"be rolled back: {shown}. Choose an instant from {active.timeline.start} on, or read the snapshot (time "
            f"travel to {target.requested}) and write its rows. Archival keeps what restores to savepoints need unless "
            f"{ARCHIVE_BEYOND_SAVEPOINT.key} is set"
        )


def _archived_rewrites(active: ActiveTimeline, instants: list[str]) -> set[str]:
    """Return those of the archived writes that have not changed rows."""
    history = read_archived_timeline(active.storage, active.layout, up_to=max(instants))
    history = history.filter(pc.is_in(history["requested"], value_set=pa.array(instants)))
    contents = dict(zip(history["requested"].to_pylist(), history["metadata"].to_pylist(), strict=True))
    return {
        instant
        for instant, content in contents.items()
        if content and decode_commit(content).operation in REWRITING_OPERATIONS
    }


def pending_restore(active: ActiveTimeline) -> RestorePlan | None:
    """Return the plan of a restore that was started and not completed.

    Raises:
        CorruptInstantError: The plan cannot be parsed.
    """
    restore = active.timeline.pending().of_actions(Action.RESTORE).first
    if restore is None:
        return None
    requested = active.in_state(restore, State.REQUESTED) or restore
    with active.parsing(requested):
        return RestorePlan.decode(restore.requested, active.read(requested))


class Restorer:
    """Restores one table.

    Args:
        client: The table.
        opts: Options of locks, heartbeats and the metadata table.
        stats_reader: Reads files if the metadata table has to be rebuilt.
        progress: Called with the numbers of rolled-back and of all writes.
    """

    def __init__(
        self,
        client: TableMetaClient,
        opts: Options,
        stats_reader: FileStatsReader,
        progress: Progress | None = None,
    ) -> None:
        self._client, self._opts, self._progress = client, opts, progress
        self._storage = client.storage
        self._generator = make_time_generator(client.storage, opts, client.config.timezone)
        self._metadata_updates = MetadataUpdates(client.storage, opts, self._generator, stats_reader)
        self._phases = PhaseTimer()

    def plan(self, to: str | None = None) -> RestorePlan:
        """Return the plan of a restore now, or that of the pending restore, without writing anything.

        Raises:
            InstantNotFoundError: The active timeline has no such completed write, or no restore is pending.
            TransactionError: As of :meth:`run`.
        """
        table = TableSnapshot.load(self._client.reload())
        plan = self._resumed_plan(table.active, to)
        if plan is not None:
            return plan
        assert to is not None
        return plan_restore(table, to)

    def run(self, to: str | None = None) -> ServiceResult:
        """Restore the table to the snapshot of the write ``to``; None continues the pending restore.

        Raises:
            InstantNotFoundError: The active timeline has no such completed write, or no restore is pending.
            TransactionError: Another restore is pending, cleaning has deleted files of that snapshot, or a later write
                has been archived or has a savepoint, or Apache Hudi has changed the version of the table halfway.
            BusyError: A write is running.
            LockError: The lock of the table could not be acquired, or was lost; the restore is pending then.
        """
        with in_process_writer_lock(self._storage, self._opts), self._generator.lock:
            with self._phases("plan"):
                config = current_config(self._storage, self._client.config)
                active = load_whole_timeline(self._storage, config.layout)
                plan = self._resumed_plan(active, to)
                if plan is None:  # one without targets is false, too
                    plan = self._scheduled(active, config, to)
            started = time.monotonic()
            with self._phases("rollback"):
                self._generator.lock.ensure_held()
                # Delta commits of a metadata table of version 6 have the instants of rollbacks, which will be removed.
                without = delete_metadata_table(self._storage, config) if config.version < 8 else config
                restore = active.timeline.find(plan.instant or "", Action.RESTORE)
                assert restore is not None
                if restore.state is State.REQUESTED:
                    restore = active.to_inflight(restore)
                self._undo(active, self._rollbacks(without), plan)
            with self._phases("metadata"):
                rebuild_metadata(self._metadata_updates, config)
            with self._phases("commit"):
                files = self._complete(active, restore, plan, int((time.monotonic() - started) * 1000))
        assert plan.instant is not None
        counts = {"instants": len(plan), "files": files}
        return ServiceResult(
            SERVICE, self._storage.uri(), (plan.instant,), counts, millis=self._phases.millis
        ).published(self._opts)

    def _rollbacks(self, config: TableConfig) -> RollbackExecutor:
        return RollbackExecutor.from_options(self._storage, config.version, self._generator, self._opts)

    # --- steps -------------------------------------------------------------------------------------------------------

    def _resumed_plan(self, active: ActiveTimeline, to: str | None) -> RestorePlan | None:
        plan = pending_restore(active)
        if plan is None and to is None:
            raise InstantNotFoundError(f"no restore is pending in the table at {self._storage.uri()}")
        if plan is not None and to not in (None, plan.to):
            raise TransactionError(
                f"a restore to {plan.to} (instant {plan.instant}) was started but not completed; run it first: "
                "services.restore()"
            )
        return plan

    def _scheduled(self, active: ActiveTimeline, config: TableConfig, to: str | None) -> RestorePlan:
        """Check all preconditions, then add the plan to the timeline."""
        assert to is not None
        plan = plan_restore(TableSnapshot(self._storage, config, active), to)
        rollbacks = self._rollbacks(config)
        targets = [found for target in plan.targets if (found := active.timeline.find(*target)) is not None]
        if failed_writes_policy(self._opts) is not FailedWritesPolicy.EAGER:
            for target in targets:
                if target.state is State.INFLIGHT:
                    check_no_heartbeat(self._storage, target, self._opts)
        rollbacks.check(active, targets)
        rollbacks.complete_and_roll_back(active, [])
        with self._generator.reserve(locked=True) as reserved:
            instant = reserved.take(active.latest_time)
            self._generator.lock.ensure_held()
            active.create_requested(Action.RESTORE, instant, plan.encode(config.version))
        return RestorePlan(plan.to, plan.targets, instant)

    def _undo(self, active: ActiveTimeline, rollbacks: RollbackExecutor, plan: RestorePlan) -> None:
        rollbacks.complete_and_roll_back(active, [])  # Those started by an earlier attempt.
        for number, (requested, action) in enumerate(plan.targets):
            actions = action, completed_action(action)
            target = active.timeline.find(requested, *actions)
            # A pending write may be completed before its rollback can stop it; then it is rolled back, too.
            while target is not None and rollbacks.roll_back(active, target, with_plan=True) is None:
                target = active.timeline.find(requested, *actions)
            if target is not None:
                # After a rollback the plan of a started service remains, to be retried; a restore removes it, too.
                active.delete_pending(requested, action)
            report_progress(self._progress, "undo writes", number + 1, len(plan))
        resizes = {requested for requested, action in plan.targets if action in late_data_files.RESIZES}
        late_data_files.delete_slices_of_removed_plans(active, resizes)

    def _complete(self, active: ActiveTimeline, restore: Instant, plan: RestorePlan, millis: int) -> int:
        """Complete the restore with the results of its rollbacks, which are removed from the timeline. Return the
        number of deleted files."""
        self._generator.lock.ensure_held()  # Who completes the restore deletes its rollbacks.
        rollbacks = active.timeline.completed().of_actions(Action.ROLLBACK).after(restore.requested).instants
        targets = {requested for requested, _ in plan.targets}
        metadata: dict[str, list[Any]] = {}
        own_rollbacks = []
        for rollback, record in read_each(active.completed_record, rollbacks):
            (undone, *_) = record["commitsRollback"] or [""]
            if undone in targets:
                metadata.setdefault(undone, []).append(record)
                own_rollbacks.append(rollback)
        result = {
            "startRestoreTime": restore.requested,
            "timeTakenInMillis": millis,
            "instantsToRollback": [requested for requested, _ in plan.targets],
            "hoodieRestoreMetadata": metadata,
            "version": 1,
            "restoreInstantInfo": instant_infos(plan.targets),
        }
        version = self._client.config.version
        content = encode_record(Action.RESTORE, State.COMPLETED, result, version)
        with self._generator.reserve(locked=True) as reserved:
            completion = reserved.take(active.latest_time) if version >= 8 else None
            self._generator.lock.ensure_held()
            active.complete(restore, content, completion)
        states = [state for rollback in own_rollbacks for state in active.states(rollback)]
        # The completed file is deleted last: without it the others would look like an interrupted rollback.
        for kind in (State.REQUESTED, State.INFLIGHT, State.COMPLETED):
            active.delete_states(state for state in states if state.state is kind)
        return sum(record["totalFilesDeleted"] for records in metadata.values() for record in records)
