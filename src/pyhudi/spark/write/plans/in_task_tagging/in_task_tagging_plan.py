"""Plans of upserts and deletes that are tagged in the write tasks: rows are routed by partition, and the task of a
partition looks up their locations.

Only row counts by partition are computed beforehand; not even these for micro-batches of a table without partitions,
unless they turn out to have too many rows for one task.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from pyhudi.config import options
from pyhudi.config.enums import IndexType, TableType
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.execution.slice_tasks import parallelism
from pyhudi.spark.execution.write_stages import run_in_task_tagging
from pyhudi.spark.indexes.record_index.record_index_update import KeyChanges
from pyhudi.spark.lookup.key_constraint import CheckedBatch
from pyhudi.spark.write.plans.in_task_tagging.partition_routing import route_by_partition, route_to_one_task
from pyhudi.spark.write.plans.in_task_tagging.partition_work import (
    MAX_PARTITION_BYTES,
    partition_shares,
    partition_sizes,
)
from pyhudi.spark.write.plans.write_plan import WritePlan, max_tasks, without_key_indexes
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.conflicts.timeline_snapshot import TimelineSnapshot
from pyhudi.write.planning.log_file_summary import LogContents
from pyhudi.write.tasks.in_task_tagging import InTaskTagging
from pyhudi.write.write_operations import type_name
from pyhudi.write.write_result import ChangeCounts


@dataclass(frozen=True, slots=True)
class InTaskTaggingPlan:
    """A `WritePlan`.

    Attributes:
        job: The job.
        rows: Its rows with keys, which are cheap to evaluate thanks to `cached`.
        partitions: The partitions of the rows (`partition_work`).
        lookup: Settings of the tasks.
        slices: The file groups at the time of planning.
        logs: Those that may get log files (LOG_SLICES_SCHEMA).
        snapshot: The timeline on which the plan is based.
        cached: The cached rows.
        plan_by_counts: Counts the rows, and returns the plan that replaces this one if there are more than
            ``lookup.max_rows``; None: they have been counted.
        checked: The rows, if they were checked.
    """

    job: WriteJob
    rows: DataFrame
    partitions: pa.Table
    lookup: InTaskTagging
    slices: pa.Table
    logs: pa.Table
    snapshot: TimelineSnapshot
    cached: CachedFrames
    plan_by_counts: Callable[[], WritePlan] | None = None
    checked: CheckedBatch | None = None

    @property
    def row_count(self) -> int | None:
        """Return the number of rows to write; None: they are not counted."""
        return None if self.plan_by_counts is not None else int(pc.sum(self.partitions["rows"]).as_py() or 0)

    @property
    def planned_changes(self) -> ChangeCounts | None:
        """Return the numbers of rows to write; None: they were not checked."""
        return None if self.checked is None else self.checked.changes

    def is_current(self, timeline: Timeline, metadata_partitions: Collection[str]) -> bool:
        """Return True if the timeline is unchanged, and still no index needs the individual keys."""
        return without_key_indexes(metadata_partitions) and TimelineSnapshot.from_timeline(timeline) == self.snapshot

    def inflight_metadata(self) -> CommitMetadata:
        """Return the kind of the write: the rows of each file group are not known before they are written."""
        return CommitMetadata(type_name(self.job.operation))

    @property
    def takes_one_task(self) -> bool:
        """True if one task writes all rows."""
        return bool(self.shares.num_rows == 1)

    @property
    def shares(self) -> pa.Table:
        """The tasks of each partition, as of `partition_shares`."""
        cores = write_cores(self.job, self.rows)
        return partition_shares(self.partitions, self.lookup.bases, self.job.config.table_type, cores)

    def write(self, instant: str) -> pa.Table:
        """Write the rows. Return the write stats. Runs a Spark job, and others if there are more rows than expected."""
        context = self.job.context(instant).with_log_slices(self.logs)
        if self.plan_by_counts is None:
            rows = route_by_partition(self.rows, self.shares, max_tasks(self.job))
        else:
            assert self.lookup.max_rows is not None
            rows = route_to_one_task(self.rows, self.lookup.max_rows)
        stats = run_in_task_tagging(rows, context, self.lookup)
        if stats is not None:
            return stats
        assert self.plan_by_counts is not None
        return self.plan_by_counts().write(instant)

    def key_changes(self, instant: str, stats: pa.Table, replaced: pa.Table | None) -> KeyChanges:  # noqa: ARG002
        """Return the changes of keys: only the stats, because no index needs more."""
        return KeyChanges(stats, self.slices, replaced)

    def release(self) -> None:
        """Free the cached rows."""
        self.cached.release()


def supports_in_task_tagging(
    job: WriteJob, slices: pa.Table, logged: LogContents, pending_clustering: pa.Table
) -> bool:
    """Return True if the tasks of a write can find the locations of its rows by the record keys of base files alone,
    each in its own partition, and the table has partitions that are small enough for it."""
    return (
        job.client is not None
        and job.operation.changes_records
        and job.opts.get_typed(options.INDEX_TYPE) in (IndexType.SIMPLE, IndexType.BLOOM)
        and job.opts.get_typed(options.INDEX_TASK_ROWS) > 0
        and job.config.populate_meta_fields
        and not job.spec.auto_keys
        and not job.opts.is_set(options.PARTIAL_UPDATE_SCHEMA)
        and not logged.new_keys
        and not pending_clustering.num_rows
        and without_key_indexes(job.client.config.metadata_partitions)
        and slices.num_rows > 0
        and _by_type(job.config, slices)
        and bool(pc.any(pc.less_equal(partition_sizes(slices)["size"], MAX_PARTITION_BYTES)).as_py())
    )


def write_cores(job: WriteJob, rows: DataFrame) -> int:
    """Return the number of tasks of a write that run at a time."""
    return min(max_tasks(job), parallelism(rows.sparkSession))


def _by_type(config: TableConfig, slices: pa.Table) -> bool:
    """Return True if a table of this type and version needs no workload profile in the inflight file.

    In version 6 names of log files have the instant of their slice: if markers are lost, only the profile identifies
    the files of a failed writer.
    """
    if config.table_type is TableType.MERGE_ON_READ:
        return config.version >= 8
    return not pc.sum(pc.list_value_length(slices["log_paths"])).as_py()
