"""Similarity search on a table: lazy, and returned as Spark, Arrow, pandas or polars data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.read.execute.vector_top_k import nearest_rows
from pyhudi.read.vector_distance import Metric, check_query, vector_field
from pyhudi.scan import Scan, require

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """Query of the rows whose vectors are nearest to a query vector. Every call searches the table as it is then.

    Rows come nearest first, with the column ``_hudi_distance`` and without the vectors. Those without a vector are left
    out. Created by :meth:`pyhudi.HudiTable.vector_search`.
    """

    scan: Scan
    query: tuple[float, ...]
    column: str
    k: int
    metric: Metric

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table. The table is read on threads of this process, a few batches at a time.

        Raises:
            QueryError: There is no such column, or the query vector does not have its dimension.
        """
        rows = self._rows().to_batches()
        field = vector_field(rows.schema, self.column)
        query = check_query(self.query, field.name, field.type)
        return nearest_rows(rows, rows.schema, field.name, query, self.k, self.metric)

    def to_spark(self, spark: SparkSession | None = None) -> DataFrame:
        """Return the rows as a DataFrame, which Spark reads lazily.

        Args:
            spark: Session to read with; None for the active one.

        Raises:
            QueryError: There is no such column, or the query vector does not have its dimension.
            SetupError: ``spark`` is None, and there is no active session.
        """
        from pyhudi.spark.read.vector_search import nearest

        return nearest(self._rows().to_spark(spark), self.column, self.query, self.k, self.metric)

    def to_pandas(self, **kwargs: Any) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame.

        Args:
            **kwargs: Arguments of :meth:`pyarrow.Table.to_pandas`.

        Raises:
            SetupError: pandas is not installed.
        """
        require("pandas")
        return self.to_arrow().to_pandas(**kwargs)

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a polars DataFrame.

        Raises:
            SetupError: polars is not installed.
        """
        frame: pl.DataFrame = require("polars").from_arrow(self.to_arrow())
        return frame

    def _rows(self) -> Scan:
        """Return the scan with the column of the vectors."""
        columns = self.scan.columns
        return self.scan if columns is None or self.column in columns else self.scan.select(*columns, self.column)
