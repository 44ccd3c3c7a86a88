"""Limits of the Arrow batches in which Spark passes rows to Python tasks.

Spark 4 also limits batches by bytes (``spark.sql.execution.arrow.maxBytesPerBatch``): after each row, it adds up the
buffers of all columns. That is a third of the time in which it passes rows of sixteen columns. Only the value
2147483647 switches it off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from pyhudi.spark.execution.temporary_views import plan_text
from pyhudi.spark.session_settings import session_setting

MAX_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
MAX_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
MIN_ROWS = 100_000
"""Rows from which on the limit of bytes takes longer than a look at their plan."""
_NO_LIMIT = str(2**31 - 1)
_MAX_ROWS = 4096
"""Rows of a batch without a limit of bytes: even rows with texts of 16 KB do not exceed Spark's own limit, 64 MiB."""
_BOUNDED = (T.NumericType, T.BooleanType, T.StringType, T.DateType, T.TimestampType, T.TimestampNTZType)
_PYTHON_NODES = ("Python", "InArrow", "InPandas")
"""Parts of the names of Spark's operators that pass rows to Python."""


@contextmanager
def batches_limited_by_rows(rows: DataFrame, count: int | None = None) -> Iterator[None]:
    """Return a context manager in which batches have at most 4,096 rows, and no limit of bytes.

    Nothing changes on Spark 3.5, which has no limit of bytes; if the session has one of its own; if the rows are few;
    if they have columns other than numbers, booleans, texts and times, whose values are often large; and if Python
    functions compute them, because the limit also holds for the input of these.

    Args:
        rows: Rows that Python tasks get inside the context.
        count: Their number; None: it is not known.
    """
    spark = rows.sparkSession
    few = count is not None and count < MIN_ROWS
    if few or not _has_limit_of_bytes(spark) or not _is_bounded(rows.schema) or _is_computed_by_python(rows):
        yield
        return
    with session_setting(spark, MAX_BYTES, _NO_LIMIT), session_setting(spark, MAX_ROWS, str(_most_rows(spark))):
        yield


def _has_limit_of_bytes(spark: SparkSession) -> bool:
    """Return True if Spark limits the bytes of batches, by its default or for another write of this process."""
    return int(pyspark.__version__.split(".")[0]) >= 4 and spark.conf.get(MAX_BYTES, _NO_LIMIT) == _NO_LIMIT


def _most_rows(spark: SparkSession) -> int:
    """Return the number of rows to which batches are limited. That of the session is no limit if it is not positive."""
    of_session = int(spark.conf.get(MAX_ROWS) or 0)
    return min(_MAX_ROWS, of_session) if of_session > 0 else _MAX_ROWS


def _is_bounded(data_type: T.DataType) -> bool:
    """Return True if values of the type are usually small."""
    if isinstance(data_type, T.StructType):
        return all(_is_bounded(field.dataType) for field in data_type.fields)
    return isinstance(data_type, _BOUNDED)


def _is_computed_by_python(rows: DataFrame) -> bool:
    """Return True if the plan of the rows has Python functions."""
    plan = plan_text(rows)
    return any(name in plan for name in _PYTHON_NODES)
