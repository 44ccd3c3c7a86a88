"""Tasks that take and yield batches of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pyhudi.schema.converters.spark_arrow import as_spark_arrow
from pyhudi.spark.execution.python_workers import prepare_worker
from pyhudi.spark.spark_types import spark_schema

Batches = Iterator[pa.RecordBatch]
"""Batches that a task yields."""
RowTask = Callable[[Iterable[pa.RecordBatch]], Batches]


def map_in_arrow(frame: DataFrame, task: RowTask, schema: StructType | str) -> DataFrame:
    """Run ``task`` on each partition of a DataFrame by `mapInArrow`, in prepared workers; return what it yields, rows
    of ``schema``. Lazy. ``task`` is pickled with everything that it references."""

    def run(batches: Iterable[pa.RecordBatch]) -> Batches:
        prepare_worker()
        return task(batches)

    return frame.mapInArrow(run, schema)


def rows_of_tasks(frame: DataFrame, task: RowTask, schema: pa.Schema) -> DataFrame:
    """Run ``task`` as `map_in_arrow`; return what it yields, rows of ``schema`` (types of tables), in Spark's types."""

    def run(batches: Iterable[pa.RecordBatch]) -> Batches:
        return map(as_spark_arrow, task(batches))

    return map_in_arrow(frame, run, spark_schema(schema))
