"""What the tasks of a clustering need: made once from a plan and the table, sent to every task, never changed."""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.errors import TransactionError, UnsupportedTableError
from pyhudi.format.file_names import instant_of
from pyhudi.index.consistent_hashing import HashingMetadata, known_partitions, load_metadata, mark_completed, store
from pyhudi.merge.file_group_reader import FileSlice, SliceContext, read_slice
from pyhudi.read.execute.merged_reader import column_names, slice_context
from pyhudi.schema.arrow_avro import to_avro
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.schema.table_types import as_nullable
from pyhudi.services.clustering.bucket_resizing import (
    PLAN_STRATEGY,
    BucketRouting,
    bucketing_of,
    is_resizing,
    new_buckets,
)
from pyhudi.services.clustering.clustering_plan import ClusteringPlan
from pyhudi.services.clustering.plan_strategies import is_copying, is_single_file
from pyhudi.services.clustering.sort_order import RowOrder
from pyhudi.services.compaction.compaction_job import stored_columns
from pyhudi.table.bucket_index_detection import bucket_evidence
from pyhudi.table.config.merge_settings import with_delete_marker
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.table.view.file_group_state import replaced_groups
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata
from pyhudi.write.copy import copied_columns, write_copies, write_copies_to
from pyhudi.write.stitch import stitch_files
from pyhudi.write.write_context import TaskId, WriteContext
from pyhudi.write.write_settings import write_context
from pyhudi.write.write_status import Stat

if TYPE_CHECKING:
    from pyhudi.table.pinned_table import PinnedTable
    from pyhudi.table.schema_history import ColumnNamesByInstant

OPERATION = "CLUSTER"
"""The operation of clusterings as commit metadata names it."""
_ENDLESS = 1 << 62


@dataclass(frozen=True, slots=True)
class Unit:
    """File slices of one partition that are rewritten together: into ``outputs`` files, about; ``size`` is in bytes of
    files."""

    partition: str
    slices: tuple[FileSlice, ...]
    outputs: int
    size: int
    routing: BucketRouting | None = None
    """Where rows go by their keys, if they belong to buckets."""


@dataclass(frozen=True, slots=True)
class ClusteringWork:
    """A clustering as its tasks see it: how slices are read, in which order rows are written, how files are, and the
    units, the largest first, each packed, because every task gets all of them and looks at one. ``copies``: row groups
    of files are copied as they are, where that can be."""

    reading: SliceContext
    context: WriteContext
    order: RowOrder
    packed: tuple[bytes, ...]
    attempt: int
    copies: bool = False

    def unit(self, number: int) -> Unit:
        """One of the units."""
        found: Unit = pickle.loads(self.packed[number])
        return found

    def run(self, number: int, task: TaskId) -> list[Stat]:
        """Rewrite one unit, sorted in memory if there is an order; returns the stats of the files."""
        unit = self.unit(number)
        if self.copies and (stitched := self._stitched(unit, number, task)) is not None:
            return [stitched]
        rows: Iterator[pa.RecordBatch] = (b for one in unit.slices for b in read_slice(self.reading, one))
        if self.order:
            rows = self.order.sorted(rows, self.reading.output_schema)
        if unit.routing is not None:
            routed = ((batch, unit.routing.parts(batch.column(RECORD_KEY))) for batch in rows)
            return write_copies_to(self.context, self._named(task), unit.partition, routed)
        return self.write(unit.partition, number, rows, task)

    def write(self, partition: str, number: int, rows: Iterator[pa.RecordBatch], task: TaskId) -> list[Stat]:
        """Write rows as they come."""
        return write_copies(self.context, self._named(task), partition, number, rows)

    def _stitched(self, unit: Unit, number: int, task: TaskId) -> Stat | None:
        """Write a unit by copying row groups; None if that cannot be."""
        paths = [one.base_path for one in unit.slices if one.base_path is not None]
        if len(paths) < len(unit.slices) or any(one.log_paths for one in unit.slices):
            return None
        return stitch_files(self.context, self._named(task), unit.partition, number, paths)

    def _named(self, task: TaskId) -> TaskId:
        """The task with a number of the attempt, so that no two attempts name files alike."""
        return replace(task, attempt=(self.attempt ^ task.attempt) & 0x7FFFFFFF)


@dataclass(frozen=True, slots=True)
class ClusteringJob:
    """One clustering: the work for tasks, the units of it, and what the commit says. ``table`` is the table that
    slices were looked up in, ``slices`` are these (:data:`pyhudi.table.view.file_system_view.SLICE_SCHEMA`)."""

    table: PinnedTable
    opts: Options
    work: ClusteringWork
    units: tuple[Unit, ...]
    slices: pa.Table
    schema_text: str
    buckets: Mapping[str, HashingMetadata] = field(default_factory=dict)
    """The buckets of consistent hashing of each partition as the clustering leaves them; none where there are none."""

    @classmethod
    def of(
        cls, table: PinnedTable, plan: ClusteringPlan, opts: Options, *, attempt: int | None = None
    ) -> ClusteringJob:
        """The job that carries out a plan on a table as it is now: whatever was written to the file groups since the
        plan was made is clustered along. ``attempt`` is a number at random unless given.

        Raises:
            UnsupportedTableError: the table, or the plan's strategy, is not clustered here.
            ConfigError: options are wrong, or the plan sorts by a column that is not there.
            TransactionError: files of the plan are gone.
        """
        assert plan.instant is not None
        opts = Options.parse({k: v for k, v in opts.items() if k != options.PARTIAL_UPDATE_SCHEMA.key})
        single = is_single_file(plan.strategy) or is_resizing(plan.strategy)
        stored, own = stored_columns(table, "cluster", None)
        names = column_names(table, as_nullable(stored))
        _check_columns_kept(plan.instant, names)
        order = RowOrder.of(own, plan.sort_columns, opts)
        merging = with_delete_marker(table.config.merging, opts)
        context = write_context(table.storage, table.config, merging, opts, Operation.BULK_INSERT, plan.instant, own)
        attempt = secrets.randbits(31) if attempt is None else attempt
        size = _ENDLESS if single else opts.get_typed(options.CLUSTERING_TARGET_FILE_BYTES)
        context = replace(context, max_file_size=size, attempt=f"{attempt:x}", logs=None, names_at=names)
        reading = slice_context(table, as_nullable(stored), names=names, opts=opts)
        reading = replace(reading, columns=tuple(copied_columns(context)))
        slices, units = _units(table, plan, size, split=not order)
        buckets: Mapping[str, HashingMetadata] = {}
        if is_resizing(plan.strategy):
            buckets, units = _routed(table, plan, opts, units)
        copies = is_copying(plan.strategy) and not order and context.extension == "parquet"
        work = ClusteringWork(reading, context, order, tuple(map(pickle.dumps, units)), attempt, copies)
        return cls(table, opts, work, units, slices, to_avro(own, table.config.name), buckets)

    @property
    def replaced(self) -> pa.Table:
        """The file groups that go out of view."""
        found = [self.slices["partition"], self.slices["file_id"]]
        return pa.Table.from_arrays(found, schema=REPLACED_SCHEMA)

    def store_buckets(self) -> None:
        """Write down the buckets that come of it; they count when it is completed."""
        for metadata in self.buckets.values():
            store(self.table.storage, metadata)

    def mark_buckets(self, instant: str) -> None:
        """Say beside the buckets that it is completed."""
        mark_completed(self.table.storage, self.buckets, instant)

    def metadata(self, stats: pa.Table) -> CommitMetadata:
        """What the commit says."""
        names = self.work.context.names_at
        extra = {"schema": self.schema_text, **({} if names is None else names.recorded())}
        return CommitMetadata(OPERATION, stats, extra, replaced=self.replaced)


def _check_columns_kept(instant: str, names: ColumnNamesByInstant | None) -> None:
    """Refuse a plan that was made before columns were renamed or retyped: its instant is in the names of the new files,
    which readers would take for files of the schema before."""
    if names is not None and names.history.versions[-1].version_id > int(instant or "9" * 17):
        raise TransactionError(
            f"the table's columns have been altered since clustering {instant} was planned; roll the plan back "
            f"(HudiTable.services.rollback({instant!r})) and plan another one"
        )


def check_clusterable(table: PinnedTable, opts: Options, strategy: str, sort_columns: Sequence[str]) -> None:
    """Refuse what cannot be clustered, before there is a plan.

    Raises:
        UnsupportedTableError: the table, or the strategy, is not clustered here.
        ConfigError: options are wrong, or there is no such column.
    """
    is_single_file(strategy)
    evidence = bucket_evidence(table)
    consistent = evidence is not None and bool(known_partitions(table.storage))
    if is_resizing(strategy):
        if not consistent:
            raise UnsupportedTableError(
                f"the table {table.config.name!r} has no buckets of consistent hashing to be split or merged; leave "
                f"out {options.CLUSTERING_PLAN_STRATEGY.key}"
            )
        bucketing_of(table.config, opts)
    elif evidence is not None:
        cure = (
            f"set {options.CLUSTERING_PLAN_STRATEGY.key}={PLAN_STRATEGY} to split and merge its buckets"
            if consistent
            else "compaction is what keeps such tables in shape"
        )
        raise UnsupportedTableError(
            f"the table {table.config.name!r} has the bucket index ({evidence}): a file's name says which keys it "
            f"holds, so rows cannot be moved to any other files; {cure}"
        )
    RowOrder.of(stored_columns(table, "cluster", None)[1], sort_columns, opts)


def _units(table: PinnedTable, plan: ClusteringPlan, target: int, *, split: bool) -> tuple[pa.Table, tuple[Unit, ...]]:
    """The slices that a plan's file groups have now, and units of them, the largest first. ``split``: rows have no
    order, so a group that becomes several files is as many units."""
    view = FileSystemView.load(table, partitions=plan.partitions)
    slices = view.latest_slices()
    wanted = plan.inputs
    slices = slices.filter(in_groups(slices, wanted))
    _check_there(table, wanted, slices)
    by_group = {(row["partition"], row["file_id"]): row for row in slices.to_pylist()}
    for row in wanted.to_pylist():
        _check_whole(row, by_group.get((row["partition"], row["file_id"])))
    units: list[Unit] = []
    for number, outputs in enumerate(plan.outputs):
        names = wanted.filter(pc.equal(wanted["group"], number)).select(["partition", "file_id"]).to_pylist()
        rows = [row for name in names if (row := by_group.get((name["partition"], name["file_id"]))) is not None]
        if not rows:
            continue
        sizes = [(row["base_size"] or 0) + sum(row["log_sizes"] or ()) for row in rows]
        for some in _parts(sizes, target if split and outputs > 1 else _ENDLESS):
            found = tuple(FileSlice.of(rows[i]) for i in some)
            units.append(Unit(found[0].partition, found, outputs, sum(sizes[i] for i in some)))
    return slices, tuple(sorted(units, key=lambda unit: -unit.size))


def _routed(
    table: PinnedTable, plan: ClusteringPlan, opts: Options, units: Sequence[Unit]
) -> tuple[Mapping[str, HashingMetadata], tuple[Unit, ...]]:
    """The buckets that a plan leaves in each partition, and the units with the ways of rows to them."""
    assert plan.instant is not None
    bucketing = bucketing_of(table.config, opts)
    completed = [instant.requested for instant in table.active.timeline.completed()]
    known = load_metadata(table.storage, plan.partitions, completed)
    buckets = new_buckets(known, plan.instant, plan.extra)
    routed = tuple(
        replace(
            unit,
            routing=BucketRouting(
                bucketing,
                known[unit.partition],
                buckets[unit.partition],
                frozenset(one.file_id for one in unit.slices),
            ),
        )
        for unit in units
    )
    return buckets, routed


def _parts(sizes: Sequence[int], target: int) -> list[list[int]]:
    """Neighbours together, as long as they are not larger than the target."""
    parts: list[list[int]] = []
    room = -1
    for number, size in enumerate(sizes):
        if size > room:
            parts.append([])
            room = target
        parts[-1].append(number)
        room -= size
    return parts


def _check_whole(planned: Mapping[str, Any], found: Mapping[str, Any] | None) -> None:
    """A slice has all files that were there when it was planned, unless it is a newer one."""
    if found is None:
        return
    planned_base, base = planned["base_file"], found["base_path"]
    if planned_base is not None and instant_of(planned_base) < found["base_instant"]:
        return
    names = {path.rpartition("/")[2] for path in (base or "", *found["log_paths"])}
    gone = {planned_base, *planned["log_files"]} - names - {None}
    if gone:
        raise TransactionError(
            f"the clustering plan names {min(gone)!r} of file group {planned['file_id']!r} in partition "
            f"{planned['partition']!r}, which is gone: put the file back, or roll the plan back"
        )


def _check_there(table: PinnedTable, wanted: pa.Table, slices: pa.Table) -> None:
    """File groups that were replaced since may be missing: nobody sees them any more. Others may not."""
    missing = wanted.filter(pc.invert(in_groups(wanted, slices)))
    if missing.num_rows:
        missing = missing.filter(pc.invert(in_groups(missing, replaced_groups(table.active, table.active.timeline))))
    if missing.num_rows:
        first = missing.slice(0, 1).to_pylist()[0]
        raise TransactionError(
            f"the clustering plan names {missing.num_rows} file groups that the table does not have (first: "
            f"{first['file_id']!r} in partition {first['partition']!r}): their files were deleted. Roll the plan back"
        )
