"""Indexes of ``HudiTable.services``: built immediately, or planned and built concurrently with writers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyhudi.api.services.service_base import ServiceBase, file_stats_reader
from pyhudi.metadata.indexes.pending_index_plans import pending_index_plans
from pyhudi.metrics.progress import Progress
from pyhudi.services.indexing.async_indexer import planned_result, plans_to_run, run_index_plans
from pyhudi.services.indexing.index_builder import Builder, IndexEngine, IndexResult, build_index, drop_index
from pyhudi.services.indexing.index_planner import schedule_index
from pyhudi.services.indexing.index_preparation import Preparer
from pyhudi.services.indexing.index_requests import IndexRequest
from pyhudi.spark.session import active_session
from pyhudi.timeline.plans.index_plan import IndexPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class IndexServices(ServiceBase):
    """Indexes of one table: building, dropping, planning, execution of plans, and listing."""

    def build_index(
        self,
        name: str | None = None,
        columns: Sequence[str] | str = (),
        *,
        using: str | None = None,
        index_options: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
        options: Mapping[str, object] | None = None,
        dry_run: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> IndexResult:
        """Build an index of the metadata table, as ``CREATE INDEX name ON t USING using (columns)``; later writes
        maintain it.

        ``column_stats``, ``partition_stats``, ``bloom_filters`` and ``record_index`` (also in capitals, as in Apache
        Hudi's indexer) are indexes of which a table has one each, and take no other arguments. Any other name is that
        of an index of one column, on a table of version 8 or later:

        - a secondary index, of texts, whole numbers, dates or timestamps, if the table has a global record index;
        - with ``using="column_stats"`` or ``"bloom_filters"``, an expression index, of the values of the function
          ``index_options["expr"]``, which may need further options: ``{"expr": "from_unixtime", "format": "yyyy"}``. An
          expression that depends on a time zone is computed in that of the Spark session, as in later writes.

        The table's lock is held during the build. Use `schedule_index` and `run_index` to build while writers continue.

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
            progress: Called with the name of the work, how many indexes are built, and how many there are to build.

        Returns:
            The partitions of the metadata table that were built; none, with a ``reason``, if there was nothing to do.

        Raises:
            ConfigError: The index exists, the column or function is unknown, or the record index is missing.
            UnsupportedTableError: The table cannot have the index, or this kind of index is not built here.
            SetupError: The index needs Spark, and there is no session.
        """
        request = replace(_request(name, columns, using, index_options), if_not_exists=if_not_exists)
        client, opts = self._open(options)
        builder = _builder(spark) if request.needs_spark and not dry_run else None
        engine = IndexEngine(builder, file_stats_reader(spark))
        return build_index(client, opts, request, engine, dry_run=dry_run, progress=progress)

    def drop_index(
        self, name: str, *, if_exists: bool = False, options: Mapping[str, object] | None = None, dry_run: bool = False
    ) -> IndexResult:
        """Delete an index, as ``DROP INDEX name ON t``.

        Indexes that options of writes request (`hoodie.metadata.index.column.stats.enable` is on by default) are built
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

    def schedule_index(
        self,
        name: str | None = None,
        columns: Sequence[str] | str = (),
        *,
        using: str | None = None,
        index_options: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
        options: Mapping[str, object] | None = None,
        dry_run: bool = False,
    ) -> IndexPlan:
        """Plan an index and leave the plan on the timeline, to be built by `run_index` while writers continue.

        Args:
            name: Name of the index, as of `build_index`.
            columns: Column of the index.
            using: Kind of an expression index; None for a secondary index.
            index_options: Function of an expression index and its options.
            if_not_exists: Do nothing if the index exists or is planned.
            options: Apache Hudi's options, on top of the table's.
            dry_run: Change nothing, and return the plan that would be made.

        Returns:
            The plan. It is empty, and not on the timeline, when there is nothing to do; its ``reason`` says why.

        Raises:
            ConfigError: The index exists or is planned, the column is unknown, or the record index is missing.
            UnsupportedTableError: The table cannot have the index, or this kind of index is not built here.
        """
        request = replace(_request(name, columns, using, index_options), if_not_exists=if_not_exists)
        client, opts = self._open(options)
        return schedule_index(client, opts, request, dry_run=dry_run, stats_reader=file_stats_reader(None))

    def run_index(
        self,
        instant: str | None = None,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> IndexResult:
        """Build the planned indexes, oldest first, or only that of ``instant``, while writers continue.

        The table's lock is held for moments only. A run that failed before, here or elsewhere, is rolled back and
        started again; one that fails leaves the plan. `drop_index` removes the plan and the files of its index.

        Args:
            instant: Requested time of the plan to run; None for all.
            options: Apache Hudi's options, on top of the table's.
            dry_run: Change nothing, and return what would be built.
            spark: Session that runs the build; None for the active one.
            progress: Called with the name of the work, how many indexes are built, and how many there are to build.

        Returns:
            The partitions of the metadata table that were built.

        Raises:
            ConflictError: Another process took this run for dead, or a write could not keep the index up to date.
            BusyError: Another process is building the index.
            UnsupportedTableError: The table cannot have the index, or this kind of index is not built here.
            SetupError: The index needs Spark, and there is no session.
        """
        client, opts = self._open(options)
        plans = plans_to_run(client, opts, instant)
        if dry_run:
            return planned_result(plans)
        return run_index_plans(
            client,
            opts,
            plans,
            preparer=lambda: _preparer(spark),
            stats_reader=file_stats_reader(spark),
            progress=progress,
        )

    def pending_indexes(self) -> list[IndexPlan]:
        """Return the index plans on the timeline that are not completed, oldest first."""
        client, _ = self._open(None)
        return pending_index_plans(client.active_timeline())


def _request(
    name: str | None, columns: Sequence[str] | str, using: str | None, index_options: Mapping[str, str] | None
) -> IndexRequest:
    named = (columns,) if isinstance(columns, str) else tuple(columns)
    return IndexRequest.from_arguments(name, named, using, index_options or {})


def _builder(spark: SparkSession | None) -> Builder:
    """Return the builder of indexes with as many records as the table."""
    session = spark or active_session()
    from pyhudi.spark.indexes.index_engines import spark_index_builder

    return spark_index_builder(session)


def _preparer(spark: SparkSession | None) -> Preparer:
    """Return the builder of indexes with as many records as the table, for builds concurrent with writers."""
    session = spark or active_session()
    from pyhudi.spark.indexes.index_engines import spark_index_preparer

    return spark_index_preparer(session)
