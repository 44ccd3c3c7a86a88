"""Plans writes that go by file group: the tagged rows of a job, and what is to be written where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.values import DuplicatePolicy, IndexType, MergeMode, Operation, TableType
from pyhudi.errors import ConflictError, RecordKeyError
from pyhudi.keygen import KeySpec
from pyhudi.schema.columns import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.caching import Cached
from pyhudi.spark.dedupe import dedupe_in_tasks, mark_deletes, numbered
from pyhudi.spark.keygen import with_keys
from pyhudi.spark.keytext import quoted
from pyhudi.spark.recordindex import RecordIndex
from pyhudi.spark.routing import count_rows
from pyhudi.spark.slices import parallelism
from pyhudi.spark.sought_plan import (
    SoughtPlan,
    base_files,
    count_partitions,
    may_seek,
    worth_it,
)
from pyhudi.spark.tagging import KeyLookup, tag, untagged_batch
from pyhudi.spark.write_job import WriteJob
from pyhudi.table.fsview import SLICE_SCHEMA, FileSystemView
from pyhudi.timeline.active import ActiveTimeline
from pyhudi.timeline.instants import Action
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.conflicts import PENDING_SCHEMA, pending_clustering_groups, pending_compaction_groups
from pyhudi.write.columns import FILE_ID
from pyhudi.write.existing import LogContents
from pyhudi.write.groups import in_groups
from pyhudi.write.guards import check_log_free
from pyhudi.write.logs import LOG_SLICES_SCHEMA, appended_groups, log_slices
from pyhudi.write.profile import SMALL_FILES_SCHEMA, average_record_size, smallest_files
from pyhudi.write.settings import sizing
from pyhudi.write.sought import Sought
from pyhudi.write.workload import Workload, plan_workload

_SIZE_HISTORY = 5
"""Commits that are asked for the size of records, as the original does."""
_UPDATES = frozenset({Operation.UPSERT, Operation.DELETE})
_FILLS = frozenset({Operation.UPSERT, Operation.INSERT})

RECORD_INDEXES = frozenset({IndexType.RECORD_INDEX, IndexType.GLOBAL_RECORD_LEVEL_INDEX, IndexType.RECORD_LEVEL_INDEX})
"""Indexes that are a partition of the metadata table."""
_SERVICES = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)

_STAY = {
    options.SIMPLE_UPDATE_PARTITION_PATH.key: False,
    options.BLOOM_UPDATE_PARTITION_PATH.key: False,
    options.RECORD_INDEX_UPDATE_PARTITION_PATH.key: False,
}


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """``rows`` are tagged, and cheap to evaluate thanks to ``cached``; ``slices`` are the file groups as the plan saw
    them, ``logs`` (LOG_SLICES_SCHEMA) those that get log files; ``seen`` the instants it knew of (`known_instants`);
    ``records``: the record index in which keys were looked up."""

    rows: DataFrame
    workload: Workload
    slices: pa.Table
    logs: pa.Table
    seen: frozenset[str]
    cached: Cached
    records: RecordIndex | None = None


def known_instants(timeline: Timeline | None) -> frozenset[str]:
    """The requested times of all instants that a plan takes into account: completed writes, which make the files; what
    was rolled back, which may leave some; planned table services, which are going to rewrite them."""
    if timeline is None:
        return frozenset()
    done = timeline.completed()
    counted = [*done.writes(), *done.of_actions(Action.ROLLBACK), *timeline.pending().of_actions(*_SERVICES)]
    return frozenset(instant.requested for instant in counted)


def plan_groups(
    job: WriteJob, timeline: Timeline | None, instant: str = "", *, seek: bool = True
) -> GroupPlan | SoughtPlan:
    """Key the rows of a job, and merge, tag and count them unless the tasks that write them can do that (*seek*: they
    may). Runs Spark jobs; rows stay cached until ``cached`` of the plan is released.

    ``timeline`` is what the plan is made on (None: there is no table yet); ``instant`` is needed for generated keys.

    Raises:
        RecordKeyError: keys are missing, or there already although duplicates are to fail.
        ConflictError: a file group to be changed waits for its clustering.
        UnsupportedTableError: a file group of a copy-on-write table has log files.
    """
    slices, clustering, compaction = SLICE_SCHEMA.empty_table(), *2 * [PENDING_SCHEMA.empty_table()]
    merge_on_read = job.config.table_type is TableType.MERGE_ON_READ
    logged = LogContents()
    if job.client is not None:
        active = job.client.active_timeline()
        slices = FileSystemView.load(job.client, timeline).latest_slices()
        clustering, compaction = pending_clustering_groups(active), pending_compaction_groups(active)
        logged = _log_contents(job, active, slices)
    busy = pa.concat_tables([clustering, compaction])
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
        record_size = average_record_size(_write_history(job, timeline), files)
        ratio = job.opts.get_typed(options.FILL_RATIO)
        deletes = job.operation is Operation.DELETE
        if seek and may_seek(job, slices, logged, clustering):
            rows = cached.add(numbered(rows) if combines(job) else rows)
            partitions = count_partitions(rows, slices)
            most = job.opts.get_typed(options.INDEX_TASK_ROWS)
            if worth_it(partitions, job.config.table_type, parallelism(rows.sparkSession), most):
                bases = base_files(slices, partitions)
                dedupes = dedupe_in_tasks(job.merging, hard_deletes=deletes) if combines(job) else None
                sought = Sought(bases, small, files, record_size, ratio, dedupes)
                logs = LOG_SLICES_SCHEMA.empty_table()
                if merge_on_read:
                    logs = log_slices(bases, slices, compaction, named_by_slice=job.config.version < 8)
                return SoughtPlan(rows, partitions, sought, slices, logs, known_instants(timeline), cached)
        rows = _tagged(job, rows, slices, small, cached, logged, records)
        counts = count_rows(rows)
        _check_duplicates(job, counts)
        workload = plan_workload(counts, slices, small, files, record_size, logs=merge_on_read, fill_ratio=ratio)
        _check_slices(slices, clustering, workload, merge_on_read=merge_on_read)
        logs = LOG_SLICES_SCHEMA.empty_table()
        if merge_on_read:
            by_slice = job.config.version < 8
            logs = log_slices(appended_groups(workload), slices, compaction, named_by_slice=by_slice)
        return GroupPlan(rows, workload, slices, logs, known_instants(timeline), cached, records)
    except BaseException:
        cached.release()
        raise


def _keyed(job: WriteJob, instant: str) -> DataFrame:
    """The rows with keys and delete marks."""
    rows = with_keys(job.df, job.spec, instant)
    deletes = job.operation is Operation.DELETE
    if deletes:
        rows = keys_only(rows, job.spec)
    return mark_deletes(rows, job.merging, every_row=deletes)


def _tagged(
    job: WriteJob,
    rows: DataFrame,
    slices: pa.Table,
    small: pa.Table,
    cached: Cached,
    logged: LogContents,
    records: RecordIndex | None,
) -> DataFrame:
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
        return untagged_batch(
            *(cached.add(rows), job.spec, job.merging, cached.add),
            combine=combine,
            global_keys=job.global_keys,
            hard_deletes=deletes,
        )
    # a record that is not to be inserted again does not move to another partition either
    opts = job.opts if policy is DuplicatePolicy.NONE else job.opts.merged(_STAY)
    stays = not job.global_keys and policy is DuplicatePolicy.NONE
    emptied = stays and logged.deletes
    lookup = KeyLookup(job.client, job.spec, job.merging, opts, logged.new_keys, stays, emptied, records)
    rows = tag(cached.add(rows), slices, lookup, combine=combine, hard_deletes=deletes, keep=cached.add)
    return rows.where(F.col(FILE_ID).isNull()) if policy is DuplicatePolicy.DROP else rows


def record_index_of(job: WriteJob) -> RecordIndex | None:
    """The record index that the write looks keys up in; None: in the table's files, or it looks none up."""
    kind = job.opts.get_typed(options.INDEX_TYPE)
    looks_up = job.operation in _UPDATES or duplicate_policy(job) is not DuplicatePolicy.NONE
    if job.client is None or kind not in RECORD_INDEXES or not looks_up:
        return None
    return RecordIndex.open(job.client, partitioned=not kind.is_global)


def keys_only(rows: DataFrame, spec: KeySpec) -> DataFrame:
    """Nothing of a record to be deleted is needed but its key, and the columns that the key is made of."""
    tops = dict.fromkeys(name if name in rows.columns else name.split(".")[0] for name in spec.record_fields)
    return rows.select(*(quoted([name]) for name in tops), RECORD_KEY, PARTITION_PATH)


def combines(job: WriteJob) -> bool:
    option = {
        Operation.UPSERT: options.COMBINE_BEFORE_UPSERT,
        Operation.DELETE: options.COMBINE_BEFORE_DELETE,
    }.get(job.operation, options.COMBINE_BEFORE_INSERT)
    return job.opts.get_typed(option) or duplicate_policy(job) is DuplicatePolicy.DROP


def duplicate_policy(job: WriteJob) -> DuplicatePolicy:
    """What happens to records of an insert whose keys the table has."""
    if job.operation is not Operation.INSERT:
        return DuplicatePolicy.NONE
    if job.opts.get_typed(options.INSERT_DROP_DUPLICATES):
        return DuplicatePolicy.DROP
    return job.opts.get_typed(options.INSERT_DUP_POLICY)


def _log_contents(job: WriteJob, active: ActiveTimeline, slices: pa.Table) -> LogContents:
    """What a look-up has to see of log files: keys that base files do not hold, and what the stored version of a record
    is where that decides whether the incoming one moves to another partition or is a duplicate."""
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


def _write_history(job: WriteJob, timeline: Timeline | None) -> Iterator[pa.Table]:
    """Write stats of the base files of the newest commits."""
    if job.client is None or timeline is None:
        return
    active: ActiveTimeline = job.client.active_timeline()
    for instant in list(reversed(list(timeline.writes().completed())))[:_SIZE_HISTORY]:
        stats = active.commit_metadata(instant).stats
        yield stats.filter(pc.is_null(stats["logFiles"]))
