"""Plan of a write to existing and new file groups, of rows that are tagged with them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config.enums import MergeMode, Operation
from pyhudi.index.record_index import RecordIndex
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.execution.write_stages import run_upsert
from pyhudi.spark.indexes.record_index.record_index_update import KeyChanges
from pyhudi.spark.keys.deduplication import is_delete
from pyhudi.spark.write.plans.file_groups.planned_keys import PlannedKeys
from pyhudi.spark.write.plans.file_groups.row_routing import route
from pyhudi.spark.write.plans.file_groups.tagged_batch import TaggedBatch
from pyhudi.spark.write.plans.write_plan import max_tasks, without_key_indexes
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.conflicts.timeline_snapshot import TimelineSnapshot
from pyhudi.write.location_columns import FILE_ID, IS_DELETE
from pyhudi.write.planning.workload_profile import WorkloadProfile, profile_stats
from pyhudi.write.rows.keyed_rows import KeyedWrite
from pyhudi.write.write_operations import type_name
from pyhudi.write.write_result import ChangeCounts


@dataclass(frozen=True, slots=True)
class FileGroupPlan:
    """A `WritePlan`.

    Attributes:
        job: The job.
        batch: Its rows, which are cheap to evaluate thanks to `cached`.
        workload: Numbers of rows to write to each file group.
        slices: The file groups at the time of planning.
        logs: Those that get log files (LOG_SLICES_SCHEMA).
        snapshot: The timeline on which the plan is based.
        cached: The cached rows.
        records: The record index, if new keys were looked up there or in all files.
    """

    job: WriteJob
    batch: TaggedBatch
    workload: WorkloadProfile
    slices: pa.Table
    logs: pa.Table
    snapshot: TimelineSnapshot
    cached: CachedFrames
    records: RecordIndex | None

    @property
    def row_count(self) -> int | None:
        """Return the number of rows to write; None: they are not counted."""
        return int(pc.sum(self.batch.counts["rows"]).as_py() or 0) if self.batch.is_counted else None

    @property
    def planned_changes(self) -> ChangeCounts | None:
        """Return the numbers of the rows that a statement changes; None: they are not counted."""
        return self.batch.changes

    def is_current(self, timeline: Timeline, metadata_partitions: Collection[str]) -> bool:
        """Return True if the timeline is unchanged, and the rows are cached if indexes need their keys."""
        return TimelineSnapshot.from_timeline(timeline) == self.snapshot and (
            self.batch.is_counted or without_key_indexes(metadata_partitions)
        )

    def inflight_metadata(self) -> CommitMetadata:
        """Return the rows of each file group."""
        stats = profile_stats(self.workload)
        return CommitMetadata(type_name(self.job.operation), stats if self.batch.is_counted else stats.slice(0, 0))

    def write(self, instant: str) -> pa.Table:
        """Write the rows. Return the write stats. Runs a Spark job."""
        context = self.job.context(instant).with_log_slices(self.logs)
        if self.batch.by_key:
            # the index locates file groups, not rows in them
            context = replace(context, merging=replace(context.merging, keyed=KeyedWrite()))
        routed = route(self.batch.rows, self.workload, max_tasks(self.job))
        return run_upsert(routed, context, adaptive=self.batch.adaptive)

    def key_changes(self, instant: str, stats: pa.Table, replaced: pa.Table | None) -> KeyChanges:  # noqa: ARG002
        """Return the changes of keys by the write."""
        looked_up = self.records is not None
        planned = None if self.batch.index_locations is None else PlannedKeys(self.batch.index_locations, self.workload)
        return KeyChanges(
            stats,
            self.slices,
            replaced,
            self._deleted,
            looked_up=looked_up,
            inconsistencies=self.batch.inconsistencies,
            planned=planned,
        )

    def release(self) -> None:
        """Free the cached rows."""
        self.cached.release()

    def _deleted(self) -> DataFrame | None:
        """Return the keys of records that are certainly deleted in their partitions."""
        locations = self.batch.index_locations
        if IS_DELETE not in self.batch.rows.columns or (locations is not None and not locations.deletes):
            return None  # none is
        is_deleted = F.col(IS_DELETE) & F.col(FILE_ID).isNotNull()
        job, mode = self.job, self.job.merging.mode
        by_operation = job.changes is None and job.operation is Operation.DELETE
        if mode is not MergeMode.COMMIT_TIME_ORDERING and not by_operation:
            # The stored record may win against a delete. It does not win against one of a statement, which has its
            # ordering values, nor, with a global index, against a row that has become a delete, because it has won
            # already: its record moves to another partition. Rows that new values mark as deletes are neither.
            stored_may_win = not job.global_keys if job.changes is None else mode is MergeMode.CUSTOM
            if stored_may_win:
                return None
            is_deleted &= ~is_delete(self.batch.rows.schema, job.merging)
        return self.batch.rows.where(is_deleted).select(RECORD_KEY, PARTITION_PATH)
