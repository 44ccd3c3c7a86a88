"""Plans writes that go by file group: the tagged rows of a job, and what is to be written where."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import DuplicatePolicy, IndexType, MergeMode, Operation, TableType
from pyhudi.errors import ConflictError, RecordKeyError
from pyhudi.keygen import KeySpec
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.execution.cached_frames import Cached
from pyhudi.spark.execution.slice_tasks import parallelism
from pyhudi.spark.execution.write_stages import run_upsert
from pyhudi.spark.indexes.record_index.record_index_reader import RecordIndex
from pyhudi.spark.indexes.record_index.record_index_update import KeyChanges
from pyhudi.spark.keys.deduplication import dedupe_in_tasks, is_delete, mark_deletes, numbered
from pyhudi.spark.keys.key_generator import with_keys
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.lookup.record_index_lookup import BatchLocations
from pyhudi.spark.lookup.tagging import KeyLookup, Tagged, tag, untagged_batch
from pyhudi.spark.write.plans.partition_upsert_plan import (
    PartitionUpsertPlan,
    base_files,
    count_partitions,
    is_cheaper,
    supports_partition_lookup,
    without_key_indexes,
)
from pyhudi.spark.write.plans.planned_keys import PlannedKeys
from pyhudi.spark.write.plans.row_routing import count_rows, route
from pyhudi.spark.write.plans.write_plan import most_tasks
from pyhudi.spark.write.row_changes import keyed_changes, placed_changes, read_groups, with_base_paths
from pyhudi.spark.write.stored_keys import with_stored_keys
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.table.view.file_group_state import GROUP_INSTANT_SCHEMA
from pyhudi.table.view.file_system_view import SLICE_SCHEMA
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.conflicts.clustering_updates import allows_updates
from pyhudi.transaction.conflicts.conflict_resolution import (
    pending_clustering_groups,
    pending_compaction_groups,
)
from pyhudi.transaction.conflicts.plan_basis import PlanBasis
from pyhudi.write.location_columns import DELETE, FILE_ID, ROW
from pyhudi.write.planning.existing_files import LogContents
from pyhudi.write.planning.small_files import SMALL_FILES_SCHEMA, average_record_size, smallest_files
from pyhudi.write.planning.workload_profile import Workload, plan_workload, profile_stats
from pyhudi.write.rows.keyed_rows import KeyedWrite
from pyhudi.write.settings.log_settings import LOG_SLICES_SCHEMA, appended_groups, log_slices
from pyhudi.write.settings.write_settings import sizing
from pyhudi.write.tasks.partition_upsert import PartitionLookup
from pyhudi.write.write_checks import check_log_free
from pyhudi.write.write_operations import type_name

_SIZE_HISTORY = 5
"""Commits that are asked for the size of records, as the original does."""
_GROUPS_PER_CORE = 4
"""File groups for each core up to which rows of a statement need no count: tasks without rows cost less."""
_UPDATES = frozenset({Operation.UPSERT, Operation.DELETE})
_FILLS = frozenset({Operation.UPSERT, Operation.INSERT})

RECORD_INDEXES = frozenset({IndexType.RECORD_INDEX, IndexType.GLOBAL_RECORD_LEVEL_INDEX, IndexType.RECORD_LEVEL_INDEX})
"""Indexes that are a partition of the metadata table."""
_STAY = {
    options.SIMPLE_UPDATE_PARTITION_PATH.key: False,
    options.BLOOM_UPDATE_PARTITION_PATH.key: False,
    options.RECORD_INDEX_UPDATE_PARTITION_PATH.key: False,
}


@dataclass(frozen=True, slots=True)
class FileGroupPlan:
    """A `WritePlan`. ``rows`` are tagged, and cheap to evaluate thanks to ``cached``; ``slices`` are the file groups as
    the plan saw them, ``logs`` (LOG_SLICES_SCHEMA) those that get log files; ``basis`` is what the plan was made on;
    ``records``: the record index in which keys were looked up; ``by_key``: rows have file groups, but no positions;
    ``located``: the locations of all keys in the index, if that is all that had to be known; ``counted``: the workload
    has numbers of rows, and rows for each file group.
    """

    job: WriteJob
    rows: DataFrame
    workload: Workload
    slices: pa.Table
    logs: pa.Table
    basis: PlanBasis
    cached: Cached
    records: RecordIndex | None = None
    by_key: bool = False
    located: BatchLocations | None = None
    counted: bool = True

    def holds(self, timeline: Timeline, metadata_partitions: Collection[str]) -> bool:
        """Return whether the timeline says the same, and the rows are cached for indexes of keys."""
        return PlanBasis.of(timeline) == self.basis and (self.counted or without_key_indexes(metadata_partitions))

    def inflight_metadata(self) -> CommitMetadata:
        """Return the rows of each file group."""
        stats = profile_stats(self.workload)
        return CommitMetadata(type_name(self.job.operation), stats if self.counted else stats.slice(0, 0))

    def write(self, instant: str) -> pa.Table:
        """Write the rows; returns the write stats. Runs a Spark job."""
        context = self.job.context(instant).with_log_slices(self.logs)
        if self.by_key:
            context = replace(context, keyed=KeyedWrite())  # the index tells file groups, not rows in them
        return run_upsert(route(self.rows, self.workload, most_tasks(self.job)), context)

    def key_changes(self, instant: str, stats: pa.Table, replaced: pa.Table | None) -> KeyChanges:  # noqa: ARG002
        """Return what the write has done to keys."""
        looked_up = self.records is not None
        doubts = () if self.records is None else self.records.doubts
        planned = None if self.located is None else PlannedKeys(self.located, self.workload)
        return KeyChanges(
            stats, self.slices, replaced, self._deleted, looked_up=looked_up, doubts=doubts, planned=planned
        )

    def release(self) -> None:
        """Free the cached rows."""
        self.cached.release()

    def _deleted(self) -> DataFrame | None:
        """The keys of records that are certainly gone from their partitions."""
        if DELETE not in self.rows.columns or (self.located is not None and not self.located.deletes):
            return None  # none is
        gone = F.col(DELETE) & F.col(FILE_ID).isNotNull()
        job = self.job
        if job.changes is not None:
            return self.rows.where(gone).select(
                RECORD_KEY, PARTITION_PATH
            )  # with ordering values of the stored records
        if job.operation is not Operation.DELETE and job.merging.mode is not MergeMode.COMMIT_TIME_ORDERING:
            if job.merging.mode is not MergeMode.EVENT_TIME_ORDERING or not job.global_keys:
                return None
            # where ordering values count, the stored record may win against a delete; but a row that has become one
            # has won already: its record moves to another partition
            gone &= ~is_delete(self.rows.schema, job.merging)
        return self.rows.where(gone).select(RECORD_KEY, PARTITION_PATH)


def plan_file_groups(
    job: WriteJob, active: ActiveTimeline | None, metadata_partitions: Collection[str], instant: str = ""
) -> FileGroupPlan | PartitionUpsertPlan:
    """Key the rows of a job, and merge, tag and count them unless the tasks that write them can do that, as they may
    where no partition of the metadata table has to be told about single keys. Runs Spark jobs; rows stay cached until
    the plan is released.

    ``active`` is what the plan is made on, file slices and pending table services alike (None: there is no table yet);
    ``instant`` is needed for generated keys.

    Raises:
        RecordKeyError: keys are missing, or there already although duplicates are to fail.
        ConflictError: a file group to be changed waits for its clustering.
        UnsupportedTableError: a file group of a copy-on-write table has log files.
        InexactKeysError: the job wants exact keys, and has others.
    """
    slices, clustering, compaction = SLICE_SCHEMA.empty_table(), *2 * [GROUP_INSTANT_SCHEMA.empty_table()]
    merge_on_read = job.config.table_type is TableType.MERGE_ON_READ
    logged = LogContents()
    basis = PlanBasis.of(None if active is None else active.timeline)
    if active is not None:
        slices = job.slices(active)
        clustering, compaction = pending_clustering_groups(active), pending_compaction_groups(active)
        logged = _log_contents(job, active, slices)
    busy = pa.concat_tables([clustering, compaction])
    refused = clustering.slice(0, 0) if allows_updates(job.opts) else clustering
    files = sizing(job.opts, job.config.base_file_format)
    small = SMALL_FILES_SCHEMA.empty_table()
    # a record with some of its columns cannot be merged with others into a base file
    partial = job.opts.is_set(options.PARTIAL_UPDATE_SCHEMA)
    if job.operation in _FILLS and files.small_file_limit and not partial:
        small = _small_files(slices, busy, files.small_file_limit)
        if merge_on_read:
            small = smallest_files(small, job.opts.get_typed(options.SMALL_FILE_GROUP_CANDIDATES))
    cached = Cached()
    try:
        records = record_index_of(job)
        rows = _keyed(job, instant)
        record_size = average_record_size(_write_history(active), files)
        ratio = job.opts.get_typed(options.FILL_RATIO)
        checked = False
        deletes = job.operation is Operation.DELETE
        if (
            without_key_indexes(metadata_partitions)
            and job.changes is None
            and supports_partition_lookup(job, slices, logged, clustering)
        ):
            rows = cached.add(numbered(rows) if combines(job) else rows)
            partitions = count_partitions(rows, slices, job.exact_keys)
            checked = True
            most = job.opts.get_typed(options.INDEX_TASK_ROWS)
            if is_cheaper(partitions, job.config.table_type, parallelism(rows.sparkSession), most):
                bases = base_files(slices, partitions)
                dedupes = dedupe_in_tasks(job.merging, hard_deletes=deletes) if combines(job) else None
                lookup = PartitionLookup(bases, small, files, record_size, ratio, dedupes)
                logs = LOG_SLICES_SCHEMA.empty_table()
                if merge_on_read:
                    logs = log_slices(
                        bases,
                        slices,
                        compaction,
                        named_by_slice=job.config.version < 8,
                        with_names=job.config.cdc_enabled,
                    )
                return PartitionUpsertPlan(job, rows, partitions, lookup, slices, logs, basis, cached)
        placed = job.changes is not None and job.changes.placed
        bases = _bases_to_rewrite(job, metadata_partitions, clustering, logged)
        if placed:
            assert job.changes is not None
            rows = rows if bases is not None or job.changes.cached else cached.add(rows)
            tagged = Tagged(_placed(job, rows, slices, small, cached, logged, records))
        else:
            if job.exact_keys is not None and not checked:
                rows = cached.add(rows)
                job.exact_keys.count_partitions(rows)
            tagged = _tagged(job, rows, slices, small, cached, logged, records)
        rows = tagged.rows
        if bases is not None:
            counts = read_groups(bases)
        else:
            counts = count_rows(rows) if tagged.counts is None else tagged.counts
        if placed:
            assert job.changes is not None
            counts = with_base_paths(counts, slices, job.changes.bases)
        _check_duplicates(job, counts)
        workload = plan_workload(counts, slices, small, files, record_size, logs=merge_on_read, fill_ratio=ratio)
        _check_slices(slices, refused, workload, merge_on_read=merge_on_read)
        logs = LOG_SLICES_SCHEMA.empty_table()
        if merge_on_read:
            by_slice = job.config.version < 8
            logs = log_slices(
                appended_groups(workload),
                slices,
                compaction,
                named_by_slice=by_slice,
                with_names=job.config.cdc_enabled,
            )
        # file groups are known, not rows in them
        by_key = records is not None or (placed and job.changes is not None and job.changes.bases is None)
        located, counted = tagged.located, bases is None
        return FileGroupPlan(job, rows, workload, slices, logs, basis, cached, records, by_key, located, counted)
    except BaseException:
        cached.release()
        raise


def _keyed(job: WriteJob, instant: str) -> DataFrame:
    """The rows with keys and delete marks."""
    if job.changes is not None:
        return keyed_changes(job, instant)
    rows = with_stored_keys(job, instant) if job.stored_keys else with_keys(job.df, job.spec, instant)
    deletes = job.operation is Operation.DELETE
    if deletes:
        rows = keys_only(rows, job.spec)
    return mark_deletes(rows, job.merging, every_row=deletes)


def _bases_to_rewrite(
    job: WriteJob, metadata_partitions: Collection[str], clustering: pa.Table, logged: LogContents
) -> pa.Table | None:
    """Return the base files (`RowChanges.bases`) that a job may change, if its rows need not be counted: the files are
    few, there are no new records to place, and no index of keys to update."""
    changes = job.changes
    if changes is None or changes.bases is None or changes.adds or clustering.num_rows or logged != LogContents():
        return None
    few = changes.bases.num_rows <= _GROUPS_PER_CORE * parallelism(job.df.sparkSession)
    return changes.bases if few and without_key_indexes(metadata_partitions) else None


def _placed(
    job: WriteJob,
    rows: DataFrame,
    slices: pa.Table,
    small: pa.Table,
    cached: Cached,
    logged: LogContents,
    records: RecordIndex | None,
) -> DataFrame:
    """Changes of rows at their places, with new records looked up unless their keys are known to be new."""
    assert job.changes is not None
    if not job.changes.adds or job.operation is Operation.DELETE:
        return placed_changes(rows)
    new = job.changes.new_keys or job.spec.auto_keys
    if new and (job.spec.auto_keys or job.changes.distinct_keys or not combines(job)):
        return placed_changes(rows)
    own = [name for name in rows.columns if name not in (FILE_ID, ROW)]
    known = placed_changes(rows.where(F.col(FILE_ID).isNotNull()))
    added = rows.where(F.col(FILE_ID).isNull()).select(*(quoted([name]) for name in own))
    if new:
        added = cached.add(added)
        found = untagged_batch(added, job.spec, job.merging, cached.add, combine=True, global_keys=job.global_keys)
        return known.unionByName(found)
    return known.unionByName(_tagged(job, added, slices, small, cached, logged, records).rows)


def _tagged(
    job: WriteJob,
    rows: DataFrame,
    slices: pa.Table,
    small: pa.Table,
    cached: Cached,
    logged: LogContents,
    records: RecordIndex | None,
) -> Tagged:
    """Keyed rows, duplicates merged as the options say, with the place of every key that the table has."""
    deletes = job.operation is Operation.DELETE
    combine = combines(job)
    policy = duplicate_policy(job)
    if job.operation is Operation.INSERT and not job.opts.get_typed(options.MERGE_ALLOW_DUPLICATE_ON_INSERTS):
        if policy is DuplicatePolicy.NONE:
            # keys are looked for only in the files that the new records may go to
            slices = slices.filter(in_groups(slices, small))
    elif job.operation not in _UPDATES and policy is DuplicatePolicy.NONE:
        slices = slices.slice(0, 0)
    if job.client is None or not slices.num_rows:
        return Tagged(
            untagged_batch(
                *(cached.add(rows), job.spec, job.merging, cached.add),
                combine=combine,
                global_keys=job.global_keys,
                hard_deletes=deletes,
            )
        )
    # a record that is not to be inserted again does not move to another partition either
    opts = job.opts if policy is DuplicatePolicy.NONE else job.opts.merged(_STAY)
    stays = not job.global_keys and policy is DuplicatePolicy.NONE
    emptied = stays and logged.deletes
    lookup = KeyLookup(
        *(job.client, job.spec, job.merging, opts, logged.new_keys, stays, emptied, records),
        stored_keys=job.stored_keys,
    )
    found = tag(cached.add(rows), slices, lookup, combine=combine, hard_deletes=deletes, keep=cached.add)
    if policy is DuplicatePolicy.DROP:
        return Tagged(found.rows.where(F.col(FILE_ID).isNull()))
    return found


def record_index_of(job: WriteJob) -> RecordIndex | None:
    """The record index that the write looks keys up in; None: in the table's files, or it looks none up."""
    kind = job.opts.get_typed(options.INDEX_TYPE)
    looks_up = job.operation in _UPDATES or duplicate_policy(job) is not DuplicatePolicy.NONE
    if job.client is None or kind not in RECORD_INDEXES or not looks_up:
        return None
    return RecordIndex.open(job.client, partitioned=not kind.is_global)


def keys_only(rows: DataFrame, spec: KeySpec) -> DataFrame:
    """Select the key, and the columns that it is made of, of records to be deleted."""
    tops = dict.fromkeys(name if name in rows.columns else name.split(".")[0] for name in spec.record_fields)
    return rows.select(*(quoted([name]) for name in tops), RECORD_KEY, PARTITION_PATH)


def combines(job: WriteJob) -> bool:
    """Return whether rows of one key are merged before they are written; rows that have their places never are."""
    option = {
        Operation.UPSERT: options.COMBINE_BEFORE_UPSERT,
        Operation.DELETE: options.COMBINE_BEFORE_DELETE,
    }.get(job.operation, options.COMBINE_BEFORE_INSERT)
    return job.opts.get_typed(option) or duplicate_policy(job) is DuplicatePolicy.DROP


def duplicate_policy(job: WriteJob) -> DuplicatePolicy:
    """Return the handling of records of an insert whose keys the table has."""
    if job.operation is not Operation.INSERT:
        return DuplicatePolicy.NONE
    if job.opts.get_typed(options.INSERT_DROP_DUPLICATES):
        return DuplicatePolicy.DROP
    return job.opts.get_typed(options.INSERT_DUP_POLICY)


def _log_contents(job: WriteJob, active: ActiveTimeline, slices: pa.Table) -> LogContents:
    """Log contents that a lookup has to read: keys that base files do not hold, and the stored version of a record
    where that decides whether the incoming one moves to another partition or is a duplicate."""
    policy = duplicate_policy(job)
    if job.operation not in _UPDATES and policy is DuplicatePolicy.NONE:
        return LogContents()
    logged = _logged(slices)
    if not logged.num_rows:
        return LogContents()
    if job.global_keys or policy is not DuplicatePolicy.NONE:
        return LogContents(new_keys=True)
    found = LogContents.of(active, logged)
    # a merger of the user's may delete what no write has deleted
    return replace(found, deletes=found.deletes or job.merging.mode is MergeMode.CUSTOM)


def _check_duplicates(job: WriteJob, counts: pa.Table) -> None:
    if duplicate_policy(job) is not DuplicatePolicy.FAIL:
        return
    found = pc.sum(counts.filter(pc.is_valid(counts["file_id"]))["rows"]).as_py()
    if found:
        raise RecordKeyError(
            f"the table has the keys of {found:,} records already, and {options.INSERT_DUP_POLICY.key}=fail; nothing "
            "was written. Use upsert to update them, or the policy drop to leave them out"
        )


def _small_files(slices: pa.Table, busy: pa.Table, limit: int) -> pa.Table:
    """Base files that may take more records (SMALL_FILES_SCHEMA): below the limit, without logs, in nobody's plan."""
    fits = pc.and_kleene(pc.less(slices["base_size"], limit), pc.equal(pc.list_value_length(slices["log_paths"]), 0))
    found = slices.filter(fits).select(["partition", "file_id", "base_path", "base_size"])
    free = found.filter(pc.invert(in_groups(found, busy)))
    return free.rename_columns(SMALL_FILES_SCHEMA.names).cast(SMALL_FILES_SCHEMA).sort_by("file_id")


def _check_slices(slices: pa.Table, clustering: pa.Table, workload: Workload, *, merge_on_read: bool) -> None:
    touched = workload.groups.filter(pc.is_valid(workload.groups["base_path"]))
    if not merge_on_read:
        check_log_free(pc.sum(in_groups(touched, _logged(slices))).as_py() or 0)
    waiting = touched.filter(in_groups(touched, clustering))
    if waiting.num_rows:
        first = waiting.slice(0, 1).to_pylist()[0]
        raise ConflictError(
            f"{waiting.num_rows} file groups to be changed wait for a clustering that is planned (first: "
            f"{first['file_id']!r} in partition {first['partition']!r}); run the clustering, or roll its plan back"
        )


def _logged(slices: pa.Table) -> pa.Table:
    """Slices with log files."""
    return slices.filter(pc.greater(pc.list_value_length(slices["log_paths"]), 0))


def _write_history(active: ActiveTimeline | None) -> Iterator[pa.Table]:
    """Write stats of the base files of the newest commits."""
    if active is None:
        return
    for instant in list(reversed(list(active.timeline.writes().completed())))[:_SIZE_HISTORY]:
        stats = active.commit_metadata(instant).stats
        yield stats.filter(pc.is_null(stats["logFiles"]))
