"""Tasks whose results are rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.schema.converters.spark_arrow import as_spark_arrow
from pyhudi.spark.execution.python_workers import prepare_worker
from pyhudi.spark.spark_types import spark_schema

Batches = Iterator[pa.RecordBatch]
"""Batches that a task yields."""
RowTask = Callable[[Iterable[pa.RecordBatch]], Batches]


def rows_of_tasks(frame: DataFrame, task: RowTask, schema: pa.Schema) -> DataFrame:
    """Run ``task`` on each partition of a DataFrame; return what it yields, rows of ``schema`` (types of tables), in
    Spark's types. Lazy. ``task`` is pickled with everything that it references."""

    def run(batches: Iterable[pa.RecordBatch]) -> Batches:
        prepare_worker()
        return map(as_spark_arrow, task(batches))

    return frame.mapInArrow(run, spark_schema(schema))
