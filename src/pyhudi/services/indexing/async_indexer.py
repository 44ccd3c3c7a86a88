"""Execution of index plans: builds from completed data, concurrent with writers that maintain the indexes.

The lock of the table is held twice, for short times: to announce the partitions, after creating their file groups, and
to publish them. In between, writes themselves update the partitions; if a write has not, because it did not know them,
the build starts again. Each attempt first removes leftovers of an earlier one; a failed attempt is undone, and the plan
remains.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyhudi.config import Options
from pyhudi.config.enums import FailedWritesPolicy
from pyhudi.errors import ConflictError, InstantNotFoundError, NotFoundError
from pyhudi.metadata.file_groups.delta_commit_writer import MetadataCommit, begin_delta_commit, complete_delta_commit
from pyhudi.metadata.indexes.index_declarations import declare_partitions
from pyhudi.metadata.indexes.pending_index_plans import pending_index_plans
from pyhudi.metadata.metadata_layout import load_metadata_timeline
from pyhudi.metadata.writer.enabled_partitions import build_enabled_partitions
from pyhudi.metadata.writer.index_build_state import begin_index_build, files_exist, is_in_use, rollback_index_build
from pyhudi.metadata.writer.initial_statistics import LOCAL, FileStatsReader
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.metrics.progress import Progress, report_progress
from pyhudi.services.indexing.catch_up import MissedUpdateDetector, was_written_since
from pyhudi.services.indexing.index_builder import PROGRESS, IndexResult, columns_of, lock_table
from pyhudi.services.indexing.index_planner import last_contiguous_write
from pyhudi.services.indexing.index_preparation import PreparedIndex, Preparer, prepare_indexes
from pyhudi.services.indexing.index_requests import build_options, check_metadata_enabled, request_of
from pyhudi.services.indexing.index_support import check_supported
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.fencing.attempt_claim import AttemptClaim
from pyhudi.timeline.heartbeat import Heartbeat, HeartbeatPolicy
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.operation_types import BULK_INSERT_PREPPED
from pyhudi.timeline.plans.index_plan import IndexPlan, encode_completed_build
from pyhudi.transaction.concurrency_mode import failed_writes_policy
from pyhudi.transaction.plan_ownership import check_no_heartbeat

_TRIES = 3
"""Number of attempts to write base files concurrently with writers; the last one excludes other writers."""

_NO_PLANS = "no index is planned"

_log = logging.getLogger(__name__)


def plans_to_run(client: TableMetaClient, opts: Options, instant: str | None = None) -> list[IndexPlan]:
    """Return the pending index plans, oldest first, or only the one of ``instant``.

    Raises:
        InstantNotFoundError: No such plan is pending.
        ConfigError: The metadata table is disabled.
    """
    check_metadata_enabled(opts)
    plans = pending_index_plans(client.active_timeline())
    if instant is not None:
        plans = [plan for plan in plans if plan.instant == instant]
        if not plans:
            raise InstantNotFoundError(f"no indexing {instant!r} is pending in the table at {client.storage.root}")
    return plans


def planned_result(plans: Sequence[IndexPlan]) -> IndexResult:
    """Return the result that the execution of plans would have."""
    partitions = tuple(partition for plan in plans for partition in plan.partitions)
    return IndexResult(partitions, "" if plans else _NO_PLANS)


def run_index_plans(
    client: TableMetaClient,
    opts: Options,
    plans: Sequence[IndexPlan],
    *,
    preparer: Callable[[], Preparer],
    stats_reader: FileStatsReader = LOCAL,
    progress: Progress | None = None,
) -> IndexResult:
    """Execute pending index plans in their order. ``preparer`` prepares indexes that require an engine,
    ``stats_reader`` reads files for the others.

    Raises:
        ConflictError: Another process considered this attempt dead, or a write could not maintain the index.
        BusyError: Another process is executing a plan.
        UnsupportedTableError: A plan contains an index that pyhudi or the table does not support.
        ConfigError: A prerequisite of an index is missing.
        TransactionError: A restore is pending.
    """
    if not plans:
        return IndexResult(reason=_NO_PLANS)
    built: list[str] = []
    for plan in plans:
        built += IndexBuildAttempt(client, opts, plan, preparer, stats_reader=stats_reader, progress=progress).run()
    return IndexResult(tuple(built), "" if built else "the table has the planned indexes")


@dataclass(frozen=True, slots=True)
class RunningBuild:
    """A plan being executed: the partitions to write, and the detector of missed updates."""

    prepared: list[PreparedIndex]
    missed_updates: MissedUpdateDetector
    instant: Instant
    progress: Progress | None

    def verify(self, stats: Sequence[Mapping[str, Any]], active: ActiveTimeline) -> None:
        """Check that the table still supports the built indexes.

        Raises:
            UnsupportedTableError: It does not.
        """
        for one in self.prepared:
            if one.verify is not None:
                one.verify(stats, active)


class IndexBuildAttempt:
    """Attempt at executing a plan."""

    def __init__(
        self,
        client: TableMetaClient,
        opts: Options,
        plan: IndexPlan,
        preparer: Callable[[], Preparer],
        *,
        stats_reader: FileStatsReader = LOCAL,
        progress: Progress | None = None,
    ) -> None:
        assert plan.instant is not None
        self._progress = progress
        self._client, self._plan, self._preparer, self._stats_reader = client, plan, preparer, stats_reader
        self._instant = plan.instant
        self._token = f"{secrets.randbits(31):x}"
        self._claim = AttemptClaim(client.storage, plan.instant, self._token)
        self._heartbeat: Heartbeat | None = None
        self._requests = [request_of(client.storage, client.config, name) for name in plan.partitions]
        for request in self._requests:
            opts = opts.merged(build_options(request, opts))
        self._opts = opts

    def run(self) -> Sequence[str]:
        """Build the partitions of the plan. Return those that were built."""
        try:
            return self._build()
        except BaseException:
            with contextlib.suppress(Exception):  # The first error is the one to report.
                self.roll_back()
            raise
        finally:
            if self._heartbeat is not None:
                self._heartbeat.stop()

    def _build(self) -> Sequence[str]:
        with lock_table(self._client, self._opts, self._stats_reader) as table:
            build = self.begin(table)
        for left in reversed(range(_TRIES)):
            if build is None:
                return ()
            stats = write_index_files(build)
            active = self._client.active_timeline()
            if stats is not None:  # Checked before other processes have to wait.
                build.missed_updates.missed(
                    active, load_metadata_timeline(self._client.storage, self._client.config.version)
                )
                build.verify(stats, active)
            with lock_table(self._client, self._opts, self._stats_reader) as table:
                self._refuse_if_superseded(table)
                self._check_not_dropped(table, build)
                metadata_timeline = load_metadata_timeline(table.storage, table.config.version)
                if (
                    stats is not None
                    and files_exist(table.storage, stats)
                    and not build.missed_updates.missed(table.active, metadata_timeline)
                ):
                    self._check(table, build)
                    if table.active.timeline.completed().writes() != active.timeline.completed().writes():
                        build.verify(stats, table.active)
                    return self._publish(table, build, stats)
                build = self.begin(table, renew=True)
                if build is not None and not left:  # Nobody writes now, so nothing can be missed.
                    table = table.with_config(TableConfig.load(table.storage))
                    return self._publish(table, build, [stat for one in build.prepared for stat in one.write()])
        return ()

    def begin(self, table: LockedTable, *, renew: bool = False) -> RunningBuild | None:
        """Announce the partitions, with ``renew`` under a new instant. Return None if there is nothing left to do."""
        storage, active, is_running = table.storage, table.active, self._heartbeat is not None
        indexing = active.timeline.find(self._instant, Action.INDEXING)
        if indexing is None or indexing.is_completed:
            return None
        several = failed_writes_policy(self._opts) is not FailedWritesPolicy.EAGER
        if several and indexing.state is State.INFLIGHT and not is_running:
            check_no_heartbeat(storage, indexing, self._opts)
        config = rollback_index_build(storage, table.config, self._instant, self._plan.partitions)
        config = build_enabled_partitions(table.with_config(config), only_if_none=True)
        left = [r for r in self._requests if r.partition not in config.metadata_partitions]
        if not left or is_in_use(storage, config, self._instant, self._plan.partitions):
            active.delete_pending(self._instant, Action.INDEXING)
            return None
        table = table.with_config(config)
        for request in left:
            check_supported(request, table.snapshot, columns_of(table))
        preparer = self._preparer() if any(request.needs_spark for request in left) else None
        metadata_timeline = load_metadata_timeline(storage, config.version)
        renew = renew or was_written_since(metadata_timeline, self._instant, self._plan.partitions)
        instant = table.new_time() if renew else self._instant
        prepared = prepare_indexes(table, left, instant, preparer)
        if instant != self._instant:
            indexing = self._renew(table, instant)
        if indexing.state is State.REQUESTED:
            indexing = active.to_inflight(indexing)
        self._claim.take()
        if several and self._heartbeat is None:
            self._heartbeat = Heartbeat(storage, self._instant, HeartbeatPolicy.from_options(self._opts))
            self._heartbeat.start()
        definitions = {one.partition: one.definition for one in prepared if one.definition is not None}
        begin_index_build(storage, config, self._instant, {p.partition: p.groups for p in prepared}, definitions)
        missed = MissedUpdateDetector(active.timeline, [one.partition for one in prepared])
        return RunningBuild(prepared, missed, indexing, self._progress)

    def _renew(self, table: LockedTable, instant: str) -> Instant:
        """Replace the plan in the timeline by one with a new instant. Return it."""
        content = replace(self._plan, instant=instant).encode(table.config.version)
        indexing = table.active.create_requested(Action.INDEXING, instant, content)
        table.active.delete_pending(self._instant, Action.INDEXING)
        self._claim.release()
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None
        self._instant, self._claim = instant, AttemptClaim(self._client.storage, instant, self._token)
        return indexing

    def _publish(self, table: LockedTable, build: RunningBuild, stats: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        storage, config, active = table.storage, table.config, table.active
        partitions = [one.partition for one in build.prepared]
        table.reserved.lock.ensure_held()  # A write that another process has committed since may be missing.
        metadata_timeline = table.load_metadata_timeline()
        delta_commit = begin_delta_commit(metadata_timeline, self._instant)
        commit, version = MetadataCommit(stats, BULK_INSERT_PREPPED), config.version
        complete_delta_commit(metadata_timeline, delta_commit, commit, version, table.completed_at(version))
        upto = last_contiguous_write(active) or self._plan.upto
        content = encode_completed_build(partitions, max(upto, self._plan.upto), version)
        table.reserved.lock.ensure_held()
        active.complete(build.instant, content, table.completed_at(version))
        declare_partitions(storage, config, partitions)
        self._claim.release()
        return partitions

    def _check(self, table: LockedTable, build: RunningBuild) -> None:
        """Check that the table still supports the indexes.

        Raises:
            ConfigError, UnsupportedTableError: It does not, because of concurrent changes.
        """
        built = {one.partition for one in build.prepared}
        for request in self._requests:
            if request.partition in built:
                check_supported(request, table.snapshot, columns_of(table))

    def _check_not_dropped(self, table: LockedTable, build: RunningBuild) -> None:
        partitions = {one.partition for one in build.prepared}
        removed = sorted(partitions - set(table.config.metadata_partitions_inflight))
        if removed:
            raise ConflictError(
                f"{', '.join(removed)} was removed from the metadata table during its build, by a write that could "
                "not maintain it, or that rebuilt the metadata table; run the plan again"
            )

    def roll_back(self) -> None:
        """Revert to the state before the attempt."""
        with lock_table(self._client, self._opts, self._stats_reader) as table:
            indexing = table.active.timeline.find(self._instant, Action.INDEXING)
            if indexing is None or indexing.is_completed or not self._claim.is_current():
                return
            rollback_index_build(table.storage, table.config, self._instant, self._plan.partitions)
            inflight = table.active.in_state(indexing, State.INFLIGHT)
            if inflight is not None:
                table.active.delete(inflight)
            self._claim.release()

    def _refuse_if_superseded(self, table: LockedTable) -> None:
        indexing = table.active.timeline.find(self._instant, Action.INDEXING)
        if indexing is None or indexing.state is not State.INFLIGHT or not self._claim.is_current():
            raise ConflictError(
                f"the indexing {self._instant} no longer belongs to this attempt: another process considered it "
                "dead, or dropped the index. With several processes set "
                "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL"
            )


def write_index_files(build: RunningBuild) -> list[Mapping[str, Any]] | None:
    """Write the base files. Return their write stats; None if files of the table were cleaned in the meantime."""
    try:
        stats: list[Mapping[str, Any]] = []
        for number, one in enumerate(build.prepared):
            report_progress(build.progress, PROGRESS, number, len(build.prepared))
            stats += one.write()
        report_progress(build.progress, PROGRESS, len(build.prepared), len(build.prepared))
        return stats
    except NotFoundError as missing:
        _log.info("the index build starts again: %s", missing)
        return None
