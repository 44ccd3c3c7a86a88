"""Compactions of the metadata table on Spark's executors: one task for each file group."""

from __future__ import annotations

import json

from pyspark import TaskContext
from pyspark.sql import SparkSession

from pyhudi.metadata.file_groups.delta_commit_writer import Stat
from pyhudi.metadata.maintenance.metadata_compaction_job import MetadataCompactionJob
from pyhudi.spark.execution.numbered_tasks import run_numbered_tasks


def compact_on_executors(spark: SparkSession, job: MetadataCompactionJob) -> list[Stat]:
    """Merge each slice of a job in its own task; return the write stats. Runs a Spark job."""

    def compact(number: int) -> bytes:
        context = TaskContext.get()
        return json.dumps(job.run(number, 0 if context is None else context.attemptNumber())).encode()

    return [json.loads(stat) for stat in run_numbered_tasks(spark, len(job.slices), compact)]
