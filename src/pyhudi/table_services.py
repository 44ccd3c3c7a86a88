"""Table services of ``HudiTable.services``: compaction, log compaction and indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, overload

from pyhudi.config import Options
from pyhudi.index_planning import IndexPlanning, file_stats_reader, session_if_any
from pyhudi.metrics.progress import Progress
from pyhudi.metrics.publish import check_metrics_options
from pyhudi.services.archival.archival_plan import ArchivalPlan
from pyhudi.services.archival.table_archival import archive_table, plan_archival
from pyhudi.services.cleaning.cleaner import Cleaner
from pyhudi.services.compaction.compaction_plan import CompactionPlan
from pyhudi.services.compaction.compaction_runner import CompactionResult, Runner, run_in_threads, run_pending
from pyhudi.services.compaction.compaction_schedule import make_plan, pending_plans, schedule
from pyhudi.services.indexing.index_builder import Builder, IndexResult, build_index, drop_index
from pyhudi.services.indexing.index_requests import IndexRequest
from pyhudi.services.restore import RestorePlan, Restorer
from pyhudi.services.rollback import roll_back
from pyhudi.services.savepoint import create_savepoint, delete_savepoint, list_savepoints
from pyhudi.services.service_result import ServiceResult
from pyhudi.table.clean_plan import CleanPlan
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table_clustering import ClusteringServices
from pyhudi.table_versions import VersionServices
from pyhudi.timeline.instant import Action

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Given = Mapping[str, object] | None


class TableServices(ClusteringServices, VersionServices, IndexPlanning):
    """Services of one table.

    Each service takes Apache Hudi's options (``hoodie.compact.…``, ``hoodie.compaction.…``,
    ``hoodie.log.compaction.…``, ``hoodie.clustering.…``, and those of files and locks) on top of the table's. The work
    runs on ``spark``, else on the active Spark session, else on threads of this process. Services may run beside
    writers, also in another process.
    """

    def __init__(self, path: str, options: Options) -> None:
        self._path = path
        self._options = options

    # --- compaction ------------------------------------------------------------------------------------------------

    @overload
    def compact(
        self,
        options: Given = None,
        *,
        dry_run: Literal[False] = False,
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> CompactionResult: ...

    @overload
    def compact(
        self,
        options: Given = None,
        *,
        dry_run: Literal[True],
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> CompactionPlan: ...

    def compact(
        self,
        options: Given = None,
        *,
        dry_run: bool = False,
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> CompactionResult | CompactionPlan:
        """Merge log files into new base files: run the pending plans, then make a new plan and run it.

        Args:
            options: Apache Hudi's options, on top of the table's.
            dry_run: Change nothing, and return the plan that would be made.
            only_if_due: Make a new plan only if the trigger (`hoodie.compact.inline.trigger.strategy`) asks for one. By
                default the call itself is the reason to compact.
            spark: Session that runs the tasks; None for the active one, or threads if there is none.
            progress: Called with "compact file slices", and how many of how many are done; on Spark, when none and when
                all are.

        Returns:
            The result, or the plan with ``dry_run``.

        Raises:
            UnsupportedTableError: The table is not merge-on-read, or its merger is not registered
                (`pyhudi.register_merger`). Nothing is planned then. Planning alone, or a dry run, needs no merger.
            TransactionError: Another process runs a plan, or a restore is pending.
        """
        return self._compact(options, dry_run, only_if_due, spark, progress, is_log=False)

    def schedule_compaction(self, options: Given = None, *, only_if_due: bool = False) -> CompactionPlan:
        """Make a compaction plan and leave it on the timeline, to be run by any process while writers go on.

        Args:
            options: Apache Hudi's options, on top of the table's.
            only_if_due: Make a plan only if the trigger asks for one.

        Returns:
            The plan. It is empty, and not on the timeline, when there is nothing to do; its ``reason`` says why.
        """
        client, opts = self._open(options)
        return schedule(client, opts, only_if_due=only_if_due)

    def run_compaction(
        self, instant: str | None = None, options: Given = None, *, spark: SparkSession | None = None
    ) -> CompactionResult:
        """Run the pending compaction plans, oldest first, or only that of ``instant``.

        A run that failed before, here or elsewhere, is rolled back and started again. Compactions of Apache Hudi before
        1.2 do not tell whether they are still at work. One that has begun is left alone, unless its ``instant`` is
        given here, or it has been silent for `pyhudi.compaction.abandoned.minutes`.

        Args:
            instant: Requested time of the plan to run; None for all.
            options: Apache Hudi's options, on top of the table's.
            spark: Session that runs the tasks; None for the active one, or threads if there is none.

        Returns:
            The result.

        Raises:
            BusyError: Another process runs a plan, or another program may be running one.
        """
        client, opts = self._open(options)
        return run_pending(client, opts, _runner(spark), instant=instant, asked_for=instant is not None)

    def pending_compactions(self) -> list[CompactionPlan]:
        """Return the compaction plans on the timeline that are not completed, oldest first."""
        client, _ = self._open(None)
        return pending_plans(client.active_timeline(), Action.COMPACTION)

    # --- log compaction --------------------------------------------------------------------------------------------

    @overload
    def log_compact(
        self,
        options: Given = None,
        *,
        dry_run: Literal[False] = False,
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> CompactionResult: ...

    @overload
    def log_compact(
        self,
        options: Given = None,
        *,
        dry_run: Literal[True],
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> CompactionPlan: ...

    def log_compact(
        self,
        options: Given = None,
        *,
        dry_run: bool = False,
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> CompactionResult | CompactionPlan:
        """Merge the log files of each file slice into one, which costs less than new base files and makes reads cheaper
        until then.

        File slices with at least `hoodie.log.compaction.blocks.threshold` log files or blocks are taken. Arguments,
        result and errors as of `compact`.
        """
        return self._compact(options, dry_run, only_if_due, spark, progress, is_log=True)

    def schedule_log_compaction(self, options: Given = None, *, only_if_due: bool = False) -> CompactionPlan:
        """Make a log compaction plan and leave it on the timeline. Arguments and result as of `schedule_compaction`."""
        client, opts = self._open(options)
        return schedule(client, opts, is_log=True, only_if_due=only_if_due)

    def run_log_compaction(
        self, instant: str | None = None, options: Given = None, *, spark: SparkSession | None = None
    ) -> CompactionResult:
        """Run the pending log compaction plans, oldest first, or only that of ``instant``.

        A plan that was begun and failed, or whose logs have been compacted since, is dropped. Arguments, result and
        errors as of `run_compaction`.
        """
        client, opts = self._open(options)
        return run_pending(client, opts, _runner(spark), is_log=True, instant=instant, asked_for=instant is not None)

    def pending_log_compactions(self) -> list[CompactionPlan]:
        """Return the log compaction plans on the timeline that are not completed, oldest first."""
        client, _ = self._open(None)
        return pending_plans(client.active_timeline(), Action.LOG_COMPACTION)

    # --- cleaning --------------------------------------------------------------------------------------------------

    @overload
    def clean(
        self,
        options: Given = None,
        *,
        dry_run: Literal[False] = False,
        only_if_due: bool = False,
        progress: Progress | None = None,
    ) -> ServiceResult: ...

    @overload
    def clean(
        self,
        options: Given = None,
        *,
        dry_run: Literal[True],
        only_if_due: bool = False,
        progress: Progress | None = None,
    ) -> CleanPlan: ...

    def clean(
        self,
        options: Given = None,
        *,
        dry_run: bool = False,
        only_if_due: bool = False,
        progress: Progress | None = None,
    ) -> ServiceResult | CleanPlan:
        """Delete the files that no query needs by the cleaning policy (`hoodie.clean.policy`).

        Cleans that are pending, of whichever process, are run first. Files of savepoints, of pending compactions and
        clusterings, and of the latest snapshot stay.

        Args:
            options: options of cleaning on top of the table's.
            dry_run: plan only; nothing is written, and the plan is returned.
            only_if_due: do nothing before the trigger (`hoodie.clean.trigger.max.commits`) says so.
            progress: Called with "delete files", and how many of how many are deleted.

        Raises:
            TransactionError: a restore is pending, or a pending plan names files that the table still needs.
            LockError: the table's lock could not be taken.
        """
        client, opts = self._open(options)
        cleaner = Cleaner(client, opts, file_stats_reader(None), progress)
        return cleaner.plan(only_if_due=only_if_due) if dry_run else cleaner.run(only_if_due=only_if_due)

    # --- archival --------------------------------------------------------------------------------------------------

    @overload
    def archive(
        self,
        options: Given = None,
        *,
        dry_run: Literal[False] = False,
        only_if_due: bool = False,
        progress: Progress | None = None,
    ) -> ServiceResult: ...

    @overload
    def archive(
        self,
        options: Given = None,
        *,
        dry_run: Literal[True],
        only_if_due: bool = False,
        progress: Progress | None = None,
    ) -> ArchivalPlan: ...

    def archive(
        self,
        options: Given = None,
        *,
        dry_run: bool = False,
        only_if_due: bool = False,
        progress: Progress | None = None,
    ) -> ServiceResult | ArchivalPlan:
        """Move old instants from the active timeline into the history, from which queries and `HudiTable.history` read
        them.

        `hoodie.keep.min.commits` commits stay active, and more if cleaning, savepoints, pending instants or the
        metadata table need them.

        Args:
            options: options of archival on top of the table's.
            dry_run: plan only; nothing is written, and the plan is returned.
            only_if_due: do nothing unless there are more than `hoodie.keep.max.commits` commits.
            progress: Called with "archive instants" before and after, and how many there are.

        Raises:
            TransactionError: a restore is pending.
            CorruptInstantError: the timeline or its history cannot be read.
            LockError: the table's lock could not be taken.
        """
        client, opts = self._open(options)
        if dry_run:
            return plan_archival(client, opts, only_if_due=only_if_due)
        return archive_table(client, opts, only_if_due=only_if_due, progress=progress)

    # --- rollback, savepoint, restore ------------------------------------------------------------------------------

    def rollback(self, instant: str | None = None, options: Given = None) -> ServiceResult:
        """Undo a write: a pending one, or the last completed one (if no instant is named).

        Raises:
            InstantNotFoundError: there is no such write on the active timeline.
            TransactionError: later writes are built on it, a savepoint keeps it, or cleaning has deleted what came
                before it.
            BusyError: somebody is at work on it.
        """
        client, opts = self._open(options)
        return roll_back(client, opts, file_stats_reader(None), instant)

    def savepoint(
        self, instant: str | None = None, *, user: str = "", comment: str = "", options: Given = None
    ) -> ServiceResult:
        """Keep the files of the snapshot that a completed write has left (the last one, if no instant is named), so
        that the table can be restored to it.

        Raises:
            InstantNotFoundError: there is no such completed write on the active timeline.
            TransactionError: cleaning has deleted files of that snapshot.
        """
        client, opts = self._open(options)
        return create_savepoint(client, opts, instant, user=user, comment=comment)

    def delete_savepoint(self, instant: str, options: Given = None) -> ServiceResult:
        """Let cleaning have the files of a savepoint.

        Raises:
            InstantNotFoundError: there is no savepoint at that instant.
        """
        client, opts = self._open(options)
        return delete_savepoint(client, opts, instant)

    def savepoints(self) -> pa.Table:
        """The savepoints (`pyhudi.services.savepoint.SAVEPOINT_SCHEMA`), oldest first."""
        client, _ = self._open(None)
        return list_savepoints(client)

    @overload
    def restore(
        self,
        to: str | None = None,
        options: Given = None,
        *,
        dry_run: Literal[False] = False,
        progress: Progress | None = None,
    ) -> ServiceResult: ...

    @overload
    def restore(
        self,
        to: str,
        options: Given = None,
        *,
        dry_run: Literal[True],
        progress: Progress | None = None,
    ) -> RestorePlan: ...

    def restore(
        self,
        to: str | None = None,
        options: Given = None,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ServiceResult | RestorePlan:
        """Take the table back to the snapshot that a completed write has left, with or without a savepoint; all later
        writes are undone. Writers must be stopped.

        A restore that died is gone on with by the same call, or without an instant.

        Args:
            to: the instant of the write.
            options: options of locks and of the metadata table.
            dry_run: plan only; nothing is written, and the plan is returned.
            progress: Called with "undo writes", and how many of how many are undone.

        Raises:
            InstantNotFoundError: there is no such completed write on the active timeline.
            TransactionError: another restore is pending, cleaning has deleted files of that snapshot, or a savepoint
                keeps a later write.
            BusyError: somebody is writing.
        """
        client, opts = self._open(options)
        restorer = Restorer(client, opts, file_stats_reader(None), progress)
        return restorer.plan(to or "") if dry_run else restorer.run(to)

    # --- indexes ---------------------------------------------------------------------------------------------------

    def build_index(
        self,
        name: str | None = None,
        columns: Sequence[str] | str = (),
        *,
        using: str | None = None,
        index_options: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
        options: Given = None,
        dry_run: bool = False,
        spark: SparkSession | None = None,
    ) -> IndexResult:
        """Build an index of the metadata table, as ``CREATE INDEX name ON t USING using (columns)``; later writes
        maintain it.

        ``column_stats``, ``partition_stats``, ``bloom_filters`` and ``record_index`` are indexes of which a table has
        one each, and take no other arguments. Any other name is that of an index of one column, on a table of version 8
        or later:

        - a secondary index, of texts, whole numbers, dates or timestamps, if the table has a global record index;
        - with ``using="column_stats"`` or ``"bloom_filters"``, an expression index, of the values of the function
          ``index_options["expr"]``, which may need further options: ``{"expr": "from_unixtime", "format": "yyyy"}``. An
          expression that depends on a time zone is computed in that of the Spark session, as in later writes.

        The table's lock is held during the build. Use `schedule_index` and `run_index` to build while writers go on.

        Args:
            name: Name of the index.
            columns: Column of the index.
            using: Kind of an expression index; None for a secondary index.
            index_options: Function of an expression index and its options.
            if_not_exists: Do nothing if the index exists.
            options: Apache Hudi's options, on top of the table's. With `hoodie.metadata.record.level.index.enable` a
                record index is partitioned.
            dry_run: Change nothing, and return what would be built.
            spark: Session that runs the build; None for the active one.

        Returns:
            The partitions of the metadata table that were built; none, with a ``reason``, if there was nothing to do.

        Raises:
            ConfigError: The index exists, the column or function is unknown, or the record index is missing.
            UnsupportedTableError: The table cannot have the index, or this kind of index is not built here.
            SetupError: The index needs Spark, and there is no session.
        """
        named = (columns,) if isinstance(columns, str) else tuple(columns)
        request = IndexRequest.of(name, named, using, index_options or {})
        client, opts = self._open(options)
        builder = _builder(spark) if request.needs_spark and not dry_run else None
        return build_index(
            client,
            opts,
            request,
            builder,
            if_not_exists=if_not_exists,
            dry_run=dry_run,
            stats_reader=file_stats_reader(spark),
        )

    def drop_index(
        self, name: str, *, if_exists: bool = False, options: Given = None, dry_run: bool = False
    ) -> IndexResult:
        """Take an index out of use and delete it, as ``DROP INDEX name ON t``.

        Indexes that options of writes ask for (`hoodie.metadata.index.column.stats.enable` is on by default) are built
        again by the next write.

        Args:
            name: Name of the index.
            if_exists: Do nothing if there is no such index.
            options: Apache Hudi's options, on top of the table's.
            dry_run: Change nothing, and return what would be dropped.

        Returns:
            The partitions of the metadata table that were dropped.

        Raises:
            ConfigError: There is no such index, or a secondary index needs it.
        """
        client, opts = self._open(options)
        return drop_index(client, opts, name, if_exists=if_exists, dry_run=dry_run)

    def _compact(
        self,
        options: Given,
        dry_run: bool,
        only_if_due: bool,
        spark: SparkSession | None,
        progress: Progress | None,
        *,
        is_log: bool,
    ) -> CompactionResult | CompactionPlan:
        client, opts = self._open(options)
        if dry_run:
            return make_plan(client, opts, is_log=is_log, only_if_due=only_if_due)
        runner = _runner(spark, progress)
        done = run_pending(client, opts, runner, is_log=is_log)
        plan = schedule(client, opts, is_log=is_log, only_if_due=only_if_due, to_run=True)
        if plan.instant is None:
            return done if done else replace(done, reason=plan.reason)
        return done.and_(run_pending(client, opts, runner, is_log=is_log, instant=plan.instant))

    def _open(self, options: Given) -> tuple[TableMetaClient, Options]:
        opts = Options.parse({**self._options, **(options or {})})
        check_metrics_options(opts)
        client = TableMetaClient.open(self._path, opts)
        return client, client.config.validate_against(opts)

    def __repr__(self) -> str:
        return f"TableServices({self._path!r})"


def _runner(spark: SparkSession | None, progress: Progress | None = None) -> Runner:
    """Return the runner of compactions: Spark, if there is a session, else threads."""
    session = spark or session_if_any()
    if session is None:
        return partial(run_in_threads, progress=progress)
    from pyhudi.spark.services.spark_compaction import spark_runner

    return spark_runner(session, progress)


def _builder(spark: SparkSession | None) -> Builder:
    """Return the builder of indexes with as many records as the table has."""
    from pyhudi.spark.session import active_session

    session = spark or active_session()
    from pyhudi.spark.indexes.index_engines import spark_builder

    return spark_builder(session)
