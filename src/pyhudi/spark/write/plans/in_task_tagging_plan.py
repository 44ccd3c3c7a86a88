"""Plans of upserts and deletes that are tagged in the write tasks: rows are routed by partition, and the task of a
partition looks up their locations.

Only row counts by partition are computed beforehand; not even these for micro-batches of a table without partitions,
unless they turn out to have too many rows for one task.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import IndexType, TableType
from pyhudi.metadata.metadata_layout import FILE_PARTITIONS
from pyhudi.schema.meta_fields import PARTITION_PATH
from pyhudi.spark.column_names import quoted
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.execution.local_relations import MOST_LITERALS, literal_lookup, small_frame
from pyhudi.spark.execution.slice_tasks import coalesced, parallelism
from pyhudi.spark.execution.task_placement import place
from pyhudi.spark.execution.write_stages import run_in_task_tagging
from pyhudi.spark.indexes.record_index.record_index_update import KeyChanges
from pyhudi.spark.keys.deduplication import POSITION
from pyhudi.spark.lookup.key_constraint import KeyConstraint
from pyhudi.spark.write.plans.row_routing import changed_input_failure
from pyhudi.spark.write.plans.write_plan import WritePlan, most_tasks
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.conflicts.timeline_snapshot import TimelineSnapshot
from pyhudi.write.location_columns import PARTITION_SHARE, PLACEMENT_KEY
from pyhudi.write.planning.log_file_summary import LogContents
from pyhudi.write.tasks.in_task_tagging import BASES_SCHEMA, InTaskTagging, PartitionShare
from pyhudi.write.write_operations import type_name
from pyhudi.write.write_result import ChangeCounts

_TASKS = "_pyhudi_tasks"
_MOST_BYTES = 1 << 30
"""Most bytes of one partition's base files."""
_SHORT, _BALANCED = 2.0, 1.5
"""Seconds of a task that are always acceptable; limit of the longest task as a multiple of its fair share."""
_SEARCHED, _WRITTEN, _REWRITTEN = 200e6, 400e3, 30e6
"""Throughput of a core per second: bytes of base files whose keys are searched, rows written to log files, bytes of
base files rewritten. Rough, as they only distinguish small partitions from large ones."""
_SHARED = 8 * 1024 * 1024
"""Bytes of base files that justify another task."""
UNCOUNTED_ROWS = 100_000
"""Most rows that one task writes without knowing their number. A batch with more of them loses the time of sorting as
many."""


@dataclass(frozen=True, slots=True)
class InTaskTaggingPlan:
    """A `WritePlan`.

    Attributes:
        job: The job.
        rows: Its rows with keys, which are cheap to evaluate thanks to `cached`.
        partitions: The partitions of the rows (`count_partitions`).
        lookup: Settings of the tasks.
        slices: The file groups at the time of planning.
        logs: Those that may get log files (LOG_SLICES_SCHEMA).
        snapshot: The timeline on which the plan is based.
        cached: The cached rows.
        plan_by_counts: Counts the rows, and returns the plan that replaces this one if there are more than
            ``lookup.most_rows``; None: they have been counted.
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

    @property
    def row_count(self) -> int | None:
        """Return the number of rows to write; None: they are not counted."""
        return None if self.plan_by_counts is not None else int(pc.sum(self.partitions["rows"]).as_py() or 0)

    @property
    def planned_changes(self) -> ChangeCounts | None:
        """Return the number of rows to write; None: they are not counted."""
        return None if self.row_count is None else ChangeCounts(self.row_count)

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
        rows = _by_partition(self, most_tasks(self.job)) if self.plan_by_counts is None else _in_one_task(self)
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
        and job.opts.get_typed(options.INDEX_TYPE) is IndexType.SIMPLE
        and job.opts.get_typed(options.INDEX_TASK_ROWS) > 0
        and job.config.populate_meta_fields
        and not job.spec.auto_keys
        and not job.opts.is_set(options.PARTIAL_UPDATE_SCHEMA)
        and not (logged.new_keys or logged.deletes)
        and not pending_clustering.num_rows
        and without_key_indexes(job.client.config.metadata_partitions)
        and slices.num_rows > 0
        and _by_type(job.config, slices)
        and bool(pc.any(pc.less_equal(_sizes(slices)["size"], _MOST_BYTES)).as_py())
    )


def without_key_indexes(partitions: Collection[str]) -> bool:
    """Return True if no partition of the metadata table needs the individual keys."""
    return set(partitions) <= set(FILE_PARTITIONS)


def count_partitions(rows: DataFrame, slices: pa.Table, exact: KeyConstraint | None = None) -> pa.Table:
    """Return row counts by partition path, with the size of the partition's base files. Runs a Spark job.

    Raises:
        KeyConstraintError: The keys violate the constraint ``exact``.
    """
    row_counts = (
        coalesced(rows.groupBy(PARTITION_PATH).count()).collect() if exact is None else exact.count_partitions(rows)
    )
    counts = pa.table(
        {
            "partition": pa.array([r[0] for r in row_counts], pa.string()),
            "rows": pa.array([r[1] for r in row_counts], pa.int64()),
        }
    )
    sizes = _sizes(slices)
    at = pc.index_in(counts["partition"].combine_chunks(), value_set=sizes["partition"].combine_chunks())
    return counts.append_column("size", pc.fill_null(sizes["size"].combine_chunks().take(at), 0))


def only_partition(slices: pa.Table) -> pa.Table:
    """Return the partition of a table that is not partitioned, as `count_partitions`, if the batch has
    `UNCOUNTED_ROWS`."""
    size = pc.sum(_sizes(slices)["size"]).as_py() or 0
    return pa.table({"partition": [""], "rows": [UNCOUNTED_ROWS], "size": [size]})


def write_cores(job: WriteJob, rows: DataFrame) -> int:
    """Return the number of tasks of a write that run at a time."""
    return min(most_tasks(job), parallelism(rows.sparkSession))


def is_cheaper(partitions: pa.Table, bases: pa.Table, table_type: TableType, cores: int, most_rows: int) -> bool:
    """Return True if the tasks of partitions (`partition_shares`) do not take much longer than all cores together.

    Args:
        partitions: The partitions (`count_partitions`).
        bases: Their base files (BASES_SCHEMA).
        table_type: Type of the table.
        cores: Number of tasks that run at a time.
        most_rows: Most rows of a partition.
    """
    if not partitions.num_rows:
        return False
    rows, size = _rows_and_size(partitions)
    if rows.max() > most_rows or size.max() > _MOST_BYTES:
        return False
    longest = pc.max(partition_shares(partitions, bases, table_type, cores)["seconds"]).as_py()
    fair = (_lookup_seconds(rows, size) + _rewrite_seconds(size, table_type)).sum() / cores
    return bool(longest <= max(_SHORT, _BALANCED * fair))


def base_files(slices: pa.Table, partitions: pa.Table) -> pa.Table:
    """Return the base files (BASES_SCHEMA) of some partitions."""
    keep = pc.and_(
        pc.is_valid(slices["base_path"]), pc.is_in(slices["partition"], partitions["partition"].combine_chunks())
    )
    return slices.filter(keep).select(BASES_SCHEMA.names).cast(BASES_SCHEMA).combine_chunks()


def _by_partition(plan: InTaskTaggingPlan, limit: int) -> DataFrame:
    """Return the rows routed to the tasks of their partitions, at most ``limit``, in input order, without locations. If
    several tasks rewrite files of a partition, each gets all of its rows."""
    shares = plan.shares
    # Tasks are placed by time, expressed as the bytes rewritten in that time.
    work = (shares["seconds"].to_numpy() * _REWRITTEN).astype(np.int64)
    cores = parallelism(plan.rows.sparkSession)
    keys, tasks = place(work, limit, fewest=min(limit, len(work), cores))
    shares = shares.drop_columns(["seconds"]).append_column(PLACEMENT_KEY, pa.array(keys, pa.int32()))
    routed = _routed(plan.rows, shares)
    # One task needs no shuffle.
    return _sorted(routed.coalesce(1) if tasks == 1 else routed.repartition(tasks, PLACEMENT_KEY))


def _in_one_task(plan: InTaskTaggingPlan) -> DataFrame:
    """Return as many rows as one task needs to detect that there are too many, without reading the others."""
    assert plan.lookup.most_rows is not None
    # A limit computes rows in parallel and moves them to one task. Adaptive execution drops it if it knows that there
    # are fewer cached rows; then they are still in several.
    rows = plan.rows.limit(plan.lookup.most_rows + 1).coalesce(1)
    share = pa.table(
        {PARTITION_PATH: [""], PARTITION_SHARE: [str(PartitionShare())], PLACEMENT_KEY: pa.array([0], pa.int32())}
    )
    return _sorted(_routed(rows, share))


def _sorted(routed: DataFrame) -> DataFrame:
    """Return routed rows sorted by partition and share, in input order."""
    order = [PARTITION_PATH, PARTITION_SHARE, *([POSITION] if POSITION in routed.columns else [])]
    return routed.sortWithinPartitions(*order)


def partition_shares(partitions: pa.Table, bases: pa.Table, table_type: TableType, cores: int) -> pa.Table:
    """Return the tasks of each partition: partition path, share (`PARTITION_SHARE`), and the seconds for which it keeps
    a core busy.

    A task for each core that would be idle otherwise rewrites some of the base files of a partition. Each of them
    looks up all keys, which takes a fraction of the time of rewriting. Arguments as of `is_cheaper`.
    """
    rows, size = _rows_and_size(partitions)
    lookup, rewrite = _lookup_seconds(rows, size), _rewrite_seconds(size, table_type)
    count = np.ones(len(rows), dtype=np.int64)
    if table_type is TableType.COPY_ON_WRITE:
        files = pc.value_counts(bases["partition"].combine_chunks())
        at = pc.index_in(partitions["partition"].combine_chunks(), value_set=files.field("values"))
        most = np.minimum(pc.fill_null(files.field("counts").take(at), 1).to_numpy(), np.round(size / _SHARED))
        seconds = lookup + rewrite
        idle = np.round(cores * seconds / max(seconds.sum(), 1e-9))
        count = np.clip(np.minimum(most, idle), 1, None).astype(np.int64)
    number = np.repeat(np.arange(len(count)), count)
    first = np.repeat(np.cumsum(count) - count, count)
    share = [
        str(PartitionShare(n, of))
        for n, of in zip((np.arange(len(number)) - first).tolist(), count[number].tolist(), strict=True)
    ]
    taken = (lookup + rewrite / count)[number]
    columns = [partitions["partition"].take(pa.array(number)), pa.array(share), pa.array(taken)]
    return pa.table(columns, names=[PARTITION_PATH, PARTITION_SHARE, "seconds"])


def _routed(rows: DataFrame, shares: pa.Table) -> DataFrame:
    """Return the rows with their tasks and shares."""
    table_columns = [quoted([name]) for name in rows.columns]
    if shares.num_rows == 1:
        only_share = shares.to_pylist()[0]
        return rows.select(
            *table_columns, *(F.lit(only_share[name]).alias(name) for name in (PARTITION_SHARE, PLACEMENT_KEY))
        )
    failure = changed_input_failure(F.concat(F.lit("partition "), F.col(PARTITION_PATH)))
    if shares.num_rows <= MOST_LITERALS:
        tasks = literal_lookup(_by_partition_path(shares), [PARTITION_PATH], _TASKS)
        tasks = F.when(tasks.isNull(), failure.cast("array<struct<share:string,task:int>>")).otherwise(tasks)
        each = rows.select(*table_columns, F.explode(tasks).alias(_TASKS))
        share, task = F.col(f"{_TASKS}.share"), F.col(f"{_TASKS}.task")
        return each.select(*table_columns, share.alias(PARTITION_SHARE), task.alias(PLACEMENT_KEY))
    partition_tasks = F.broadcast(small_frame(rows.sparkSession, shares))
    task = F.coalesce(F.col(PLACEMENT_KEY), failure.cast("int")).alias(PLACEMENT_KEY)
    return rows.join(partition_tasks, PARTITION_PATH, "left").select(*table_columns, PARTITION_SHARE, task)


def _by_partition_path(shares: pa.Table) -> pa.Table:
    """Return the shares and tasks of each partition as a list."""
    tasks: dict[str, list[dict[str, object]]] = {}
    for row in shares.to_pylist():
        tasks.setdefault(row[PARTITION_PATH], []).append({"share": row[PARTITION_SHARE], "task": row[PLACEMENT_KEY]})
    kind = pa.list_(pa.struct([("share", pa.string()), ("task", pa.int32())]))
    return pa.table({PARTITION_PATH: pa.array(list(tasks), pa.string()), _TASKS: pa.array(list(tasks.values()), kind)})


def _by_type(config: TableConfig, slices: pa.Table) -> bool:
    """Return True if a table of this type and version needs no workload profile in the inflight file.

    In version 6 names of log files have the instant of their slice: if markers are lost, only the profile identifies
    the files of a failed writer.
    """
    if config.table_type is TableType.MERGE_ON_READ:
        return config.version >= 8
    return not _logs(slices)


def _logs(slices: pa.Table) -> int:
    """Return the number of log files."""
    return int(pc.sum(pc.list_value_length(slices["log_paths"])).as_py() or 0)


def _sizes(slices: pa.Table) -> pa.Table:
    """Return the bytes of base files by partition: the columns partition and size."""
    summed = slices.group_by("partition").aggregate([("base_size", "sum")])
    return pa.table([summed["partition"], pc.fill_null(summed["base_size_sum"], 0)], names=["partition", "size"])


def _rows_and_size(partitions: pa.Table) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the rows of each partition and the bytes of its base files."""
    return partitions["rows"].to_numpy().astype(np.float64), partitions["size"].to_numpy().astype(np.float64)


def _lookup_seconds(rows: npt.NDArray[np.float64], size: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the estimated seconds for which a core searches the rows of each partition."""
    return rows / _WRITTEN + size / _SEARCHED


def _rewrite_seconds(size: npt.NDArray[np.float64], table_type: TableType) -> npt.NDArray[np.float64]:
    """Return the estimated seconds for which a core rewrites the base files of each partition."""
    return size / _REWRITTEN if table_type is TableType.COPY_ON_WRITE else np.zeros_like(size)
