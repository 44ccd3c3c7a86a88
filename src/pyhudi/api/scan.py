"""Queries on a table: lazy, immutable, and returned as Spark, Arrow, pandas, polars or DuckDB data."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.errors import SetupError
from pyhudi.read.execution.arrow_scan import scan_batches, scan_table
from pyhudi.read.filters.row_filter import Filter, RowFilter
from pyhudi.read.planning_context import FilterSession
from pyhudi.read.query.query import Query
from pyhudi.read.query.query_instants import QueryTime
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.read.scan_planner import plan_scan
from pyhudi.read.schema.table_columns import project
from pyhudi.table.table_snapshot import TableSnapshot, with_snapshot

if TYPE_CHECKING:
    import duckdb
    import pandas as pd  # type: ignore[import-untyped]
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession


class ArrowConversions(ABC):
    """Conversions of results that can be returned as an Arrow table."""

    __slots__ = ()

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table in memory."""

    def to_pandas(self, **kwargs: Any) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame.

        Args:
            **kwargs: Arguments of :meth:`pyarrow.Table.to_pandas`.

        Raises:
            SetupError: pandas is not installed.
        """
        require_package("pandas")
        return self.to_arrow().to_pandas(**kwargs)

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a polars DataFrame.

        Raises:
            SetupError: polars is not installed.
        """
        frame: pl.DataFrame = require_package("polars").from_arrow(self.to_arrow())
        return frame


@dataclass(frozen=True, slots=True)
class Scan(ArrowConversions):
    """Query on a table, lazy and immutable. Every ``to_…`` call plans the query and reads the table as it is then.

    Created by :meth:`pyhudi.HudiTable.scan`.
    """

    now: Callable[[], TableSnapshot]
    settings: Options
    row_filter: RowFilter | None = None
    columns: tuple[str, ...] | None = None
    as_of: QueryTime | None = None
    begin: QueryTime | None = None
    end: QueryTime | None = None
    read_optimized: bool = False

    def __repr__(self) -> str:
        if self.begin is not None or self.end is not None:
            rows = f"changes after {self.begin}" + (f" until {self.end}" if self.end is not None else "")
        else:
            rows = "latest snapshot" if self.as_of is None else f"snapshot as of {self.as_of}"
        parts = [rows + (", base files only" if self.read_optimized else "")]
        if self.row_filter is not None:
            parts.append(f"filter={self.row_filter}")
        if self.columns is not None:
            parts.append(f"columns={list(self.columns)}")
        return f"Scan({', '.join(parts)}; not read yet: to_arrow(), to_spark(), to_pandas() … read it)"

    def select(self, *columns: str) -> Scan:
        """Return the same scan with only these columns.

        Args:
            *columns: Names of the columns to return.
        """
        return replace(self, columns=columns)

    def filter(self, filter: Filter) -> Scan:
        """Return the same scan with this filter instead of its own.

        Args:
            filter: Filter in any form that :meth:`pyhudi.HudiTable.scan` takes.

        Raises:
            QueryError: ``filter`` has none of these forms.
        """
        return replace(self, row_filter=RowFilter.parse(filter))

    def plan(self) -> ScanPlan:
        """Plan the query without reading data.

        Returns:
            The plan: one task per file slice as an Arrow table, and the report of the pruning.

        Raises:
            QueryError: The query cannot be answered, or names unknown columns.
            UnsupportedTableError: The table uses a feature that cannot be read.
        """
        return with_snapshot(self.now, self._plan)[1]

    def _plan(self, now: TableSnapshot, session: FilterSession | None = None) -> ScanPlan:
        query = Query.from_arguments(
            now.config,
            as_of=self.as_of,
            begin=self.begin,
            end=self.end,
            read_optimized=self.read_optimized,
            opts=self.settings,
        )
        return plan_scan(now, query, filter=self.row_filter, columns=self.columns, opts=self.settings, session=session)

    def to_spark(self, spark: SparkSession | None = None) -> DataFrame:
        """Return the rows as a DataFrame, which Spark reads lazily.

        Args:
            spark: Session to read with; None for the active one.

        Returns:
            A DataFrame with the columns of the scan. It reads the files that the table had at this call.

        Raises:
            SetupError: ``spark`` is None, and there is no active session, or the session has been stopped.
        """
        from pyhudi.spark.session import active_session, check_not_stopped

        spark = spark or active_session()
        check_not_stopped(spark)
        from pyhudi.spark.read.dataframe_reader import dataframe
        from pyhudi.spark.read.pruning.filter_session import filter_session
        from pyhudi.spark.read.spark_scan import SparkScan
        from pyhudi.spark.read.table_lineage import with_snapshot_id

        now, plan = with_snapshot(
            self.now, lambda now: self._plan(now, filter_session(spark, now.config, self.row_filter))
        )
        return with_snapshot_id(dataframe(SparkScan(spark, now, plan, self.settings)), now)

    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table in memory, in no particular order."""
        now, plan = with_snapshot(self.now, self._plan)
        return scan_table(plan, now.storage)

    def to_batches(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of Arrow batches, unordered; a few batches are in memory at a time."""
        now, plan = with_snapshot(self.now, self._plan)
        return pa.RecordBatchReader.from_batches(plan.output_schema, scan_batches(plan, now.storage))

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return the rows as a DuckDB relation.

        Args:
            connection: Connection of the relation; None for DuckDB's default one.

        Raises:
            SetupError: DuckDB is not installed.
        """
        duck = require_package("duckdb")
        rows = self.to_arrow()
        return duck.from_arrow(rows) if connection is None else connection.from_arrow(rows)

    def count(self) -> int:
        """Return the number of rows.

        Raises:
            QueryError: The query cannot be answered, or names unknown columns.
        """
        now, plan = with_snapshot(self.now, self.select()._plan)
        project(plan.schema, None if self.columns is None else list(self.columns))
        return sum(batch.num_rows for batch in scan_batches(plan, now.storage))


def require_package(package: str) -> Any:
    """Return a package that is not always installed.

    Raises:
        SetupError: It is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise SetupError(f"{package} is not installed: pip install 'pyhudi[{package}]'") from error
