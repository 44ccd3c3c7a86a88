"""Similarity search on a table: lazy, and returned as Spark, Arrow, pandas or polars data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.api.scan import ArrowConversions, Scan
from pyhudi.read.functions.vector_distance import Metric, check_query, vector_field
from pyhudi.read.functions.vector_top_k import nearest_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class VectorSearch(ArrowConversions):
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
        return nearest_rows(rows, rows.schema, field.name, query, k=self.k, metric=self.metric)

    def to_spark(self, spark: SparkSession | None = None) -> DataFrame:
        """Return the rows as a DataFrame, which Spark reads lazily.

        Args:
            spark: Session to read with; None for the active one.

        Raises:
            QueryError: There is no such column, or the query vector does not have its dimension.
            SetupError: ``spark`` is None, and there is no active session.
        """
        rows = self._rows().to_spark(spark)
        from pyhudi.spark.read.nearest_neighbors import nearest

        return nearest(rows, self.column, self.query, self.k, self.metric)

    def _rows(self) -> Scan:
        """Return the scan with the column of the vectors."""
        columns = self.scan.columns
        return self.scan if columns is None or self.column in columns else self.scan.select(*columns, self.column)
