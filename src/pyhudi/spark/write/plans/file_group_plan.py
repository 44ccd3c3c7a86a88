"""Plans writes to existing and new file groups, from the tagged rows of a job."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import DuplicatePolicy, MergeMode, Operation
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.column_names import quoted
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.execution.slice_tasks import parallelism
from pyhudi.spark.execution.write_stages import run_upsert
from pyhudi.spark.indexes.record_index.record_index import RecordIndex
from pyhudi.spark.indexes.record_index.record_index_update import KeyChanges
from pyhudi.spark.keys.deduplication import dedupe_in_tasks, is_delete, mark_deletes, with_batch_positions
from pyhudi.spark.keys.key_generator import with_keys
from pyhudi.spark.lookup.record_index_lookup import BatchLocations
from pyhudi.spark.lookup.tagging import BatchDeduplication, Tagged
from pyhudi.spark.write.dml_commit import NewRecords, RowChanges, RowOrigin
from pyhudi.spark.write.plans.in_task_tagging_plan import (
    UNCOUNTED_ROWS,
    InTaskTaggingPlan,
    base_files,
    count_partitions,
    is_cheaper,
    only_partition,
    supports_in_task_tagging,
    without_key_indexes,
    write_cores,
)
from pyhudi.spark.write.plans.planned_keys import PlannedKeys
from pyhudi.spark.write.plans.row_routing import count_rows, route
from pyhudi.spark.write.plans.row_tagging import keys_only, record_index_of, refuse_stored_keys, tag_rows
from pyhudi.spark.write.plans.table_state import TableState
from pyhudi.spark.write.plans.write_plan import most_tasks
from pyhudi.spark.write.row_change_locations import keyed_changes, located_changes, read_groups, with_base_paths
from pyhudi.spark.write.stored_keys import with_stored_keys
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.conflicts.timeline_snapshot import TimelineSnapshot
from pyhudi.write.location_columns import FILE_ID, IS_DELETE, ROW_POSITION
from pyhudi.write.planning.log_file_summary import LogContents
from pyhudi.write.planning.workload_profile import WorkloadProfile, profile_stats
from pyhudi.write.rows.keyed_rows import KeyedWrite
from pyhudi.write.settings.log_settings import appended_groups
from pyhudi.write.tasks.in_task_tagging import InTaskTagging
from pyhudi.write.write_operations import type_name
from pyhudi.write.write_result import ChangeCounts

_GROUPS_PER_CORE = 4
"""File groups for each core up to which rows of a statement need no count: tasks without rows cost less."""


@dataclass(frozen=True, slots=True)
class TaggedBatch:
    """Tagged rows of a batch, and the file groups to which they go.

    Attributes:
        rows: The rows.
        counts: Their numbers by file group (COUNTS_SCHEMA).
        by_key: Rows have file groups, but no positions.
        index_locations: Locations of all keys in the record index, if no others are needed.
        is_counted: Each file group of `counts` has as many rows; False: it may have any number, or none.
        adaptive: The plan of the rows may improve while it is executed.
        inconsistencies: Contradictions found in the record index.
        changes: Numbers of the rows that a statement changes; None: not counted.
    """

    rows: DataFrame
    counts: pa.Table
    by_key: bool
    index_locations: BatchLocations | None = None
    is_counted: bool = True
    adaptive: bool = True
    inconsistencies: tuple[str, ...] = ()
    changes: ChangeCounts | None = None


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
    records: RecordIndex | None = None

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
        routed = route(self.batch.rows, self.workload, most_tasks(self.job))
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
        job = self.job
        if job.changes is not None:
            # deletes have the ordering values of the stored records, but not those by new values, which may lose
            if job.merging.mode is MergeMode.CUSTOM:
                return None
            if job.merging.mode is not MergeMode.COMMIT_TIME_ORDERING:
                is_deleted &= ~is_delete(self.batch.rows.schema, job.merging)
            return self.batch.rows.where(is_deleted).select(RECORD_KEY, PARTITION_PATH)
        if job.operation is not Operation.DELETE and job.merging.mode is not MergeMode.COMMIT_TIME_ORDERING:
            if not job.global_keys:
                return None
            # where ordering values count, the stored record may win against a delete; but a row that has become one
            # has won already: its record moves to another partition
            is_deleted &= ~is_delete(self.batch.rows.schema, job.merging)
        return self.batch.rows.where(is_deleted).select(RECORD_KEY, PARTITION_PATH)


def plan_file_groups(
    job: WriteJob, active: ActiveTimeline | None, metadata_partitions: Collection[str], instant: str = ""
) -> FileGroupPlan | InTaskTaggingPlan:
    """Key the rows of a job, and merge, tag and count them, unless the write tasks do so (`in_task_tagging_plan`),
    which requires that no partition of the metadata table needs the individual keys. Runs Spark jobs; rows stay cached
    until the plan is released.

    ``active`` is the timeline on which the plan is based, with its file slices and pending table services (None: there
    is no table yet); ``instant`` is needed for generated keys.

    Raises:
        RecordKeyError: Keys are missing, or exist already and duplicates are not allowed.
        NonRetryableConflictError: A file group to be changed has a pending clustering.
        UnsupportedTableError: A file group of a copy-on-write table has log files.
        KeyConstraintError: The rows violate the key constraint of the job.
    """
    table = TableState.load(job, active)
    cached = CachedFrames()
    try:
        rows = _keyed(job, instant)
        if job.changes is None:
            if without_key_indexes(metadata_partitions) and supports_in_task_tagging(
                job, table.slices, table.logged, table.clustering
            ):
                rows = with_batch_positions(rows) if job.combines else rows
                return _plan_in_tasks(table, rows, cached, metadata_partitions)
            if job.key_constraint is not None:
                rows = cached.add(rows)
                checked = ChangeCounts(sum(count for _, count in job.key_constraint.count_partitions(rows)))
                return _plan_by_counts(table, rows, cached, metadata_partitions, checked)
        return _plan_by_counts(table, rows, cached, metadata_partitions)
    except BaseException:
        cached.release()
        raise


def _plan_by_counts(
    table: TableState,
    rows: DataFrame,
    cached: CachedFrames,
    metadata_partitions: Collection[str],
    checked: ChangeCounts | None = None,
) -> FileGroupPlan:
    """Tag keyed rows, and count them by file group. ``checked``: number of the rows, if their keys were checked."""
    job = table.job
    records = record_index_of(job)
    if job.changes is not None and job.changes.located:
        batch = _count_located(table, job.changes, rows, cached, records, metadata_partitions)
    else:
        batch = replace(_count_tagged(table, rows, cached, records), changes=checked)
    _check_duplicates(job, batch.counts)
    workload = table.workload(batch.counts)
    logs = table.log_slices(appended_groups(workload))
    return FileGroupPlan(job, batch, workload, table.slices, logs, table.snapshot, cached, records)


def _plan_in_tasks(
    table: TableState, rows: DataFrame, cached: CachedFrames, metadata_partitions: Collection[str]
) -> FileGroupPlan | InTaskTaggingPlan:
    """Have rows tagged in tasks, unless this takes longer. They are counted first, except for micro-batches that one
    task writes."""
    job = table.job
    most = job.opts.get_typed(options.INDEX_TASK_ROWS)
    cores, kind = write_cores(job, rows), job.config.table_type

    def counted(rows: DataFrame) -> FileGroupPlan | InTaskTaggingPlan:
        partitions = count_partitions(rows, table.slices, job.key_constraint)
        if is_cheaper(partitions, base_files(table.slices, partitions), kind, cores, most):
            return _in_task_tagging(table, rows, partitions, cached)
        checked = None if job.key_constraint is None else ChangeCounts(pc.sum(partitions["rows"]).as_py() or 0)
        return _plan_by_counts(table, rows, cached, metadata_partitions, checked)

    if job.cached and not job.spec.partition_fields and job.key_constraint is None:
        alone = only_partition(table.slices)
        plan = _in_task_tagging(table, rows, alone, cached, UNCOUNTED_ROWS)
        if is_cheaper(alone, plan.lookup.bases, kind, cores, most) and plan.takes_one_task:
            return replace(plan, plan_by_counts=lambda: counted(rows))
    return counted(cached.add(rows))


def _in_task_tagging(
    table: TableState, rows: DataFrame, partitions: pa.Table, cached: CachedFrames, most_rows: int | None = None
) -> InTaskTaggingPlan:
    """A plan whose tasks look keys up themselves."""
    job = table.job
    bases = base_files(table.slices, partitions)
    deletes = job.operation is Operation.DELETE
    dedupes = dedupe_in_tasks(job.merging, hard_deletes=deletes) if job.combines else None
    lookup = InTaskTagging(bases, table.placement, dedupes, most_rows)
    logs = table.log_slices(bases)
    return InTaskTaggingPlan(job, rows, partitions, lookup, table.slices, logs, table.snapshot, cached)


def _count_tagged(table: TableState, rows: DataFrame, cached: CachedFrames, records: RecordIndex | None) -> TaggedBatch:
    """Tag rows by their keys, and count them."""
    tagged = tag_rows(table, rows, cached, records)
    counts = count_rows(tagged.rows)[0] if tagged.counts is None else tagged.counts
    by_key = records is not None and table.job.duplicate_policy is DuplicatePolicy.NONE
    return TaggedBatch(
        tagged.rows,
        counts,
        by_key=by_key,
        index_locations=tagged.index_locations,
        inconsistencies=tagged.inconsistencies,
    )


def _count_located(
    table: TableState,
    changes: RowChanges,
    rows: DataFrame,
    cached: CachedFrames,
    records: RecordIndex | None,
    metadata_partitions: Collection[str],
) -> TaggedBatch:
    """Tag rows with the file groups from which they were read, and count them if necessary."""
    bases = _bases_to_rewrite(table, changes, metadata_partitions)
    rows = rows if bases is not None or changes.origin is RowOrigin.CACHED else cached.add(rows)
    tagged = _tag_located(table, changes, rows, cached, records)
    # the rows are then not joined with anything
    no_lookup = not _needs_lookup(table.job, changes)
    simple = no_lookup and (bases is None or changes.origin is not RowOrigin.QUERY)
    counted: ChangeCounts | None = None
    if bases is None:
        counts, counted = count_rows(tagged.rows, counts_changes=table.job.counts_changes, adaptive=not simple)
    else:
        counts = read_groups(bases)
    counts = with_base_paths(counts, table.slices, changes.bases)
    # without positions only the file groups are known
    by_key = records is not None or changes.bases is None
    return TaggedBatch(
        *(tagged.rows, counts, by_key),
        is_counted=bases is None,
        adaptive=not simple,
        inconsistencies=tagged.inconsistencies,
        changes=counted,
    )


def _keyed(job: WriteJob, instant: str) -> DataFrame:
    """Return the rows with keys and delete marks."""
    if job.changes is not None:
        return keyed_changes(job, instant)
    rows = with_stored_keys(job, instant) if job.keys.stored else with_keys(job.df, job.spec, instant)
    deletes = job.operation is Operation.DELETE
    if deletes:
        rows = keys_only(rows, job.spec)
    return mark_deletes(rows, job.merging, every_row=deletes)


def _bases_to_rewrite(table: TableState, changes: RowChanges, metadata_partitions: Collection[str]) -> pa.Table | None:
    """Return the base files (`RowLocations.bases`) that a job may change, if its rows need not be counted: the files
    are few, there are no new records to place, and no index of keys to update."""
    adds = changes.new_records is not NewRecords.NONE
    if changes.bases is None or adds or table.clustering.num_rows or table.logged != LogContents():
        return None
    few = changes.bases.num_rows <= _GROUPS_PER_CORE * parallelism(table.job.df.sparkSession)
    return changes.bases if few and without_key_indexes(metadata_partitions) else None


def _tag_located(
    table: TableState, changes: RowChanges, rows: DataFrame, cached: CachedFrames, records: RecordIndex | None
) -> Tagged:
    """Return changes of rows with their locations. New records are looked up unless their keys are known to be new."""
    job = table.job
    if not _needs_lookup(job, changes):
        return Tagged(located_changes(rows))
    table_columns = [name for name in rows.columns if name not in (FILE_ID, ROW_POSITION)]
    located = located_changes(rows.where(F.col(FILE_ID).isNotNull()))
    added = rows.where(F.col(FILE_ID).isNull()).select(*(quoted([name]) for name in table_columns))
    if _are_new(job, changes):
        added = cached.add(added)
        untagged = BatchDeduplication(job.spec, job.merging, job.global_keys).untagged(added, cached.add)
        return Tagged(located.unionByName(untagged))
    tagged = tag_rows(table, added, cached, records)
    return Tagged(located.unionByName(tagged.rows), inconsistencies=tagged.inconsistencies)


def _needs_lookup(job: WriteJob, changes: RowChanges) -> bool:
    """Return True if new records have to be compared with each other or with the keys of the table."""
    if changes.new_records is NewRecords.NONE or job.operation is Operation.DELETE:
        return False
    distinct = job.spec.auto_keys or changes.new_records.have_distinct_keys or not job.combines
    return not (_are_new(job, changes) and distinct)


def _are_new(job: WriteJob, changes: RowChanges) -> bool:
    """Return True if the table does not have the keys of new records."""
    return changes.new_records.have_new_keys or job.spec.auto_keys


def _check_duplicates(job: WriteJob, counts: pa.Table) -> None:
    if job.duplicate_policy is DuplicatePolicy.FAIL:
        refuse_stored_keys(pc.sum(counts.filter(pc.is_valid(counts["file_id"]))["rows"]).as_py() or 0)
