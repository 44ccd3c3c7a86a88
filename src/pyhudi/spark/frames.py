"""Small facts of the driver as DataFrames, to be joined with rows."""

from __future__ import annotations

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
