"""Execution of cleans: plans are added to the timeline, their files deleted, and the metadata table updated.

An interrupted clean is in the timeline with its plan, and the next one continues it: deleting a file again has no
effect. The lock of the table is held to schedule and to complete, not while files are deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from itertools import compress

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.enums import FailedWritesPolicy
from pyhudi.errors import AlreadyExistsError, TransactionError
from pyhudi.format.file_names import file_name_of
from pyhudi.metadata.writer.initial_statistics import FileStatsReader
from pyhudi.metadata.writer.metadata_writer import update_from_clean
from pyhudi.metrics.progress import Progress, report_progress
from pyhudi.services.cleaning.clean_planner import (
    empty_clean_due,
    make_clean_plan,
    pending_cleans,
    read_savepoints,
    with_last_clean_retained,
)
from pyhudi.services.service_result import PhaseTimer, ServiceResult
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.storage.table_paths import PARTITION_METADATA
from pyhudi.table.clean_retention import base_and_log_files
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.moved_instants import refuse_moved_instants
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.table.view.pending_file_groups import is_clustering
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.plans.clean_plan import CleanPlan, clean_metadata, paths_of
from pyhudi.timeline.rolling_metadata import RollingMetadata
from pyhudi.timeline.time_generator import ReservedTime
from pyhudi.transaction.concurrency_mode import failed_writes_policy
from pyhudi.transaction.locks.lock_factory import make_time_generator
from pyhudi.transaction.post_commit.metadata_updates import MetadataUpdates
from pyhudi.transaction.rollback.rollback_executor import RollbackExecutor
from pyhudi.transaction.table_checks import current_snapshot, refuse_pending_restore

SERVICE = "clean"
_THREADS = 16
_BATCH = 1000
_PLANS = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.REPLACE_COMMIT)
"""Actions whose pending plans retain file slices."""


class Cleaner:
    """Cleans one table.

    Args:
        client: The table.
        opts: Options of cleaning and locks.
        stats_reader: Reads files if the metadata table has to be rebuilt.
        progress: Called with the numbers of deleted and of all files.
    """

    def __init__(
        self,
        client: TableMetaClient,
        opts: Options,
        stats_reader: FileStatsReader,
        progress: Progress | None = None,
    ) -> None:
        self._client, self._opts = client, opts
        self._storage: Storage = client.storage
        self._progress = progress
        self._generator = make_time_generator(client.storage, opts, client.config.timezone)
        self._metadata_updates = MetadataUpdates(client.storage, opts, self._generator, stats_reader)
        self._phases = PhaseTimer()

    def plan(self, *, only_if_due: bool = False) -> CleanPlan:
        """Return the plan of a clean now, without writing anything."""
        return make_clean_plan(TableSnapshot.load(self._client.reload()), self._opts, only_if_due=only_if_due)

    def run(self, table: TableSnapshot | None = None, *, only_if_due: bool = False) -> ServiceResult:
        """Execute pending cleans, then plan and execute one, if there is anything to delete.

        Args:
            table: The table as it was a moment ago, to plan on; None: it is read. Before a plan gets to the timeline,
                it is compared under the lock with what has happened since.
            only_if_due: Plan nothing before the trigger is due.

        Raises:
            TransactionError: A restore is pending, or a pending plan contains files that the table still needs.
            CorruptInstantError: A plan or the timeline cannot be read.
            LockError: The lock of the table could not be acquired.
        """
        with self._phases("plan"):
            table = table or TableSnapshot.load(self._client)
            table.config.check_writable()
            refuse_pending_restore(table.active)
            self._roll_back_failed(table)
            plans = pending_cleans(table.active)
            scheduled, reason = None, ""
            for plan in plans:
                self._check(table, plan)
            if not plans or self._opts.get_typed(options.CLEAN_MULTIPLE_ENABLED):
                new = make_clean_plan(table, self._opts, only_if_due=only_if_due)
                reason = new.reason
                if len(new) or empty_clean_due(table, new, self._opts):
                    scheduled = self.schedule(table, new, only_if_due=only_if_due, begin=True)
        done = [plan for plan in plans if self._begin(plan) and self._execute(plan)]
        done += [scheduled] if scheduled is not None and self._execute(scheduled) else []
        return ServiceResult(
            SERVICE,
            self._storage.uri(),
            tuple(plan.instant for plan in done if plan.instant is not None),
            {"files": sum(map(len, done)), "partitions": sum(len(p.names_by_partition()) for p in done)},
            sum(plan.num_bytes for plan in done),
            self._phases.millis,
            reason if not done or any(plan.incomplete for plan in done) else "",
        ).published(self._opts)

    def delete_orphans(self, choose: Callable[[TableSnapshot], CleanPlan]) -> None:
        """Execute pending cleans, then delete the files selected by ``choose``, which belong to no write. The next
        clean continues where the last one ended.

        Raises:
            TransactionError: A restore is pending, or a pending plan contains files that the table still needs.
            LockError: The lock of the table could not be acquired.
        """
        table = TableSnapshot.load(self._client.reload())
        refuse_pending_restore(table.active)
        pending = pending_cleans(table.active)
        for plan in pending:
            self._check(table, plan)
        for plan in pending:
            if self._begin(plan):
                self._execute(plan)
        table = table.reload()
        plan = choose(table)
        if not len(plan):
            return
        with self._generator.reserve() as reserved:
            now = current_snapshot(self._storage, table.config)
            if set(now.active.timeline) != set(table.active.timeline):
                plan = choose(now)
                if not len(plan):
                    return
            planned = self._request(now, reserved, with_last_clean_retained(plan, now.active, self._opts), begin=True)
        self._execute(planned)

    def renew_last(self) -> bool:
        """Add a clean without files that records the same limits as the last one, so that archival may take that away:
        queries, also those of Apache Hudi, look for the last clean on the active timeline only. Return False, and do
        nothing, while a clean is pending: it would not be the last one, although it has later limits.

        Raises:
            TransactionError: A restore is pending.
            LockError: The lock of the table could not be acquired.
        """
        with self._generator.reserve() as reserved:
            table = current_snapshot(self._storage, self._client.config)
            if pending_cleans(table.active):
                return False
            plan = with_last_clean_retained(CleanPlan(), table.active, self._opts)
            planned = self._request(table, reserved, plan, begin=True)
        return self._execute(planned)

    # --- steps -------------------------------------------------------------------------------------------------------

    def _roll_back_failed(self, table: TableSnapshot) -> None:
        """Roll back writes whose heartbeat has expired, if the policy leaves this to cleaning."""
        policy = failed_writes_policy(self._opts)
        if policy is not FailedWritesPolicy.LAZY:
            return
        rollbacks = RollbackExecutor.from_options(self._storage, table.config.version, self._generator, self._opts)
        if not rollbacks.failed_writes(table.active, policy):
            return
        with self._generator.lock:
            active = table.active.reload()
            failed = rollbacks.failed_writes(active, policy)
            rollbacks.check(active, failed)
            rollbacks.complete_and_roll_back(active, failed, leave_running=True)

    def schedule(
        self, table: TableSnapshot, plan: CleanPlan, *, only_if_due: bool, begin: bool = False
    ) -> CleanPlan | None:
        """Add a plan to the timeline, with ``begin`` inflight, to be executed by this process; return None if there is
        nothing to do any more."""
        with self._generator.reserve() as reserved:
            now = current_snapshot(self._storage, table.config)
            if _retaining_instants(now.active) != _retaining_instants(table.active):
                # The retained slices have changed since.
                if pending_cleans(now.active) and not self._opts.get_typed(options.CLEAN_MULTIPLE_ENABLED):
                    return None
                plan = make_clean_plan(now, self._opts, only_if_due=only_if_due)
                if not len(plan):
                    return None
            return self._request(now, reserved, plan, begin=begin)

    def _request(self, table: TableSnapshot, reserved: ReservedTime, plan: CleanPlan, *, begin: bool) -> CleanPlan:
        instant = reserved.take(table.active.latest_time)
        self._generator.lock.ensure_held()  # There may be a savepoint or a plan since that needs these files.
        content = plan.encode(table.config.version, self._storage.uri())
        requested = table.active.create_requested(Action.CLEAN, instant, content)
        if begin:
            _to_inflight(table.active, requested, table.config.version)
        return plan.scheduled(instant)

    def _check(self, table: TableSnapshot, plan: CleanPlan) -> None:
        """Refuse a pending plan, possibly of another program, with files that are still needed."""
        if not len(plan):
            return
        refuse_moved_instants(table.active)
        paths = plan.paths()
        retained = [pa.array([], pa.string()), *read_savepoints(table.active).values()]
        if not plan.orphans:  # Readers may consider these part of the table, which is the reason to delete them.
            view = FileSystemView.load(table, partitions=sorted(plan.names_by_partition()))
            retained.append(paths_of(base_and_log_files(view.latest_slices())))
        needed = paths.filter(pc.is_in(paths, value_set=pa.concat_arrays(retained)))
        if len(needed):
            raise TransactionError(
                f"the pending clean {plan.instant} would delete {len(needed)} files that the table needs, such as "
                f"{needed[0].as_py()!r}, which belongs to the latest snapshot or a savepoint. Delete its files "
                f"{table.config.layout.path(f'{plan.instant}.clean.requested')} and .inflight, and clean again"
            )

    def _begin(self, plan: CleanPlan) -> bool:
        """Move a pending plan to inflight. Return False if another process has executed it, or it was removed."""
        with self._phases("schedule"), self._generator.lock:
            # Read again: the lock was free since the plan was found, and the table may have been upgraded, too.
            active = self._client.reload().active_timeline()
            clean = _pending(active, plan.instant)
            if clean is not None and clean.state is State.REQUESTED:
                _to_inflight(active, clean, self._client.config.version)
            return clean is not None

    def _execute(self, plan: CleanPlan) -> bool:
        """Delete the files of an inflight plan and complete it. Return False if another process has executed it, or it
        was removed."""
        started = time.monotonic()
        with self._phases("delete"):
            self.delete_files(plan)
        with self._phases("commit"):
            return self._complete(plan, started)

    def delete_files(self, plan: CleanPlan) -> None:
        """Delete the files of a plan. Those that are missing were deleted by an earlier attempt."""
        paths = plan.paths().to_pylist()
        batches = [paths[at : at + _BATCH] for at in range(0, len(paths), _BATCH)]
        workers = min(_THREADS, self._opts.get_typed(options.CLEAN_PARALLELISM), max(len(batches), 1))
        done = 0
        with ThreadPoolExecutor(workers) if len(batches) > 1 else nullcontext() as pool:
            deleted = (map if pool is None else pool.map)(self._storage.delete_many, batches)
            for batch, _ in zip(batches, deleted, strict=True):
                done += len(batch)
                report_progress(self._progress, "delete files", done, len(paths))

    def _complete(self, plan: CleanPlan, started: float) -> bool:
        with self._generator.reserve() as reserved:
            table = current_snapshot(self._storage, self._client.config)
            active = table.active
            clean = _pending(active, plan.instant)
            if clean is None:
                return False
            dropped = [] if _is_written(active) else self._drop_empty(plan.partitions)
            locked = self._metadata_updates.locked_table(active, table.config, reserved)
            locked = update_from_clean(locked, clean.requested, plan.files, dropped)
            version = locked.config.version
            millis = int((time.monotonic() - started) * 1000)
            extra = RollingMetadata.from_options(self._opts).with_rolled(plan.extra_metadata(), active)
            content = clean_metadata(plan, clean.requested, millis, version=version, dropped=dropped, extra=extra)
            self._generator.lock.ensure_held()
            active.complete(clean, content, locked.completed_at(version))
            job = self._metadata_updates.plan_services(locked)
        self._metadata_updates.run_services(locked.config, job)
        return True

    def _drop_empty(self, partitions: Sequence[str]) -> list[str]:
        """Delete the folders of those of the partitions that are empty. Return these partitions."""
        empty = list(compress(partitions, concurrent_map(partial(_is_empty, self._storage), partitions)))
        if empty:
            self._generator.lock.ensure_held()  # A write may have begun since that adds files to them.
            concurrent_map(self._storage.delete_tree, empty)
        return empty


def _retaining_instants(active: ActiveTimeline) -> set[tuple[str, str]]:
    """Return the instants that retain or affect file slices: savepoints, plans, cleans, rollbacks of writes. Completed
    cleans belong to them: another process may have deleted the same files meanwhile."""
    timeline = active.timeline
    pending = timeline.pending().of_actions(*_PLANS)
    kept = [*pending, *timeline.of_actions(Action.CLEAN, Action.SAVEPOINT, Action.ROLLBACK, Action.RESTORE)]
    return {(i.requested, i.action) for i in kept}


def _pending(active: ActiveTimeline, instant: str | None) -> Instant | None:
    clean = None if instant is None else active.timeline.find(instant, Action.CLEAN)
    return None if clean is None or clean.is_completed else clean


def _to_inflight(active: ActiveTimeline, clean: Instant, version: int) -> None:
    # Releases before 1.1 have the plan in both files.
    content = active.read(clean) if version < 9 else b""
    with suppress(AlreadyExistsError):
        active.to_inflight(clean, content)


def _is_written(active: ActiveTimeline) -> bool:
    """Return True if a write is pending, which may have created files in any partition."""
    writes = active.timeline.pending().of_actions(Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
    return any(not is_clustering(active, i) for i in writes)


def _is_empty(storage: Storage, partition: str) -> bool:
    """Return True if the folder of a partition has no data; that of the whole table never counts."""
    names = [file_name_of(path) for path in storage.list(partition, recursive=True)["path"].to_pylist()]
    return bool(partition) and all(name.startswith(PARTITION_METADATA) for name in names)
