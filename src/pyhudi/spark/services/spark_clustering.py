"""Execution of clusterings on Spark.

Groups that fit into the memory of a task are read, sorted and written there, without a shuffle. Larger groups with sort
columns are read by Spark, range-partitioned over tasks by the sort columns, and sorted within each task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructField, StructType

from pyhudi.arrow.ipc import table_from_bytes, table_to_bytes
from pyhudi.config import Options, options
from pyhudi.config.enums import PartitionValues
from pyhudi.merge.file_group_reader import read_slice
from pyhudi.merge.file_slice import FileSlice
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.writer.initial_statistics import FileStatsReader
from pyhudi.metrics.progress import Progress, report_progress
from pyhudi.read.scan_planner import plan_scan
from pyhudi.schema.meta_fields import PARTITION_PATH
from pyhudi.services.clustering.clustering_groups import ClusteringGroup
from pyhudi.services.clustering.clustering_job import ClusteringJob, ClusteringTaskContext
from pyhudi.services.clustering.clustering_runner import PROGRESS
from pyhudi.spark.column_names import quoted, select_names
from pyhudi.spark.execution.local_relations import union
from pyhudi.spark.execution.python_workers import this_task
from pyhudi.spark.execution.row_tasks import Batches, map_in_arrow
from pyhudi.spark.execution.task_inputs import run_in_tasks
from pyhudi.spark.execution.write_stages import WriteTask, run_write_tasks
from pyhudi.spark.indexes.dependent_indexes import update_dependent_indexes
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.indexes.indexed_commit import IndexedCommit
from pyhudi.spark.indexes.record_index.record_index_update import KeyChanges, index_delta
from pyhudi.spark.merger_pickling import check_picklable
from pyhudi.spark.read.dataframe_reader import dataframe
from pyhudi.spark.read.spark_scan import SparkScan
from pyhudi.spark.spark_errors import task_errors
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.settings.write_context import TaskId
from pyhudi.write.write_status import decode_stats, encode_stats

SORTED_IN_TASK = 48 * 1024 * 1024
"""Maximum size in bytes of the files that a task sorts in memory."""
_CURVE_POSITION = "_pyhudi_curve_position"


@dataclass(frozen=True, slots=True)
class SparkClusteringRunner:
    """Runner of clusterings on Spark, which also updates the indexes that are affected."""

    spark: SparkSession
    sorted_in_task: int = SORTED_IN_TASK
    progress: Progress | None = None

    @property
    def stats_reader(self) -> FileStatsReader:
        """Return the reader of files for index builds."""
        return SparkFileStatsReader(self.spark)

    def check(self, config: TableConfig, job: ClusteringJob) -> None:  # noqa: ARG002
        """Refuse tables with a merger that cannot be pickled.

        Raises:
            ConfigError: It cannot.
        """
        check_picklable(job.task_context.read_context.rules)

    def run(self, job: ClusteringJob) -> pa.Table:
        """Rewrite all groups; return the write stats. Runs Spark jobs."""
        total = len(job.groups)
        report_progress(self.progress, PROGRESS, 0, total)
        sorts = bool(job.task_context.order) and job.groups.buckets is None
        is_large = job.groups.sizes > self.sorted_in_task if sorts else np.zeros(total, bool)
        large, small = np.flatnonzero(is_large).tolist(), np.flatnonzero(~is_large).tolist()
        with task_errors():
            parts = [run_write_tasks(_in_order(self.spark, job, large), _writing(job.task_context))] if large else []
            if small:
                parts.append(_in_tasks(self.spark, job, small))
        report_progress(self.progress, PROGRESS, total, total)
        return pa.concat_tables(parts, promote_options="default") if parts else decode_stats([])

    def index_delta(self, client: TableMetaClient, tx: Transaction, metadata: CommitMetadata) -> IndexDelta | None:
        """Update the record index with the new locations of all keys, and expression indexes with the values in the new
        files. Secondary indexes refer to record keys, which do not change. May run Spark jobs."""
        spark, opts = self.spark, tx.opts
        changes = KeyChanges(metadata.stats, looked_up=True)
        delta = index_delta(spark, tx, opts, changes)
        if delta is not None:
            delta = replace(delta, find_key_conflict=None)  # the keys already exist
        return update_dependent_indexes(
            IndexedCommit.from_transaction(spark, client, opts, tx, metadata), delta, rows_stay=True
        )


def _in_tasks(spark: SparkSession, job: ClusteringJob, groups: Sequence[int]) -> pa.Table:
    """Rewrite groups, each in its own task; return the write stats."""
    task_context = job.task_context

    def rewrite(numbered: tuple[int, ClusteringGroup]) -> bytes:
        number, group = numbered
        return encode_stats(task_context.run(group, number, this_task()))

    return decode_stats(run_in_tasks(spark, ((number, job.groups[number]) for number in groups), rewrite))


def _writing(task_context: ClusteringTaskContext) -> WriteTask:
    """Return a function that writes the rows of a task, which belong to one partition, in the order they come in."""

    def write(batches: Iterable[pa.RecordBatch], task: TaskId) -> bytes:
        rows = (batch for batch in batches if batch.num_rows)
        first = next(rows, None)
        if first is None:
            return encode_stats([])
        partition: str = first.column(first.schema.get_field_index(PARTITION_PATH))[0].as_py()
        return encode_stats(task_context.write(partition, task.partition, chain([first], rows), task))

    return write


def _in_order(spark: SparkSession, job: ClusteringJob, groups: Sequence[int]) -> DataFrame:
    """Return the rows of groups, each distributed over as many tasks as it gets files, sorted in each task."""
    # partition columns are read from the files: in paths they are texts
    opts = Options.parse({**job.opts, options.READ_PARTITION_VALUES.key: PartitionValues.FILE.value})
    scan = plan_scan(job.table, opts=opts)
    order, parts = job.task_context.order, []
    for number in groups:
        group = job.groups[number]
        names = pa.table(
            {"partition": [group.partition] * len(group.slices), "file_id": [s.file_id for s in group.slices]}
        )
        plan = replace(scan, tasks=scan.tasks.filter(in_groups(scan.tasks, names)))
        rows = dataframe(SparkScan(spark, job.table, plan, opts))
        rows = select_names(rows, job.task_context.read_context.columns).withColumn(
            PARTITION_PATH, sf.lit(group.partition)
        )
        keys = [sf.col(_path(rows, name)).asc_nulls_last() for name in order.columns]
        if order.is_curve:
            rows, keys = (
                _with_curve_positions(rows, job.task_context, _bounds(spark, job, number)),
                [sf.col(_CURVE_POSITION).asc()],
            )
        parts.append(rows.repartitionByRange(group.outputs, *keys).sortWithinPartitions(*keys))
    return union(parts).drop(_CURVE_POSITION)


def _path(rows: DataFrame, name: str) -> str:
    """Return a column name, or a path into a struct, in the form that Spark's column functions take."""
    return quoted([name] if name in rows.columns else name.split("."))


def _with_curve_positions(rows: DataFrame, task_context: ClusteringTaskContext, lower: Sequence[pa.Array]) -> DataFrame:
    """Return the rows with their positions on the space-filling curve."""
    order = task_context.order

    def position(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            positions = order.curve_positions(order.values(batch), lower)
            yield pa.RecordBatch.from_arrays([*batch.columns, positions], names=[*batch.schema.names, _CURVE_POSITION])

    return map_in_arrow(rows, position, StructType([*rows.schema.fields, StructField(_CURVE_POSITION, LongType())]))


def _bounds(spark: SparkSession, job: ClusteringJob, number: int) -> tuple[pa.Array, ...]:
    """Return the lower bounds of the ranges of the columns in a group, from a sample of each of its slices. Runs a
    Spark job."""
    task_context, slices = job.task_context, job.groups[number].slices
    sample_size = max(1, task_context.order.sample_size // len(slices))

    def sample(one: FileSlice) -> bytes:
        read_context = replace(task_context.read_context, columns=task_context.order.roots)
        rows = read_slice(read_context, one)
        sampled = task_context.order.sample(rows, sample_size)
        return b"" if sampled is None else table_to_bytes(sampled)

    parts = [table_from_bytes(sampled) for sampled in run_in_tasks(spark, slices, sample) if sampled]
    if not parts:
        return tuple(pa.array([], pa.null()) for _ in task_context.order.columns)
    return task_context.order.bounds(pa.concat_tables(parts))
