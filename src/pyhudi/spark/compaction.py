"""Runs compactions on Spark: one task for each file slice, the largest first."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from pyhudi.services.job import CompactionJob
from pyhudi.services.run import Runner, compact_one
from pyhudi.spark.failures import task_errors
from pyhudi.write.columns import STATUS
from pyhudi.write.context import TaskId
from pyhudi.write.status import decode_stats


def spark_runner(spark: SparkSession) -> Runner:
    """What does the work of compactions on that Spark."""

    def run(job: CompactionJob) -> pa.Table:
        return _run(spark, job)

    return run


def _run(spark: SparkSession, job: CompactionJob) -> pa.Table:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Arrow's own threads would compete with the other tasks of the executor
        pa.set_cpu_count(1)
        spark_task = TaskContext.get()
        assert spark_task is not None
        me = TaskId(spark_task.partitionId(), spark_task.stageId(), spark_task.taskAttemptId())
        for batch in batches:
            for number in batch.column(0).to_pylist():
                status = compact_one(job, number, me)
                yield pa.RecordBatch.from_arrays([pa.array([status], pa.binary())], names=[STATUS])

    slices = len(job.slices)
    if not slices:
        return decode_stats([])
    # a range is cut into parts where it is made, so every slice is a task of its own without a shuffle
    numbers = spark.range(0, slices, 1, numPartitions=slices)
    with task_errors():
        return decode_stats(bytes(row[0]) for row in numbers.mapInArrow(task, f"{STATUS} binary").collect())
