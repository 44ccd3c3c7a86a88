"""A query on a table: lazy, immutable, and given out in whatever form its user works with."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.errors import SetupError
from pyhudi.read.filters import Filter, RowFilter
from pyhudi.read.instants import QueryTime
from pyhudi.read.local import scan_batches, scan_table
from pyhudi.read.pinned import PinnedTable
from pyhudi.read.plan import ScanPlan, plan_scan
from pyhudi.read.query import Query

if TYPE_CHECKING:
    import duckdb
    import pandas as pd  # type: ignore[import-untyped]
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Scan:
    """A query on a table, lazy and immutable: every ``to_…`` call plans and reads the table as it is then."""

    now: Callable[[], PinnedTable] = field(repr=False)
    settings: Options = field(repr=False)
    row_filter: RowFilter | None = None
    columns: tuple[str, ...] | None = None
    as_of: QueryTime | None = None
    begin: QueryTime | None = None
    end: QueryTime | None = None
    read_optimized: bool = False

    def select(self, *columns: str) -> Scan:
        """The same scan with only these columns."""
        return replace(self, columns=columns)

    def filter(self, filter: Filter) -> Scan:
        """The same scan with this filter instead of its own."""
        return replace(self, row_filter=RowFilter.parse(filter))

    def plan(self) -> ScanPlan:
        """What will be read: an Arrow table of tasks, and what pruning left out. Reads no data."""
        return self._plan(self.now())

    def _plan(self, now: PinnedTable, hidden_functions: Collection[str] = ()) -> ScanPlan:
        query = Query.of(
            now.config, as_of=self.as_of, begin=self.begin, end=self.end, read_optimized=self.read_optimized
        )
        return plan_scan(
            now,
            query,
            filter=self.row_filter,
            columns=self.columns,
            opts=self.settings,
            hidden_functions=hidden_functions,
        )

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """The rows as a Spark DataFrame, read lazily by Spark."""
        from pyhudi.spark.functions import hidden_in_filter
        from pyhudi.spark.reader import dataframe

        now = self.now()
        hidden = hidden_in_filter(spark, now.config, self.row_filter)
        return dataframe(spark, now, self._plan(now, hidden), self.settings)

    def to_arrow(self) -> pa.Table:
        """All rows in memory."""
        now = self.now()
        return scan_table(self._plan(now), now.storage)

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow batches, a few of them in memory at a time, in no particular order."""
        now = self.now()
        plan = self._plan(now)
        return pa.RecordBatchReader.from_batches(plan.output_schema, scan_batches(plan, now.storage))

    def to_pandas(self, **kwargs: Any) -> pd.DataFrame:
        """The rows as a pandas DataFrame; arguments go to :meth:`pyarrow.Table.to_pandas`."""
        _require("pandas")
        return self.to_arrow().to_pandas(**kwargs)

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars DataFrame."""
        frame: pl.DataFrame = _require("polars").from_arrow(self.to_arrow())
        return frame

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The rows as a DuckDB relation, on ``connection`` or DuckDB's default one."""
        duck = _require("duckdb")
        rows = self.to_arrow()
        return duck.from_arrow(rows) if connection is None else connection.from_arrow(rows)

    def count(self) -> int:
        """How many rows there are."""
        return sum(batch.num_rows for batch in self.select().to_batches())


def _require(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as e:
        raise SetupError(f"{package} is not installed: pip install 'pyhudi[{package}]'") from e
