"""Jobs of numbered tasks: each number is worked on by a Spark task of its own, which returns bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from pyhudi.spark.execution.python_workers import prepare_worker
from pyhudi.spark.spark_errors import task_errors

_RESULT = "result"


def run_numbered_tasks(spark: SparkSession, count: int, run: Callable[[int], bytes]) -> list[bytes]:
    """Run a function on each number below ``count``, in a Spark task of its own. Runs a Spark job, unless there are no
    tasks.

    Args:
        spark: The session.
        count: Number of tasks.
        run: Runs the task of a number. It is pickled with everything that it references.

    Returns:
        The results, in the order of the numbers.
    """
    if not count:
        return []

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_arrays([pa.array([run(number)], pa.binary())], names=[_RESULT])

    # a range is partitioned at its source, so each number gets its own task without a shuffle
    results = spark.range(0, count, 1, numPartitions=count).mapInArrow(task, f"{_RESULT} binary")
    with task_errors():
        return [bytes(row[0]) for row in results.collect()]
