"""Temporary views of DataFrames, for what Spark offers in SQL only. Rows that are cached stay cached.

When a temporary view is dropped, Spark removes its plan from the cache, even if the plan was cached as a DataFrame
before. So the views have a plan of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.spark.session import original_method, spark_sql


@contextmanager
def temporary_view(frame: DataFrame, name: str) -> Iterator[None]:
    """Return a context manager in which a DataFrame is a temporary view."""
    view = with_separate_plan(frame)
    original_method(type(view).createOrReplaceTempView)(view, name)
    try:
        yield
    finally:
        frame.sparkSession.catalog.dropTempView(name)


def with_separate_plan(frame: DataFrame) -> DataFrame:
    """Return the same rows by a plan that is not cached, even if that of the DataFrame is. Spark's optimizer removes
    the difference."""
    filtered: DataFrame = original_method(type(frame).where)(frame, F.lit(True))
    return filtered


def plan_text(frame: DataFrame, mode: str = "") -> str:
    """Return the text of the plan of a DataFrame. No query is executed.

    `DataFrame.explain` prints it, and Spark Connect 3.5 takes no DataFrames in SQL, so it is found by a temporary view.

    Args:
        frame: The DataFrame.
        mode: Mode of EXPLAIN, such as ``EXTENDED`` for the logical plans as well.
    """
    name = f"_pyhudi_plan_{uuid4().hex}"
    with temporary_view(frame, name):
        return str(spark_sql(frame.sparkSession, f"EXPLAIN {mode} SELECT * FROM {name}").collect()[0][0])
