"""``HudiTable.services``: what is done to a table beside writing to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, overload

from pyhudi.config import Options
from pyhudi.index_planning import IndexPlanning, file_facts, session_if_any
from pyhudi.services.indexes import IndexRequest
from pyhudi.services.indexing import Builder, IndexResult, build_index, drop_index
from pyhudi.services.plan import CompactionPlan
from pyhudi.services.run import CompactionResult, Runner, run_in_threads, run_pending
from pyhudi.services.schedule import make_plan, pending_plans, schedule
from pyhudi.table.metaclient import TableMetaClient
from pyhudi.timeline.instants import Action

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Given = Mapping[str, object] | None


class TableServices(IndexPlanning):
    """The services of one table.

    Each takes Apache Hudi's options (``hoodie.compact.…``, ``hoodie.compaction.…``, ``hoodie.log.compaction.…``, and
    those of files and locks) on top of the table's. Work is done by ``spark``, else by the Spark session that is
    running, else by threads of this process. Services may run beside writers, also in another process.
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
    ) -> CompactionResult: ...

    @overload
    def compact(
        self,
        options: Given = None,
        *,
        dry_run: Literal[True],
        only_if_due: bool = False,
        spark: SparkSession | None = None,
    ) -> CompactionPlan: ...

    def compact(
        self,
        options: Given = None,
        *,
        dry_run: bool = False,
        only_if_due: bool = False,
        spark: SparkSession | None = None,
    ) -> CompactionResult | CompactionPlan:
        """Merge log files into new base files: run the plans that are pending, then make a plan and run it.

        The call itself is the reason to compact; with ``only_if_due`` a new plan is made only when the trigger
        (`hoodie.compact.inline.trigger.strategy`) says so. With ``dry_run`` nothing is done, and the plan that would be
        made is returned.

        Raises:
            UnsupportedTableError: the table is no merge-on-read table, or merges by a merger that is not registered
                (`pyhudi.register_merger`); nothing is planned then. Only to plan, or a dry run, needs no merger.
            TransactionError: another process runs a plan, or a restore is pending.
        """
        return self._compact(options, dry_run, only_if_due, spark, is_log=False)

    def schedule_compaction(self, options: Given = None, *, only_if_due: bool = False) -> CompactionPlan:
        """Make a compaction plan and leave it on the timeline, to be run by whoever comes; writers go on meanwhile.

        The plan is empty, and not on the timeline, when there is nothing to do; its ``reason`` says why.
        """
        client, opts = self._open(options)
        return schedule(client, opts, only_if_due=only_if_due)

    def run_compaction(
        self, instant: str | None = None, options: Given = None, *, spark: SparkSession | None = None
    ) -> CompactionResult:
        """Run the compaction plans that are pending, oldest first, or only that of ``instant``. A run that failed
        before, here or elsewhere, is undone and begun anew."""
        client, opts = self._open(options)
        return run_pending(client, opts, _runner(spark), instant=instant)

    def pending_compactions(self) -> list[CompactionPlan]:
        """The compaction plans on the timeline that are not completed, oldest first."""
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
    ) -> CompactionResult: ...

    @overload
    def log_compact(
        self,
        options: Given = None,
        *,
        dry_run: Literal[True],
        only_if_due: bool = False,
        spark: SparkSession | None = None,
    ) -> CompactionPlan: ...

    def log_compact(
        self,
        options: Given = None,
        *,
        dry_run: bool = False,
        only_if_due: bool = False,
        spark: SparkSession | None = None,
    ) -> CompactionResult | CompactionPlan:
        """Put the log files of file slices together into one each, which costs less than writing base files anew and
        makes reading cheaper until that is done. Arguments as of `compact`.

        File slices with at least `hoodie.log.compaction.blocks.threshold` log files or blocks are taken.
        """
        return self._compact(options, dry_run, only_if_due, spark, is_log=True)

    def schedule_log_compaction(self, options: Given = None, *, only_if_due: bool = False) -> CompactionPlan:
        """Make a plan for a log compaction and leave it on the timeline; it is empty when there is nothing to do."""
        client, opts = self._open(options)
        return schedule(client, opts, is_log=True, only_if_due=only_if_due)

    def run_log_compaction(
        self, instant: str | None = None, options: Given = None, *, spark: SparkSession | None = None
    ) -> CompactionResult:
        """Run the log compaction plans that are pending, oldest first, or only that of ``instant``. A plan that was
        begun and failed, or whose logs are being compacted since, is dropped."""
        client, opts = self._open(options)
        return run_pending(client, opts, _runner(spark), is_log=True, instant=instant)

    def pending_log_compactions(self) -> list[CompactionPlan]:
        """The log compaction plans on the timeline that are not completed, oldest first."""
        client, _ = self._open(None)
        return pending_plans(client.active_timeline(), Action.LOG_COMPACTION)

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
        """Build an index of the metadata table, as ``CREATE INDEX name ON t USING using (columns)``; writes keep it up
        to date from then on.

        ``column_stats``, ``partition_stats``, ``bloom_filters`` and ``record_index`` are indexes of which a table has
        one: their name says all. Any other name is that of an index of one column, on a table of version 8 or later:

        - a secondary index, of texts, whole numbers, dates or timestamps, if the table has a global record index;
        - with ``using="column_stats"`` or ``"bloom_filters"``, an expression index, of the values of the function
          ``index_options["expr"]``, which may need further options: ``{"expr": "from_unixtime", "format": "yyyy"}``.
          What depends on a time zone is computed in that of the Spark session, as in later writes.

        A record index knows keys by partition if ``options`` say `hoodie.metadata.record.level.index.enable`. The
        table's lock is held while the index is built. Nothing is done with ``dry_run``.

        Raises:
            ConfigError: there is such an index, the column or the function is unknown, or the record index is missing.
            UnsupportedTableError: the table cannot have the index, or it is of a kind that is not built here.
            SetupError: the index needs Spark, and there is no session.
        """
        named = (columns,) if isinstance(columns, str) else tuple(columns)
        request = IndexRequest.of(name, named, using, index_options or {})
        client, opts = self._open(options)
        builder = _builder(spark) if request.needs_spark and not dry_run else None
        return build_index(
            client, opts, request, builder, if_not_exists=if_not_exists, dry_run=dry_run, facts=file_facts(spark)
        )

    def drop_index(
        self, name: str, *, if_exists: bool = False, options: Given = None, dry_run: bool = False
    ) -> IndexResult:
        """Take an index out of use and delete it, as ``DROP INDEX name ON t``. Indexes that options of writes ask for
        (`hoodie.metadata.index.column.stats.enable` is on by default) are built again by the next write.

        Raises:
            ConfigError: there is no such index, or a secondary index needs it.
        """
        client, opts = self._open(options)
        return drop_index(client, opts, name, if_exists=if_exists, dry_run=dry_run)

    def _compact(
        self, options: Given, dry_run: bool, only_if_due: bool, spark: SparkSession | None, *, is_log: bool
    ) -> CompactionResult | CompactionPlan:
        client, opts = self._open(options)
        if dry_run:
            return make_plan(client, opts, is_log=is_log, only_if_due=only_if_due)
        runner = _runner(spark)
        done = run_pending(client, opts, runner, is_log=is_log)
        plan = schedule(client, opts, is_log=is_log, only_if_due=only_if_due, to_run=True)
        if plan.instant is None:
            return done if done else replace(done, reason=plan.reason)
        return done.and_(run_pending(client, opts, runner, is_log=is_log, instant=plan.instant))

    def _open(self, options: Given) -> tuple[TableMetaClient, Options]:
        opts = Options.parse({**self._options, **(options or {})})
        client = TableMetaClient.open(self._path, opts)
        return client, client.config.validate_against(opts)

    def __repr__(self) -> str:
        return f"TableServices({self._path!r})"


def _runner(spark: SparkSession | None) -> Runner:
    """Who does the work."""
    session = spark or session_if_any()
    if session is None:
        return run_in_threads
    from pyhudi.spark.compaction import spark_runner

    return spark_runner(session)


def _builder(spark: SparkSession | None) -> Builder:
    """What builds indexes with as many records as the table has."""
    from pyhudi.spark.session import active_session

    session = spark or active_session()
    from pyhudi.spark.indexes import spark_builder

    return spark_builder(session)
