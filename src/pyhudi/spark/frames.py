"""DataFrames made of small facts of the driver, to be joined with rows, and of other DataFrames."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession

from pyhudi.spark.settings import session_setting
from pyhudi.spark.types import spark_schema

_TAKES_ARROW = int(pyspark.__version__.split(".")[0]) >= 4


def small_frame(spark: SparkSession, data: pa.Table) -> DataFrame:
    """A DataFrame of a few rows, which Spark keeps as a local relation: evaluating it starts no Python worker."""
    if _TAKES_ARROW:
        return spark.createDataFrame(data)
    with session_setting(spark, "spark.sql.execution.arrow.pyspark.enabled", "true"):
        return spark.createDataFrame(data.combine_chunks().to_pandas(), spark_schema(data.schema))


def union(parts: Sequence[DataFrame]) -> DataFrame:
    """The rows of one or more parts with the same columns. Halves are joined, because Spark looks through all of a
    union's parts whenever another one is added."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return union(parts[:half]).union(union(parts[half:]))
