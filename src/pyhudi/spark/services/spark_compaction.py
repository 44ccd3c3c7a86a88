"""Execution of compactions on Spark: one task for each file slice, the largest first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from pyhudi.merge.file_slice import FileSlice, file_slices
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.writer.initial_statistics import FileStatsReader
from pyhudi.metrics.progress import Progress, report_progress
from pyhudi.services.compaction.compaction_job import CompactionJob
from pyhudi.services.compaction.compaction_runner import PROGRESS
from pyhudi.spark.execution.python_workers import this_task
from pyhudi.spark.execution.task_inputs import run_in_tasks
from pyhudi.spark.indexes.expression_index import expression_delta
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.indexes.indexed_commit import IndexedCommit
from pyhudi.spark.merger_pickling import check_picklable
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.write_status import decode_stats, encode_stats


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

    def check(self, config: TableConfig, job: CompactionJob) -> None:  # noqa: ARG002
        """Refuse tables with a merger that cannot be pickled.

        Raises:
            ConfigError: It cannot.
        """
        check_picklable(job.read_context.rules)

    def run(self, job: CompactionJob) -> pa.Table:
        """Compact all slices. Return the write stats. Runs a Spark job."""
        total = len(job.slices)
        report_progress(self.progress, PROGRESS, 0, total)
        settings = replace(job, slices=SLICE_SCHEMA.empty_table())

        def compact(one: FileSlice) -> bytes:
            return encode_stats(settings.run(one, this_task()))

        stats = run_in_tasks(self.spark, file_slices(job.slices), compact)
        report_progress(self.progress, PROGRESS, total, total)
        return decode_stats(stats)

    def index_delta(self, client: TableMetaClient, tx: Transaction, metadata: CommitMetadata) -> IndexDelta:
        """Update expression indexes with the result of a compaction. May run a Spark job."""
        commit = IndexedCommit.from_transaction(self.spark, client, tx.opts, tx, metadata)

        def catch_up(config: TableConfig, only: Collection[str]) -> IndexDelta | None:
            with commit.fence.reopened() as fence:
                return expression_delta(commit.with_config(config, fence), only)

        return replace(IndexDelta().merge(expression_delta(commit)), catch_up=catch_up)
