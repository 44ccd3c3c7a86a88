"""Index services that build while writers go on; a part of `pyhudi.table_services.TableServices`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyhudi.metadata.writer.file_stats_reader import LOCAL, FileStatsReader
from pyhudi.services.indexing.async_indexer import run_index
from pyhudi.services.indexing.index_builder import IndexResult
from pyhudi.services.indexing.index_preparation import Preparer
from pyhudi.services.indexing.index_requests import IndexRequest
from pyhudi.services.indexing.index_schedule import schedule_index
from pyhudi.timeline.index_plan import IndexPlan, pending_index_plans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyhudi.config import Options
    from pyhudi.table.meta_client import TableMetaClient

Given = Mapping[str, object] | None


class IndexPlanning(ABC):
    """Plans of indexes: made, carried out, and listed."""

    @abstractmethod
    def _open(self, options: Given) -> tuple[TableMetaClient, Options]:
        """Open the table as it is now, with the options on top of its own."""

    def schedule_index(
        self,
        name: str | None = None,
        columns: Sequence[str] | str = (),
        *,
        using: str | None = None,
        index_options: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
        options: Given = None,
        dry_run: bool = False,
    ) -> IndexPlan:
        """Plan an index and leave the plan on the timeline, to be built by `run_index` while writers go on.

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
        named = (columns,) if isinstance(columns, str) else tuple(columns)
        request = IndexRequest.of(name, named, using, index_options or {})
        client, opts = self._open(options)
        return schedule_index(
            client, opts, request, if_not_exists=if_not_exists, dry_run=dry_run, stats_reader=file_stats_reader(None)
        )

    def run_index(
        self,
        instant: str | None = None,
        options: Given = None,
        *,
        dry_run: bool = False,
        spark: SparkSession | None = None,
    ) -> IndexResult:
        """Build the planned indexes, oldest first, or only that of ``instant``, while writers go on.

        The table's lock is held for moments only. A run that failed before, here or elsewhere, is rolled back and
        started again; one that fails leaves the plan. `drop_index` removes the plan and what was built of it.

        Args:
            instant: Requested time of the plan to run; None for all.
            options: Apache Hudi's options, on top of the table's.
            dry_run: Change nothing, and return what would be built.
            spark: Session that runs the build; None for the active one.

        Returns:
            The partitions of the metadata table that were built.

        Raises:
            ConflictError: Another process took this run for dead, or a write could not keep the index up to date.
            BusyError: Another process is building the index.
            UnsupportedTableError: The table cannot have the index, or this kind of index is not built here.
            SetupError: The index needs Spark, and there is no session.
        """
        client, opts = self._open(options)
        return run_index(
            client,
            opts,
            lambda: _preparer(spark),
            instant=instant,
            dry_run=dry_run,
            stats_reader=file_stats_reader(spark),
        )

    def pending_indexes(self) -> list[IndexPlan]:
        """Return the index plans on the timeline that are not completed, oldest first."""
        client, _ = self._open(None)
        return pending_index_plans(client.active_timeline())


def session_if_any() -> SparkSession | None:
    """Return the active Spark session, or None."""
    try:
        from pyspark.sql import SparkSession as Session
    except ImportError:
        return None
    return Session.getActiveSession()


def file_stats_reader(spark: SparkSession | None) -> FileStatsReader:
    """Return the reader of a table's files for index builds: ``spark``, else the active session, else threads."""
    session = spark or session_if_any()
    if session is None:
        return LOCAL
    from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader

    return SparkFileStatsReader(session)


def _preparer(spark: SparkSession | None) -> Preparer:
    """Return the builder of indexes with as many records as the table has, for builds beside writers."""
    from pyhudi.spark.session import active_session

    session = spark or active_session()
    from pyhudi.spark.indexes.index_engines import spark_preparer

    return spark_preparer(session)
