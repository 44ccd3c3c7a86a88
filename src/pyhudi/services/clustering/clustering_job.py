"""Input of the tasks of a clustering: created once from a plan and the table, immutable."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.errors import TransactionError, UnsupportedTableError
from pyhudi.index.consistent_hashing import HashingMetadata, mark_completed, partitions_with_buckets, store_metadata
from pyhudi.merge.file_group_reader import read_slice
from pyhudi.merge.file_slice import SliceContext
from pyhudi.read.execution.file_slice_reader import column_names, slice_context
from pyhudi.read.schema.table_columns import stored_columns
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.schema.table_types import as_nullable
from pyhudi.services.clustering.bucket_resizing import PLAN_STRATEGY, bucketing_of, is_resizing
from pyhudi.services.clustering.clustering_groups import (
    ClusteringGroup,
    ClusteringGroups,
    bucket_change,
    clustering_groups,
)
from pyhudi.services.clustering.plan_strategies import is_copying, is_single_file
from pyhudi.services.clustering.sort_order import RowOrder
from pyhudi.services.service_runner import attempt_task, service_context, service_options
from pyhudi.table.bucket_index_detection import bucket_evidence
from pyhudi.table.schema_history import ColumnNamesByInstant
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata, WriteStat
from pyhudi.timeline.operation_types import CLUSTER
from pyhudi.timeline.plans.clustering_plan import ClusteringPlan
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.tasks.binary_copy_clustering import copy_base_files
from pyhudi.write.tasks.clustering_rewrite import copied_columns, write_copies, write_copies_to

_UNLIMITED = 1 << 62


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
    groups: ClusteringGroups
    slices: pa.Table
    schema_text: str

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
        slices, groups = clustering_groups(table, plan, latest, size, split=not order)
        if is_resizing(plan.strategy):
            groups = replace(groups, buckets=bucket_change(table, plan, latest, opts))
        copies = is_copying(plan.strategy) and not order and context.files.extension == "parquet"
        task_context = ClusteringTaskContext(read_context, context, order, attempt, copies)
        return cls(table, opts, task_context, groups, slices, to_avro(table_schema, table.config.name))

    @property
    def buckets(self) -> Mapping[str, HashingMetadata]:
        """Consistent hashing buckets of each partition after the clustering; empty if there are none."""
        return {} if self.groups.buckets is None else self.groups.buckets.new

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
