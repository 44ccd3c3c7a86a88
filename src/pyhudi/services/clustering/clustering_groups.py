"""Groups of a clustering: the file slices that are rewritten together, looked up for a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.config import Options
from pyhudi.errors import TransactionError
from pyhudi.format.file_names import file_name_of, file_paths, instant_of
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.index.consistent_hashing import HashingMetadata, VisibleGroups, load_metadata
from pyhudi.merge.file_slice import FileSlice, file_slices
from pyhudi.services.clustering.bucket_resizing import BucketRouting, bucketing_of, new_buckets
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_group_keys import group_keys, in_groups
from pyhudi.table.view.file_group_state import replaced_groups
from pyhudi.table.view.file_slicing import slice_sizes
from pyhudi.timeline.plans.clustering_plan import ClusteringPlan


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
class BucketChange:
    """Buckets of each partition before and after a clustering."""

    bucketing: BucketIndex
    old: Mapping[str, HashingMetadata]
    new: Mapping[str, HashingMetadata]


@dataclass(frozen=True, slots=True)
class ClusteringGroups(Sequence[ClusteringGroup]):
    """The groups of a clustering, whose objects are made when they are needed.

    Attributes:
        slices: All slices (`pyhudi.table.view.file_slicing.SLICE_SCHEMA`).
        bounds: First row of each group, and the row after its last one.
        outputs: Approximate number of files that each group is rewritten into.
        sizes: Bytes of the files of each group.
        buckets: Buckets to which the rows belong; None: none.
    """

    slices: pa.Table
    bounds: npt.NDArray[np.int64]
    outputs: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    buckets: BucketChange | None = None

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, number: int) -> ClusteringGroup:  # type: ignore[override]
        start, end = self.bounds[number].tolist()
        slices = tuple(file_slices(self.slices.slice(start, end - start)))
        partition, change = slices[0].partition, self.buckets
        group = ClusteringGroup(partition, slices, int(self.outputs[number]), int(self.sizes[number]))
        if change is None:
            return group
        sources = frozenset(one.file_id for one in slices)
        routing = BucketRouting(change.bucketing, change.old[partition], change.new[partition], sources)
        return replace(group, routing=routing)


def clustering_groups(
    table: TableSnapshot, plan: ClusteringPlan, latest: pa.Table, target: int, *, split: bool
) -> tuple[pa.Table, ClusteringGroups]:
    """Return those of the latest slices that belong to a plan's file groups, and groups of them, the largest first.
    ``split``: rows have no order, so a group with several output files is split into as many groups."""
    planned = plan.inputs.sort_by("group")
    slices = latest.filter(in_groups(latest, planned))
    _check_files_exist(table, plan, slices)
    at = pc.index_in(group_keys(planned), value_set=group_keys(slices))
    planned, at = planned.filter(pc.is_valid(at)), at.drop_null()
    in_order = slices.take(at)
    _check_slices_unchanged(plan, planned, in_order)
    sizes = slice_sizes(in_order)
    numbers = planned["group"].to_numpy()
    starts: list[int] = []
    bounds = np.flatnonzero(np.diff(numbers, prepend=-1, append=-1)).tolist() if len(numbers) else []
    for start, end in pairwise(bounds):
        splits = split and plan.outputs[numbers[start]] > 1
        starts += [start + first for first in _parts(sizes[start:end].tolist(), target)] if splits else [start]
    outputs = [plan.outputs[number] for number in numbers[starts].tolist()]
    totals = np.add.reduceat(sizes, starts) if starts else sizes
    order = np.argsort(-totals, kind="stable")
    offsets = np.column_stack([starts, [*starts[1:], len(sizes)]]) if starts else np.empty((0, 2), np.int64)
    return slices, ClusteringGroups(in_order, offsets[order], np.array(outputs, np.int64)[order], totals[order])


def bucket_change(table: TableSnapshot, plan: ClusteringPlan, latest: pa.Table, opts: Options) -> BucketChange:
    """Return the buckets of each partition before and after a plan. ``latest`` are the latest slices of these
    partitions."""
    assert plan.instant is not None
    timeline = table.active.timeline
    visible = VisibleGroups(timeline.pending().requested_times, latest["file_id"])
    metadata = load_metadata(table.storage, plan.partitions, timeline.completed().requested_times, groups=visible)
    return BucketChange(bucketing_of(table.config, opts), metadata, new_buckets(metadata, plan.instant, plan.extra))


def _parts(sizes: Sequence[int], target: int) -> list[int]:
    """Return the first file of each part where adjacent files are combined as long as they do not exceed the target
    size."""
    starts: list[int] = []
    room = -1
    for number, size in enumerate(sizes):
        if size > room:
            starts.append(number)
            room = target
        room -= size
    return starts


def _check_slices_unchanged(plan: ClusteringPlan, planned: pa.Table, slices: pa.Table) -> None:
    """Check that the slices still have all files of the plan, row by row, unless they are newer ones."""
    logs = contiguous(planned["log_files"])
    folders, rows = contiguous(planned["partition"]), pc.list_parent_indices(logs)
    names = pa.concat_arrays([contiguous(planned["base_file"]), logs.flatten()])
    rows = pa.concat_arrays([pa.array(np.arange(len(logs))), rows])
    existing = pa.concat_arrays([contiguous(slices["base_path"]), contiguous(slices["log_paths"]).flatten()])
    missing = pc.invert(pc.is_in(file_paths(folders.take(rows), names), value_set=existing))
    for row in pc.unique(rows.filter(pc.and_(missing, pc.is_valid(names)))).sort().to_pylist():
        _check_slice_unchanged(plan, planned.slice(row, 1).to_pylist()[0], slices.slice(row, 1).to_pylist()[0])


def _check_slice_unchanged(plan: ClusteringPlan, planned: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """Check that a slice still has all files of its plan, unless it is a newer one."""
    planned_base, base = planned["base_file"], current["base_path"]
    if planned_base is not None and instant_of(planned_base) < current["base_instant"]:
        return
    names = {file_name_of(path) for path in (base or "", *current["log_paths"])}
    missing = {planned_base, *planned["log_files"]} - names - {None}
    if missing:
        raise TransactionError(
            f"the clustering plan contains {min(missing)!r} of file group {planned['file_id']!r} in partition "
            f"{planned['partition']!r}, which no longer exists: restore the file, or roll the plan back "
            f"(services.rollback({plan.instant!r}))"
        )


def _check_files_exist(table: TableSnapshot, plan: ClusteringPlan, slices: pa.Table) -> None:
    """Check that no file groups are missing, except those that were replaced since."""
    missing = plan.inputs.filter(pc.invert(in_groups(plan.inputs, slices)))
    if missing.num_rows:
        missing = missing.filter(pc.invert(in_groups(missing, replaced_groups(table.active, table.active.timeline))))
    if missing.num_rows:
        first = missing.slice(0, 1).to_pylist()[0]
        raise TransactionError(
            f"the clustering plan contains {missing.num_rows} file groups that the table does not have (first: "
            f"{first['file_id']!r} in partition {first['partition']!r}): their files were deleted. Roll the plan "
            f"back (services.rollback({plan.instant!r}))"
        )
