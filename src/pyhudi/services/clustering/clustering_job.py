"""Input of the tasks of a clustering: created once from a plan and the table, immutable."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.errors import TransactionError, UnsupportedTableError
from pyhudi.format.file_names import file_name_of, instant_of
from pyhudi.index.consistent_hashing import (
    HashingMetadata,
    VisibleGroups,
    load_metadata,
    mark_completed,
    partitions_with_buckets,
    store_metadata,
)
from pyhudi.merge.file_group_reader import read_slice
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.read.execution.file_slice_reader import column_names, slice_context
from pyhudi.read.schema.table_columns import stored_columns
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.schema.table_types import as_nullable
from pyhudi.services.clustering.bucket_resizing import (
    PLAN_STRATEGY,
    BucketRouting,
    bucketing_of,
    is_resizing,
    new_buckets,
)
from pyhudi.services.clustering.plan_strategies import is_copying, is_single_file
from pyhudi.services.clustering.sort_order import RowOrder
from pyhudi.services.service_runner import attempt_task, service_context, service_options
from pyhudi.table.bucket_index_detection import bucket_evidence
from pyhudi.table.schema_history import ColumnNamesByInstant
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.table.view.file_group_state import replaced_groups
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata, WriteStat
from pyhudi.timeline.operation_types import CLUSTER
from pyhudi.timeline.plans.clustering_plan import ClusteringPlan
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.tasks.binary_copy_clustering import copy_base_files
from pyhudi.write.tasks.clustering_rewrite import copied_columns, write_copies, write_copies_to

_UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """File slices of one partition that are rewritten together, a group of the plan or a part of one: into
    approximately ``outputs`` files; ``size`` is in bytes of files."""

    partition: str
    slices: tuple[FileSlice, ...]
    outputs: int
    size: int
    routing: BucketRouting | None = None
    """Routing of rows by key, if they belong to buckets."""


@dataclass(frozen=True, slots=True)
class ClusteringTaskContext:
    """A clustering as seen by its tasks: settings for reading slices, settings of files, and order of rows. ``copies``:
    row groups are copied without decoding where possible."""

    read_context: SliceContext
    context: WriteContext
    order: RowOrder
    attempt: int
    copies: bool

    def run(self, group: ClusteringGroup, number: int, task: TaskId) -> list[WriteStat]:
        """Rewrite the group of that number, sorted in memory if there is an order. Return the stats of the files."""
        if self.copies and (copied := self._copied(group, number, task)) is not None:
            return [copied]
        rows: Iterator[pa.RecordBatch] = (b for one in group.slices for b in read_slice(self.read_context, one))
        if self.order:
            rows = self.order.sorted(rows, self.read_context.output_schema)
        if group.routing is not None:
            routed = ((batch, group.routing.parts(batch.column(RECORD_KEY))) for batch in rows)
            return write_copies_to(self.context, attempt_task(task, self.attempt), group.partition, routed)
        return self.write(group.partition, number, rows, task)

    def write(self, partition: str, number: int, rows: Iterator[pa.RecordBatch], task: TaskId) -> list[WriteStat]:
        """Write rows in input order."""
        return write_copies(self.context, attempt_task(task, self.attempt), partition, number, rows)

    def _copied(self, group: ClusteringGroup, number: int, task: TaskId) -> WriteStat | None:
        """Write a group by copying row groups; return None if this is not possible."""
        paths = [one.base_path for one in group.slices if one.base_path is not None]
        if len(paths) < len(group.slices) or any(one.log_paths for one in group.slices):
            return None
        return copy_base_files(self.context, attempt_task(task, self.attempt), group.partition, number, paths)


@dataclass(frozen=True, slots=True)
class ClusteringJob:
    """A clustering: the context of its tasks, its groups (the largest first), and its commit metadata. ``table`` is the
    table in which slices were looked up, ``slices`` are these (`pyhudi.table.view.file_slicing.SLICE_SCHEMA`)."""

    table: TableSnapshot
    opts: Options
    task_context: ClusteringTaskContext
    groups: tuple[ClusteringGroup, ...]
    slices: pa.Table
    schema_text: str
    buckets: Mapping[str, HashingMetadata] = field(default_factory=dict)
    """Consistent hashing buckets of each partition after the clustering; empty if there are none."""

    @classmethod
    def from_plan(
        cls, table: TableSnapshot, plan: ClusteringPlan, opts: Options, *, attempt: int | None = None
    ) -> ClusteringJob:
        """Create the job that executes a plan on the current slices of its file groups. ``attempt`` is a random number
        by default.

        Raises:
            UnsupportedTableError: The table, or the plan's strategy, is not supported.
            ConfigError: Options are invalid, or a sort column does not exist.
            TransactionError: Files of the plan no longer exist.
        """
        assert plan.instant is not None
        opts = service_options(opts)
        single = is_single_file(plan.strategy) or is_resizing(plan.strategy)
        stored, table_schema = stored_columns(table, "cluster", None)
        names = column_names(table, as_nullable(stored))
        _check_columns_kept(plan.instant, names)
        order = RowOrder.from_options(table_schema, plan.sort_columns, opts)
        attempt = secrets.randbits(31) if attempt is None else attempt
        context = service_context(
            table, Operation.BULK_INSERT, plan.instant, schema=table_schema, opts=opts, attempt=attempt
        )
        size = _UNLIMITED if single else opts.get_typed(options.CLUSTERING_TARGET_FILE_BYTES)
        context = replace(context, logs=None).with_file_size(size).with_column_names(names)
        read_context = slice_context(table, as_nullable(stored), names=names, opts=opts)
        read_context = replace(read_context, columns=tuple(copied_columns(context)))
        latest = FileSystemView.load(table, partitions=plan.partitions).latest_slices()
        slices, groups = _clustering_groups(table, plan, latest, size, split=not order)
        buckets: Mapping[str, HashingMetadata] = {}
        if is_resizing(plan.strategy):
            buckets, groups = _routed(table, plan, latest, opts, groups)
        copies = is_copying(plan.strategy) and not order and context.files.extension == "parquet"
        task_context = ClusteringTaskContext(read_context, context, order, attempt, copies)
        return cls(table, opts, task_context, groups, slices, to_avro(table_schema, table.config.name), buckets)

    @property
    def replaced(self) -> pa.Table:
        """Return the file groups that are replaced."""
        ids = [self.slices["partition"], self.slices["file_id"]]
        return pa.Table.from_arrays(ids, schema=REPLACED_SCHEMA)

    def store_buckets(self) -> None:
        """Store the resulting buckets, which become valid when the clustering is completed."""
        for metadata in self.buckets.values():
            store_metadata(self.table.storage, metadata)

    def mark_buckets(self, instant: str) -> None:
        """Create the marker files of buckets for the completed clustering."""
        mark_completed(self.table.storage, self.buckets, instant)

    def metadata(self, stats: pa.Table) -> CommitMetadata:
        """Return the commit metadata."""
        names = self.task_context.context.columns.names_at
        extra = {"schema": self.schema_text, **({} if names is None else names.recorded())}
        return CommitMetadata(CLUSTER, stats, extra, replaced=self.replaced)


def job_without_groups(table: TableSnapshot, plan: ClusteringPlan, opts: Options) -> ClusteringJob:
    """Return the job of a plan without its groups, with which the plan is checked before it is on the timeline. Lists
    no files.

    Raises:
        UnsupportedTableError, ConfigError: As `ClusteringJob.from_plan`.
    """
    empty = ClusteringPlan(strategy=plan.strategy, sort_columns=plan.sort_columns, instant="")
    return ClusteringJob.from_plan(table, empty, opts)


def _check_columns_kept(instant: str, names: ColumnNamesByInstant | None) -> None:
    """Refuse a plan from before a change of columns: its instant is part of the names of the new files, for which
    readers would use the earlier schema."""
    if names is not None and names.history.versions[-1].version_id > int(instant or "9" * 17):
        raise TransactionError(
            f"the columns of the table have been changed since clustering {instant} was planned; roll the plan "
            f"back (HudiTable.services.rollback({instant!r})) and plan another one"
        )


def check_clusterable(
    table: TableSnapshot, opts: Options, strategy: str, sort_columns: Sequence[str]
) -> tuple[str, ...]:
    """Refuse unsupported clusterings, before there is a plan; return the sort columns as the table spells them.

    Raises:
        UnsupportedTableError: The table, or the strategy, is not supported.
        ConfigError: Options are invalid, or a sort column does not exist.
    """
    is_single_file(strategy)
    evidence = bucket_evidence(table)
    consistent = evidence is not None and bool(partitions_with_buckets(table.storage))
    if is_resizing(strategy):
        if not consistent:
            raise UnsupportedTableError(
                f"the table {table.config.name!r} has no consistent hashing buckets to split or merge; leave out "
                f"{options.CLUSTERING_PLAN_STRATEGY.key}"
            )
        bucketing_of(table.config, opts)
    elif evidence is not None:
        cure = (
            f"set {options.CLUSTERING_PLAN_STRATEGY.key}={PLAN_STRATEGY} to split and merge its buckets"
            if consistent
            else "use compaction for such tables"
        )
        raise UnsupportedTableError(
            f"the table {table.config.name!r} has the bucket index ({evidence}): the name of a file determines "
            f"its keys, so rows cannot be moved to other files; {cure}"
        )
    return RowOrder.from_options(stored_columns(table, "cluster", None)[1], sort_columns, opts).columns


def _clustering_groups(
    table: TableSnapshot, plan: ClusteringPlan, latest: pa.Table, target: int, *, split: bool
) -> tuple[pa.Table, tuple[ClusteringGroup, ...]]:
    """Return those of the latest slices that belong to a plan's file groups, and groups of them, the largest first.
    ``split``: rows have no order, so a group with several output files is split into as many groups."""
    planned = plan.inputs
    slices = latest.filter(in_groups(latest, planned))
    _check_files_exist(table, planned, slices)
    by_group = {(row["partition"], row["file_id"]): row for row in slices.to_pylist()}
    for row in planned.to_pylist():
        _check_slice_unchanged(row, by_group.get((row["partition"], row["file_id"])))
    groups: list[ClusteringGroup] = []
    for number, outputs in enumerate(plan.outputs):
        names = planned.filter(pc.equal(planned["group"], number)).select(["partition", "file_id"]).to_pylist()
        rows = [row for name in names if (row := by_group.get((name["partition"], name["file_id"]))) is not None]
        if not rows:
            continue
        sizes = [(row["base_size"] or 0) + sum(row["log_sizes"] or ()) for row in rows]
        for some in _combine_small_files(sizes, target if split and outputs > 1 else _UNLIMITED):
            group_slices = tuple(FileSlice.from_row(rows[i]) for i in some)
            groups.append(
                ClusteringGroup(group_slices[0].partition, group_slices, outputs, sum(sizes[i] for i in some))
            )
    return slices, tuple(sorted(groups, key=lambda group: -group.size))


def _routed(
    table: TableSnapshot, plan: ClusteringPlan, latest: pa.Table, opts: Options, groups: Sequence[ClusteringGroup]
) -> tuple[Mapping[str, HashingMetadata], tuple[ClusteringGroup, ...]]:
    """Return the buckets of each partition after a plan, and the groups with their routing. ``latest`` are the latest
    slices of these partitions."""
    assert plan.instant is not None
    bucketing = bucketing_of(table.config, opts)
    timeline = table.active.timeline
    visible = VisibleGroups(timeline.pending().requested_times, latest["file_id"])
    metadata = load_metadata(table.storage, plan.partitions, timeline.completed().requested_times, groups=visible)
    buckets = new_buckets(metadata, plan.instant, plan.extra)
    routed = tuple(
        replace(
            group,
            routing=BucketRouting(
                bucketing,
                metadata[group.partition],
                buckets[group.partition],
                frozenset(one.file_id for one in group.slices),
            ),
        )
        for group in groups
    )
    return buckets, routed


def _combine_small_files(sizes: Sequence[int], target: int) -> list[list[int]]:
    """Combine adjacent files as long as they do not exceed the target size."""
    parts: list[list[int]] = []
    room = -1
    for number, size in enumerate(sizes):
        if size > room:
            parts.append([])
            room = target
        parts[-1].append(number)
        room -= size
    return parts


def _check_slice_unchanged(planned: Mapping[str, Any], current: Mapping[str, Any] | None) -> None:
    """Check that a slice still has all files of its plan, unless it is a newer one."""
    if current is None:
        return
    planned_base, base = planned["base_file"], current["base_path"]
    if planned_base is not None and instant_of(planned_base) < current["base_instant"]:
        return
    names = {file_name_of(path) for path in (base or "", *current["log_paths"])}
    missing = {planned_base, *planned["log_files"]} - names - {None}
    if missing:
        raise TransactionError(
            f"the clustering plan contains {min(missing)!r} of file group {planned['file_id']!r} in partition "
            f"{planned['partition']!r}, which no longer exists: restore the file, or roll the plan back"
        )


def _check_files_exist(table: TableSnapshot, planned: pa.Table, slices: pa.Table) -> None:
    """Check that no file groups are missing, except those that were replaced since."""
    missing = planned.filter(pc.invert(in_groups(planned, slices)))
    if missing.num_rows:
        missing = missing.filter(pc.invert(in_groups(missing, replaced_groups(table.active, table.active.timeline))))
    if missing.num_rows:
        first = missing.slice(0, 1).to_pylist()[0]
        raise TransactionError(
            f"the clustering plan contains {missing.num_rows} file groups that the table does not have (first: "
            f"{first['file_id']!r} in partition {first['partition']!r}): their files were deleted. Roll the plan "
            "back"
        )
