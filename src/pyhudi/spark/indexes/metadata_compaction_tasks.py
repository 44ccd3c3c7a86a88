"""Compactions of the metadata table on Spark's executors: one task for each file group."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from pyhudi.metadata.file_groups.delta_commit_writer import Stat
from pyhudi.metadata.maintenance.metadata_compaction_job import MetadataCompactionJob
from pyhudi.spark.execution.python_workers import prepare_worker
from pyhudi.spark.spark_errors import task_errors

_STAT = "stat"


def compact_on_executors(spark: SparkSession, job: MetadataCompactionJob) -> list[Stat]:
    """Merge each slice of a job in its own task; return the write stats. Runs a Spark job."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        context = TaskContext.get()
        attempt = 0 if context is None else context.attemptNumber()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                stat = json.dumps(job.run(number, attempt))
                yield pa.RecordBatch.from_arrays([pa.array([stat], pa.string())], names=[_STAT])

    # a range is partitioned at its source, so each file group gets its own task without a shuffle
    count = len(job.slices)
    rows = spark.range(0, count, 1, numPartitions=count).mapInArrow(task, f"{_STAT} string")
    with task_errors():
        return [json.loads(row[0]) for row in rows.collect()]
