"""DataFrames made from small data on the driver, to be joined with rows, and unions of DataFrames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyspark
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyhudi.read.filters.time_comparison import is_date_or_time
from pyhudi.spark.execution.task_placement import placement_keys
from pyhudi.spark.session_settings import session_setting
from pyhudi.spark.spark_types import spark_schema

_TASK = "_pyhudi_task"
_TAKES_ARROW = int(pyspark.__version__.split(".")[0]) >= 4


def small_frame(spark: SparkSession, data: pa.Table) -> DataFrame:
    """Return a DataFrame of a few rows as a local relation of Spark: evaluating it starts no Python worker."""
    if _TAKES_ARROW:
        return spark.createDataFrame(data)
    with session_setting(spark, "spark.sql.execution.arrow.pyspark.enabled", "true"):
        return spark.createDataFrame(data.combine_chunks().to_pandas(), spark_schema(data.schema))


def spread_frame(spark: SparkSession, data: pa.Table, tasks: int) -> DataFrame:
    """Return a DataFrame whose rows are spread evenly over ``tasks`` tasks, in order, for tasks with much work for each
    row."""
    numbers = np.arange(data.num_rows) * tasks // max(1, data.num_rows)
    keys = np.array(placement_keys(tasks), np.int32)[numbers]
    return small_frame(spark, data.append_column(_TASK, pa.array(keys))).repartition(tasks, _TASK).drop(_TASK)


def union(parts: Sequence[DataFrame]) -> DataFrame:
    """Return the union of one or more DataFrames with the same columns. They are combined pairwise in halves, because
    Spark traverses
        the whole plan of a union each time another DataFrame is added to it."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return union(parts[:half]).union(union(parts[half:]))


def constant(value: object, field: pa.Field) -> Column:
    """Return a constant column. It is optimised to a literal, but nullable, as columns of tables are."""
    if value is not None and is_date_or_time(field.type):
        value = str(value)  # PySpark interprets times without a zone in the time zone of the driver
    return sf.when(sf.lit(True), sf.lit(value).cast(spark_schema(pa.schema([field])).fields[0].dataType))
