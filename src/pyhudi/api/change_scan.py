"""Change data queries on a table: lazy, and returned as Spark or Arrow data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.read.cdc.cdc_plan import CHANGES_SCHEMA, CdcPlan, plan_cdc
from pyhudi.read.cdc.cdc_reader import CdcReader
from pyhudi.read.query.query import Query
from pyhudi.read.query.query_instants import QueryTime
from pyhudi.table.table_snapshot import TableSnapshot, with_snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class ChangeScan:
    """Query of the changes of a range of commits, lazy and immutable. Every call plans it on the current table.

    Rows have the columns ``op`` (``i``, ``u``, ``d``), ``ts_ms`` (instant of the commit), ``before`` and ``after`` (the
    record as JSON, null if there is none). Created by :meth:`pyhudi.HudiTable.changes`.
    """

    now: Callable[[], TableSnapshot]
    settings: Options
    begin: QueryTime
    end: QueryTime | None = None

    def __repr__(self) -> str:
        end = "" if self.end is None else f" until {self.end}"
        return f"ChangeScan(after {self.begin}{end}; not read yet: to_arrow(), to_spark() read it)"

    def plan(self) -> CdcPlan:
        """Plan the query without reading data.

        Returns:
            The plan: one task per file group that a commit changed.

        Raises:
            QueryError: The table logs no changes, or files of the range no longer exist.
        """
        return with_snapshot(self.now, self._plan)[1]

    def _plan(self, now: TableSnapshot) -> CdcPlan:
        query = replace(
            Query.from_arguments(now.config, begin=self.begin, end=self.end, opts=self.settings), changes=True
        )
        return plan_cdc(now, query, self.settings)

    def to_spark(self, spark: SparkSession | None = None) -> DataFrame:
        """Return the changes as a DataFrame, which Spark reads lazily.

        Args:
            spark: Session to read with; None for the active one.

        Raises:
            SetupError: ``spark`` is None, and there is no active session.
        """
        from pyhudi.spark.session import active_session

        spark = spark or active_session()
        from pyhudi.spark.read.cdc_frame import cdc_frame
        from pyhudi.spark.read.table_lineage import with_snapshot_id

        now, plan = with_snapshot(self.now, self._plan)
        return with_snapshot_id(cdc_frame(spark, plan), now)

    def to_arrow(self) -> pa.Table:
        """Return all changes as an Arrow table in memory, in the order of the commits."""
        return self.to_batches().read_all()

    def to_batches(self) -> pa.RecordBatchReader:
        """Return the changes as a stream of Arrow batches, in the order of the commits."""
        plan = self.plan()
        return pa.RecordBatchReader.from_batches(CHANGES_SCHEMA, _batches(plan))


def _batches(plan: CdcPlan) -> Iterator[pa.RecordBatch]:
    reader = CdcReader(plan.context)
    for start in range(plan.tasks.num_rows):
        for task in plan.tasks.slice(start, 1).to_pylist():
            yield from reader.read(task)
