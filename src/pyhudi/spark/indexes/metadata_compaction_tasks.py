"""Compactions of the metadata table on Spark's executors: one task for each file group."""

from __future__ import annotations

import json
from dataclasses import replace

from pyspark import TaskContext
from pyspark.sql import SparkSession

from pyhudi.metadata.file_groups.hfile_sources import MetadataSlice
from pyhudi.metadata.maintenance.metadata_compaction_job import MetadataCompactionJob
from pyhudi.spark.execution.task_inputs import run_in_tasks
from pyhudi.timeline.commit_metadata import WriteStat


def compact_on_executors(spark: SparkSession, job: MetadataCompactionJob) -> list[WriteStat]:
    """Merge each slice of a job in its own task; return the write stats. Runs a Spark job."""

    settings = replace(job, slices=())

    def compact(one: MetadataSlice) -> bytes:
        context = TaskContext.get()
        return json.dumps(settings.run(one, 0 if context is None else context.attemptNumber())).encode()

    return [json.loads(stat) for stat in run_in_tasks(spark, job.slices, compact)]
