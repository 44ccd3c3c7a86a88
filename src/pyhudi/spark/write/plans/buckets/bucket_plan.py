"""Plan of writes to tables with the bucket index: the key determines the bucket, and a bucket is one file group.

No lookup and no count is required before rows are sent to the tasks that write their file groups: one pass
over the input. Where a base file is rewritten, the task finds the updated rows by their keys; log files
need no locations. The drawback is that invalid keys are found only during the write, which is then rolled back.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import DuplicatePolicy, IndexType, MergeMode, Operation, TableType
from pyhudi.index.bucket_counts import store_counts, store_first_counts
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.index.consistent_hashing import store_first_metadata
from pyhudi.merge.modes.delete_marker import IS_DELETED
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.execution.write_stages import run_upsert
from pyhudi.spark.indexes.record_index.record_index_update import KeyChanges
from pyhudi.spark.keys.deduplication import dedupe_in_tasks, with_batch_positions
from pyhudi.spark.keys.key_generator import with_keys
from pyhudi.spark.lookup.key_lookup import KeyLookup
from pyhudi.spark.lookup.tagging import tag, untagged
from pyhudi.spark.write.plans.buckets.bucket_locations import bucket_locations
from pyhudi.spark.write.plans.buckets.bucket_routing import cluster_by_file_group, no_position, route_to_buckets
from pyhudi.spark.write.plans.buckets.consistent_bucket_routing import (
    ConsistentBucketLocations,
    check_in_view,
    created_buckets,
    with_bucket_locations,
)
from pyhudi.spark.write.plans.row_preparation import refuse_stored_keys, with_delete_marks
from pyhudi.spark.write.row_change_locations import keyed_changes
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.table.config.merge_settings import DELETE_FIELD
from pyhudi.table.view.file_group_state import replaced_groups as groups_out_of_view
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.table.view.pending_file_groups import pending_compaction_groups
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.concurrency_mode import is_non_blocking
from pyhudi.transaction.conflicts.timeline_snapshot import TimelineSnapshot
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, IS_DELETE, ROW_POSITION
from pyhudi.write.rows.keyed_rows import KeyedWrite
from pyhudi.write.settings.log_settings import log_slices
from pyhudi.write.settings.write_context import WriteContext
from pyhudi.write.write_operations import REPLACING, type_name

_UNLIMITED = 1 << 60


@dataclass(frozen=True, slots=True)
class BucketPlan:
    """A `WritePlan`.

    Attributes:
        job: The job.
        bucketing: Distribution of keys over buckets.
        slices: The file groups on which the plan is based (SLICE_SCHEMA).
        written: Those of them that rows are merged into.
        snapshot: The timeline on which the plan is based.
        cached: The cached rows.
        locations: Locations of keys by consistent hashing; None: they follow from the key alone.
        out_of_view: File groups that have been replaced, and must not be written; None: none can be.
        logs: File groups that may get log files (LOG_SLICES_SCHEMA); None: of a copy-on-write table.
        indexed: A record index is updated with the keys that are deleted.
    """

    job: WriteJob
    bucketing: BucketIndex
    slices: pa.Table
    written: pa.Table
    snapshot: TimelineSnapshot
    cached: CachedFrames
    locations: ConsistentBucketLocations | None
    out_of_view: pa.Table | None
    logs: pa.Table | None
    indexed: bool

    @property
    def row_count(self) -> None:
        """Return None: rows are not counted before they are written."""

    @property
    def planned_changes(self) -> None:
        """Return None, for the same reason."""

    def is_current(self, timeline: Timeline, metadata_partitions: Collection[str]) -> bool:
        """Return True if the plan is valid on this timeline and no record index was created or dropped."""
        return (RECORD_INDEX in metadata_partitions) == self.indexed and TimelineSnapshot.from_timeline(
            timeline
        ) == self.snapshot

    def inflight_metadata(self) -> CommitMetadata | None:
        """Return the content of the inflight file. In a version 6 table, it lists for a rollback without markers the
        file groups in which log files may have new blocks: all of them, as rows are not counted before they are
        written."""
        job, slices = self.job, self.slices
        if job.operation is Operation.BULK_INSERT:
            return None
        if job.config.version >= 8 or job.config.table_type is not TableType.MERGE_ON_READ:
            return CommitMetadata(type_name(job.operation))
        any_row = pa.repeat(pa.scalar(1, pa.int64()), slices.num_rows)
        columns = [slices["partition"], slices["file_id"], slices["base_instant"], any_row]
        names = ["partitionPath", "fileId", "prevCommit", "numUpdateWrites"]
        return CommitMetadata(type_name(job.operation), write_stats(pa.table(columns, names=names)))

    def write(self, instant: str) -> pa.Table:
        """Write the rows, to existing file groups where possible; return the write stats. Runs Spark jobs."""
        job = self.job
        rows = _prepared(job, instant, self.written, self.cached)
        if job.combines:
            rows = with_batch_positions(rows)
        if self.locations is not None:
            located = with_bucket_locations(rows, self.locations).withColumn(ROW_POSITION, no_position())
            routed = cluster_by_file_group(located, job)
        else:
            routed = route_to_buckets(rows, job, self.bucketing, self.written)
        stats = run_upsert(routed, _context(job, instant, self.logs))
        if self.out_of_view is not None:
            check_in_view(stats, self.out_of_view)
        if self.locations is not None:
            store_first_metadata(job.storage, created_buckets(self.locations, stats))
        return stats

    def key_changes(self, instant: str, stats: pa.Table, replaced: pa.Table | None) -> KeyChanges:
        """Return the changes of keys by the write, which has looked up none of them."""
        return KeyChanges(stats, self.slices, replaced, partial(self._deleted, instant), bucketed=True)

    def release(self) -> None:
        """Release the cached rows."""
        self.cached.release()

    def _deleted(self, instant: str) -> DataFrame | None:
        """Return the rows that certainly delete their keys, whether these exist or not."""
        if not _deletes_for_certain(self.job):
            return None
        return _prepared(self.job, instant, self.slices, self.cached).where(F.col(IS_DELETE))


def plan_buckets(job: WriteJob, active: ActiveTimeline | None, metadata_partitions: Collection[str]) -> BucketPlan:
    """Plan a write to the file groups of buckets. ``active`` is the timeline that the plan is based on (None if there
    is no table yet).

    Raises:
        UnsupportedTableError: The table was written with another index, has log files although it must not, or
            consistent hashing does not support the operation.
        ConfigError: The table was written with other settings of the bucket index.
    """
    slices, timeline = SLICE_SCHEMA.empty_table(), None
    if active is not None:
        timeline, slices = active.timeline, job.slices(active)
    assert job.bucketing is not None
    bucketing = job.bucketing
    if timeline is not None and job.operation is not Operation.BUCKET_RESCALE:
        # the job has the numbers with which it was prepared, which others may have changed since
        of_options = BucketIndex.from_options(job.config, job.opts)
        assert of_options is not None
        bucketing = of_options.with_stored_counts(job.storage, timeline)
    locations = bucket_locations(job, bucketing, slices, timeline)
    written = slices.slice(0, 0) if job.operation in REPLACING else slices
    out_of_view = logs = None
    if active is not None:
        if locations is not None or is_non_blocking(job.opts):
            out_of_view = groups_out_of_view(active, active.timeline)
        if job.config.table_type is TableType.MERGE_ON_READ:
            # as of the same instant as the slices: a compaction that has completed since is in neither
            pending = pending_compaction_groups(active)
            logs = log_slices(
                written,
                written,
                pending,
                named_by_slice=job.config.version < 8,
                with_names=job.config.cdc_enabled,
            )
    cached, indexed = CachedFrames(), RECORD_INDEX in metadata_partitions
    if indexed and _deletes_for_certain(job):
        job = replace(job, df=cached.add(job.df))  # the index must be updated with the keys of exactly these rows
    snapshot = TimelineSnapshot.from_timeline(timeline)
    return BucketPlan(job, bucketing, slices, written, snapshot, cached, locations, out_of_view, logs, indexed)


def store_bucket_counts(job: WriteJob, instant: str) -> None:
    """Store the numbers of buckets in the table: those of a rescaling with its instant, others if they differ between
    partitions and are not stored yet."""
    if job.bucketing is None:
        return
    if job.operation is Operation.BUCKET_RESCALE:
        store_counts(job.storage, job.bucketing.counts, instant)
    elif job.bucketing.counts.rules:
        store_first_counts(job.storage, job.bucketing.counts)


def _prepared(job: WriteJob, instant: str, slices: pa.Table, cached: CachedFrames) -> DataFrame:
    """Return the rows with keys and delete marks, without rows that must not be inserted again, for which they are
    looked up, and cached."""
    if job.changes is not None:
        return keyed_changes(job, instant)
    rows = with_delete_marks(job, with_keys(job.df, job.spec, instant))
    policy = job.duplicate_policy
    if policy is not DuplicatePolicy.NONE and job.client is not None and slices.num_rows:
        opts = job.opts.merged({options.INDEX_TYPE.key: IndexType.SIMPLE})
        lookup = KeyLookup(job.client, job.spec, job.merging, opts, merge_logs=True)
        tagged = tag(cached.add(rows), slices, lookup, persist=cached.add).rows
        if policy is DuplicatePolicy.FAIL:
            refuse_stored_keys(tagged.where(F.col(FILE_ID).isNotNull()).count())
        return tagged.where(F.col(FILE_ID).isNull()).drop(FILE_ID, BASE_PATH, ROW_POSITION)
    if job.operation.changes_records:
        return rows
    return untagged(rows).drop(FILE_ID, BASE_PATH, ROW_POSITION)


def _context(job: WriteJob, instant: str, logs: pa.Table | None) -> WriteContext:
    deletes = job.operation is Operation.DELETE
    duplicates = job.operation in (Operation.INSERT, Operation.BULK_INSERT) and job.opts.get_typed(
        options.MERGE_ALLOW_DUPLICATE_ON_INSERTS
    )
    keyed = KeyedWrite(
        match=not duplicates,
        dedupe=dedupe_in_tasks(job.merging, hard_deletes=deletes) if job.combines else None,
    )
    context = job.context(instant)
    if logs is not None:
        context = context.with_log_slices(logs)
    if context.logs is not None and is_non_blocking(job.opts) and job.operation is not Operation.BULK_INSERT:
        context = replace(context, logs=replace(context.logs, opens_groups=True))
    # a bucket is one file group, of any size
    return replace(context, merging=replace(context.merging, keyed=keyed)).with_file_size(_UNLIMITED)


def _deletes_for_certain(job: WriteJob) -> bool:
    """Return True if delete rows certainly delete their keys: with ordering values, a delete may be older than the
    stored row."""
    if job.changes is not None:
        return True
    marked = IS_DELETED in job.df.columns or DELETE_FIELD in job.merging.properties
    certain = marked and job.merging.mode is MergeMode.COMMIT_TIME_ORDERING
    return job.operation is Operation.DELETE or (certain and job.operation is Operation.UPSERT)
