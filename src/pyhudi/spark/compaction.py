"""Runs compactions on Spark: one task for each file slice, the largest first."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession

from pyhudi.metadata.filefacts import FileFacts
from pyhudi.metadata.indexdelta import IndexDelta
from pyhudi.services.job import CompactionJob
from pyhudi.services.run import Runner, compact_one
from pyhudi.spark.expressionindex import expression_delta
from pyhudi.spark.failures import task_errors
from pyhudi.spark.filefacts import SparkFacts
from pyhudi.spark.workers import this_task
from pyhudi.write.columns import STATUS
from pyhudi.write.status import decode_stats

if TYPE_CHECKING:
    from pyhudi.table.config import TableConfig
    from pyhudi.table.metaclient import TableMetaClient
    from pyhudi.timeline.metadata import CommitMetadata


@dataclass(frozen=True, slots=True)
class SparkRunner:
    """Does the work of compactions on Spark, and keeps expression indexes."""

    spark: SparkSession

    @property
    def facts(self) -> FileFacts:
        """Who reads files where indexes are built."""
        return SparkFacts(self.spark)

    def __call__(self, job: CompactionJob) -> pa.Table:
        return _run(self.spark, job)

    def index_delta(
        self, client: TableMetaClient, config: TableConfig, instant: str, metadata: CommitMetadata
    ) -> IndexDelta:
        """Write what a compaction has done to expression indexes. May run a Spark job."""

        def delta(config: TableConfig, only: Collection[str] | None = None) -> IndexDelta | None:
            return expression_delta(self.spark, client, config, instant, metadata, only)

        return replace(IndexDelta().and_(delta(config)), late=delta)


def spark_runner(spark: SparkSession) -> Runner:
    """What does the work of compactions on that Spark."""
    return SparkRunner(spark)


def _run(spark: SparkSession, job: CompactionJob) -> pa.Table:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Arrow's own threads would compete with the other tasks of the executor
        pa.set_cpu_count(1)
        me = this_task()
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
