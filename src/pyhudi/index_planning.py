"""Services that build indexes while writers go on; a part of `pyhudi.table_services.TableServices`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyhudi.metadata.filefacts import LOCAL, FileFacts
from pyhudi.services.indexbuild import Preparer
from pyhudi.services.indexes import IndexRequest
from pyhudi.services.indexing import IndexResult
from pyhudi.services.indexplans import schedule_index
from pyhudi.services.indexrun import run_index
from pyhudi.timeline.indexing import IndexPlan, pending_index_plans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyhudi.config import Options
    from pyhudi.table.metaclient import TableMetaClient

Given = Mapping[str, object] | None


class IndexPlanning:
    """Plans of indexes: made, carried out, and listed."""

    @abstractmethod
    def _open(self, options: Given) -> tuple[TableMetaClient, Options]:
        """The table as it is now, and options on top of its own."""

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
        """Plan an index and leave the plan on the timeline, to be built by `run_index` while writers go on. Arguments
        as of `build_index`.

        The plan is empty, and not on the timeline, when there is nothing to do; its ``reason`` says why.

        Raises:
            ConfigError: there is such an index, or it is planned; the column is unknown; the record index is missing.
            UnsupportedTableError: the table cannot have the index, or it is of a kind that is not built here.
        """
        named = (columns,) if isinstance(columns, str) else tuple(columns)
        request = IndexRequest.of(name, named, using, index_options or {})
        client, opts = self._open(options)
        return schedule_index(
            client, opts, request, if_not_exists=if_not_exists, dry_run=dry_run, facts=file_facts(None)
        )

    def run_index(
        self,
        instant: str | None = None,
        options: Given = None,
        *,
        dry_run: bool = False,
        spark: SparkSession | None = None,
    ) -> IndexResult:
        """Build the indexes that are planned, oldest first, or only that of ``instant``, while writers go on; the
        table's lock is held for moments only. A run that failed before, here or elsewhere, is undone and begun anew;
        one that fails leaves the plan. `drop_index` takes the plan away, and what is built of it.

        Raises:
            ConflictError: another process took this attempt for dead, or a write could not keep the index up to date.
            BusyError: somebody else is building the index.
            UnsupportedTableError: the table cannot have the index, or it is of a kind that is not built here.
            SetupError: the index needs Spark, and there is no session.
        """
        client, opts = self._open(options)
        return run_index(
            client, opts, lambda: _preparer(spark), instant=instant, dry_run=dry_run, facts=file_facts(spark)
        )

    def pending_indexes(self) -> list[IndexPlan]:
        """The plans of indexes on the timeline that are not completed, oldest first."""
        client, _ = self._open(None)
        return pending_index_plans(client.active_timeline())


def session_if_any() -> SparkSession | None:
    """The Spark session that is running."""
    try:
        from pyspark.sql import SparkSession as Session
    except ImportError:
        return None
    return Session.getActiveSession()


def file_facts(spark: SparkSession | None) -> FileFacts:
    """Who reads a table's files where indexes are built: ``spark``, else the session that is running, else threads."""
    session = spark or session_if_any()
    if session is None:
        return LOCAL
    from pyhudi.spark.filefacts import SparkFacts

    return SparkFacts(session)


def _preparer(spark: SparkSession | None) -> Preparer:
    """What builds indexes with as many records as the table has, while writers go on."""
    from pyhudi.spark.session import active_session

    session = spark or active_session()
    from pyhudi.spark.indexes import spark_preparer

    return spark_preparer(session)
