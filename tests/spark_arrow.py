"""Conversion of Spark DataFrames to Arrow tables on all supported versions of Spark."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema


def to_arrow(df: DataFrame) -> pa.Table:
    """Return all rows; Spark 3.5 has no public method for it."""
    if hasattr(df, "toArrow"):
        return df.toArrow()
    batches = df._collect_as_arrow()
    return pa.Table.from_batches(batches) if batches else to_arrow_schema(df.schema).empty_table()
