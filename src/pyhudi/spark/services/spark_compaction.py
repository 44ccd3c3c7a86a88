"""Execution of compactions on Spark: one task for each file slice, the largest first."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession

from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.writer.initial_statistics import FileStatsReader
from pyhudi.metrics.progress import Progress, report_progress
from pyhudi.services.compaction.compaction_job import CompactionJob
from pyhudi.services.compaction.compaction_runner import PROGRESS, compact_one
from pyhudi.spark.execution.python_workers import this_task
from pyhudi.spark.indexes.expression_index import expression_delta
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.indexes.indexed_commit import IndexedCommit
from pyhudi.spark.spark_errors import task_errors
from pyhudi.write.location_columns import STATUS
from pyhudi.write.write_status import decode_stats

if TYPE_CHECKING:
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.table.meta_client import TableMetaClient
    from pyhudi.timeline.commit_metadata import CommitMetadata
    from pyhudi.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True)
class SparkCompactionRunner:
    """Executes compactions on Spark, and also updates expression indexes.

    Attributes:
        spark: The session.
        progress: Called before and after the Spark job.
    """

    spark: SparkSession
    progress: Progress | None = None

    @property
    def stats_reader(self) -> FileStatsReader:
        """Return the reader of files for index builds."""
        return SparkFileStatsReader(self.spark)

    def check(self, config: TableConfig, job: CompactionJob) -> None:
        """Accept each job."""

    def run(self, job: CompactionJob) -> pa.Table:
        """Compact all slices. Return the write stats. Runs a Spark job."""
        total = len(job.slices)
        report_progress(self.progress, PROGRESS, 0, total)
        stats = _run(self.spark, job)
        report_progress(self.progress, PROGRESS, total, total)
        return stats

    def index_delta(self, client: TableMetaClient, tx: Transaction, metadata: CommitMetadata) -> IndexDelta:
        """Update expression indexes with the result of a compaction. May run a Spark job."""
        commit = IndexedCommit.from_transaction(self.spark, client, tx.opts, tx, metadata)

        def catch_up(config: TableConfig, only: Collection[str]) -> IndexDelta | None:
            with commit.fence.reopened() as fence:
                return expression_delta(commit.with_config(config, fence), only)

        return replace(IndexDelta().merge(expression_delta(commit)), catch_up=catch_up)


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
    # a range is partitioned at its source, so each slice gets its own task without a shuffle
    numbers = spark.range(0, slices, 1, numPartitions=slices)
    with task_errors():
        return decode_stats(bytes(row[0]) for row in numbers.mapInArrow(task, f"{STATUS} binary").collect())
