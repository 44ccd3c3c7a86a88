"""DataFrames and expressions made from small data on the driver, to be joined with rows, and unions of DataFrames."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyspark
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from pyhudi.read.filters.time_comparison import is_date_or_time
from pyhudi.spark.execution.task_placement import placement_keys
from pyhudi.spark.session_settings import session_setting
from pyhudi.spark.spark_types import spark_schema, spark_type
from pyhudi.write.location_columns import PLACEMENT_KEY

MAX_LITERALS = 16
"""Number of rows up to which a table becomes an expression. Spark runs a job for each broadcast, but compares each row
with all cases of an expression."""
_PLAIN_TEXT = re.compile(r"[\w ./:=-]*", re.ASCII)
_TAKES_ARROW = int(pyspark.__version__.split(".")[0]) >= 4


def small_frame(spark: SparkSession, data: pa.Table) -> DataFrame:
    """Return a DataFrame of a few rows as a local relation of Spark: evaluating it starts no Python worker."""
    if _TAKES_ARROW:
        return spark.createDataFrame(data)
    with session_setting(spark, "spark.sql.execution.arrow.pyspark.enabled", "true"):
        return spark.createDataFrame(data.combine_chunks().to_pandas(), spark_schema(data.schema))


def empty_frame(spark: SparkSession, schema: str | StructType) -> DataFrame:
    """Return a DataFrame without rows. Spark's optimizer leaves out what is below the limit, and so its tasks."""
    return spark.createDataFrame([], schema).limit(0)


def literal_lookup(data: pa.Table, keys: Sequence[str], name: str) -> Column:
    """Return a column of a table of a few rows, looked up by other columns, as one expression.

    Args:
        data: A table of texts, numbers, lists and structs.
        keys: Columns with the same values as those of these names in the rows; no two rows of the table agree in them.
        name: The column to look up; it is null where the table has no such keys.
    """
    kind = spark_type(data.schema.field(name).type).simpleString()
    cases = (
        f"WHEN {' AND '.join(f'{key} = {_literal(row[key])}' for key in keys)} THEN {_literal(row[name])}"
        for row in data.select([*keys, name]).to_pylist()
    )
    return sf.expr(f"CASE {' '.join(cases)} ELSE CAST(NULL AS {kind}) END")


def looked_up(rows: DataFrame, data: pa.Table, keys: Sequence[str]) -> tuple[DataFrame, dict[str, Column]]:
    """Give rows access to a small table: by expressions if it has a few rows only, otherwise by a broadcast join.

    Args:
        rows: The rows.
        data: The table, as of `literal_lookup`.
        keys: Columns of both; no two rows of the table agree in them.

    Returns:
        The rows, and the other columns of the table, null where it has no such keys.
    """
    names = [name for name in data.column_names if name not in keys]
    if data.num_rows <= MAX_LITERALS:
        return rows, {name: literal_lookup(data, keys, name) for name in names}
    joined = rows.join(sf.broadcast(small_frame(rows.sparkSession, data)), list(keys), "left")
    return joined, {name: sf.col(name) for name in names}


def _literal(value: object) -> str:
    """Return a value as SQL. It depends on the session which characters of a string are escapes, and which functions
    are hidden by the user's own ones of these names."""
    if isinstance(value, list):
        return f"array({', '.join(map(_literal, value))})"
    if isinstance(value, dict):
        return f"named_struct({', '.join(f'{_literal(key)}, {_literal(of)}' for key, of in value.items())})"
    if isinstance(value, str) and not _PLAIN_TEXT.fullmatch(value):
        return f"CAST(X'{value.encode().hex()}' AS STRING)"
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def spread_frame(spark: SparkSession, data: pa.Table, tasks: int) -> DataFrame:
    """Return a DataFrame whose rows are spread evenly over ``tasks`` tasks, in order, for tasks with much work for each
    row."""
    numbers = np.arange(data.num_rows) * tasks // max(1, data.num_rows)
    keys = np.array(placement_keys(tasks), np.int32)[numbers]
    return (
        small_frame(spark, data.append_column(PLACEMENT_KEY, pa.array(keys)))
        .repartition(tasks, PLACEMENT_KEY)
        .drop(PLACEMENT_KEY)
    )


def union(parts: Sequence[DataFrame]) -> DataFrame:
    """Return the union of one or more DataFrames with the same columns. They are combined pairwise in halves, because
    Spark traverses the whole plan of a union each time another DataFrame is added to it."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return union(parts[:half]).union(union(parts[half:]))


def constant(value: object, field: pa.Field) -> Column:
    """Return a constant column. It is optimised to a literal, but nullable, as columns of tables are."""
    if value is not None and is_date_or_time(field.type):
        value = str(value)  # PySpark interprets times without a zone in the time zone of the driver
    return sf.when(sf.lit(True), sf.lit(value).cast(spark_type(field.type)))
