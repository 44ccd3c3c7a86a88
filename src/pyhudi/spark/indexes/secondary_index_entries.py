"""Entries of secondary indexes, computed by comparing file slices before and after a write, and written to the file
groups of the indexes.

Each row that a write changes belongs to a file slice that it writes. The slices before and after the write are read,
only the record keys and the indexed columns, and the differences are the index updates. This is correct for
each operation and each merge mode.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.arrow.group_runs import by_group
from pyhudi.errors import UnsupportedTableError
from pyhudi.format.hfile.hfile_writer import LONGEST_KEY
from pyhudi.merge.file_group_reader import read_slice
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.metadata.file_groups.delta_commit_writer import GroupFiles, GroupSlice
from pyhudi.metadata.indexes.file_slice_changes import GroupChange, SliceChanges
from pyhudi.metadata.indexes.secondary_index_definition import SecondaryIndex, entry_keys, entry_value
from pyhudi.metadata.records.file_group_hash import secondary_file_group_index_of
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.spark.execution.python_workers import this_task
from pyhudi.spark.execution.row_tasks import Batches, map_in_arrow
from pyhudi.spark.execution.slice_tasks import KEYS, bytes_to_read, cut_rows, parallelism, run_on_rows
from pyhudi.spark.execution.task_placement import placement_keys
from pyhudi.spark.helper_columns import INDEX_GROUP
from pyhudi.spark.indexes.key_ranges import (
    ONE_RANGE,
    KeyRanges,
    range_count,
    ranges_by_group,
    sampled_files,
    sorted_by_index_group,
    task_count,
)
from pyhudi.spark.spark_errors import task_errors
from pyhudi.storage import Storage
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.fencing.write_fence import WriteFence
from pyhudi.write.location_columns import PLACEMENT_KEY

_ENTRY, _REMOVED = "_pyhudi_entry", "_pyhudi_entry_removed"
_ENTRIES = pa.schema(
    [(_ENTRY, pa.string()), (_REMOVED, pa.bool_()), (INDEX_GROUP, pa.int32()), (PLACEMENT_KEY, pa.int32())]
)


@dataclass(frozen=True, slots=True)
class IndexTarget:
    """Secondary indexes to be written: the file groups of each (``groups``), and the writer and instant. ``fence``: as
    in `GroupFiles`."""

    storage: Storage
    instant: str
    version: int
    indexes: Sequence[SecondaryIndex]
    groups: Sequence[Sequence[GroupSlice]]
    fence: WriteFence | None = None

    @property
    def starts(self) -> list[int]:
        """Return the number of the first file group of each index in a numbering over all indexes, and at the end the
        total number of groups."""
        return [0, *np.cumsum([len(groups) for groups in self.groups]).tolist()]

    def group(self, number: int) -> tuple[GroupFiles, GroupSlice]:
        """Return the writer of a file group, and the group."""
        at = int(np.searchsorted(self.starts, number, side="right")) - 1
        partition = self.indexes[at].partition
        files = GroupFiles(self.storage, partition, self.instant, self.version, self.fence)
        return files, self.groups[at][number - self.starts[at]]


def write_initial_entries(
    spark: SparkSession, context: SliceContext, slices: pa.Table, target: IndexTarget, ranges: KeyRanges
) -> list[WriteStat]:
    """Write the entries of all rows of file slices to the first base files of indexes; return their write stats. Runs a
    Spark job. Memory of a task: one range of the entries of a file group.

    Args:
        spark: The session.
        context: Reads the record key and the indexed columns.
        slices: The file slices (`pyhudi.table.view.file_slicing.SLICE_SCHEMA`).
        target: The indexes.
        ranges: Ranges of the entries.
    """
    value = entry_value(target.version)

    def write(batches: Iterable[pa.RecordBatch]) -> Batches:
        token = this_task().token
        for number, parts in ranges_by_group(batches, len(ranges)):
            files, group = target.group(number)
            entries = (_records(rows, value).sorted() for rows in parts)
            yield _stats([files.write_sorted(group.file_id, entries, token=token)])

    return _write(_entries(spark, context, _insertions(slices), target, ranges), write, spark, target)


def sampled_ranges(
    spark: SparkSession, context: SliceContext, slices: pa.Table, target: IndexTarget, rows: int
) -> KeyRanges:
    """Return the ranges of the entries of file slices, for `write_initial_entries`; ``rows`` is their number. Runs a
    Spark job if there are several ranges."""
    count = range_count(rows, target.starts[-1])
    if count == 1:
        return ONE_RANGE
    some = slices.take(list(sampled_files(slices.num_rows)))
    entries = _entries(spark, context, _insertions(some), target, ONE_RANGE)
    with task_errors():
        return KeyRanges.from_sample(entries.select(_ENTRY), rows * some.num_rows // slices.num_rows, count)


def _insertions(slices: pa.Table) -> SliceChanges:
    return SliceChanges(SLICE_SCHEMA.empty_table(), slices)


def write_entries(
    spark: SparkSession, context: SliceContext, changes: SliceChanges, target: IndexTarget
) -> list[WriteStat]:
    """Write changes of file groups to log files of indexes; return the write stats of the files. Runs a Spark job.

    ``context`` reads the record key and the indexed columns.

    Raises:
        UnsupportedTableError: A value is too long for an index.
    """
    value = entry_value(target.version)

    def write(batches: Iterable[pa.RecordBatch]) -> Batches:
        token = this_task().token
        for number, rows in by_group(batches, INDEX_GROUP):
            records = _records(rows, value)
            files, group = target.group(number)
            yield _stats([files.write_log(group, records, token=token)] if len(records) else [])

    return _write(_entries(spark, context, changes, target, ONE_RANGE), write, spark, target)


def _write(
    entries: DataFrame,
    write: Callable[[Iterable[pa.RecordBatch]], Batches],
    spark: SparkSession,
    target: IndexTarget,
) -> list[WriteStat]:
    """Write entries in the tasks of their file groups."""
    placed = sorted_by_index_group(entries, task_count(target.starts[-1], spark))
    with task_errors():
        return [json.loads(row[0]) for row in map_in_arrow(placed, write, "stat string").collect()]


def _stats(stats: Sequence[WriteStat]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([json.dumps(stat) for stat in stats], pa.string())], names=["stat"])


def _entries(
    spark: SparkSession,
    context: SliceContext,
    changes: SliceChanges,
    target: IndexTarget,
    ranges: KeyRanges,
) -> DataFrame:
    """Return the entries that are added and removed, with the file group and range of each. Lazy."""
    placement = np.array(placement_keys(task_count(target.starts[-1], spark)), dtype=np.int32)

    def read(row: Mapping[str, Any]) -> Batches:
        change = GroupChange.from_row(row)
        before, after = _slice_rows(context, change.before), _slice_rows(context, change.after)
        for at, index in enumerate(target.indexes):
            old, new = (_keys(rows, index.column) for rows in (before, after))
            removed = old.filter(pc.invert(pc.is_in(old, value_set=new)))
            added = new.filter(pc.invert(pc.is_in(new, value_set=old)))
            _check_lengths(added, index)
            for keys, is_removed in ((removed, True), (added, False)):
                if len(keys):
                    groups = _group_numbers(keys, at, target)
                    columns = [
                        keys,
                        pa.repeat(pa.scalar(is_removed), len(keys)),
                        ranges.group_ranges(groups, keys),
                        pa.array(placement[groups % len(placement)]),
                    ]
                    yield pa.RecordBatch.from_arrays(columns, schema=_ENTRIES)

    before, after = changes.sides()
    earlier = before.to_struct_array() if len(changes.before) else pa.nulls(len(before))
    rows = pa.table({"before": earlier, "after": after.to_struct_array()})
    sizes = bytes_to_read(before, part=KEYS) + bytes_to_read(after, part=KEYS)
    return run_on_rows(spark, cut_rows(rows, sizes, parallelism(spark)), read, _ENTRIES)


def _check_lengths(keys: pa.Array, index: SecondaryIndex) -> None:
    """Raise UnsupportedTableError for entries that are too long for the files of an index."""
    longest = pc.max(pc.binary_length(keys)).as_py() or 0
    if longest > LONGEST_KEY:
        raise UnsupportedTableError(
            f"a value of {index.column!r} and the key of its record have {longest} bytes, too many for an entry of the "
            f"secondary index {index.partition}; at most {LONGEST_KEY} are supported. Index another column"
        )


def _group_numbers(keys: pa.Array, at: int, target: IndexTarget) -> npt.NDArray[Any]:
    """Return the numbers of the file groups of entries of an index, in the numbering over all indexes."""
    return secondary_file_group_index_of(keys, len(target.groups[at]), target.version) + target.starts[at]


def _slice_rows(context: SliceContext, file_slice: FileSlice | None) -> pa.Table:
    batches = [] if file_slice is None else read_slice(context, file_slice)
    return pa.Table.from_batches(batches, context.output_schema)


def _keys(rows: pa.Table, column: str) -> pa.Array:
    flat = rows.select([column, RECORD_KEY]).combine_chunks()
    if not flat.num_rows:
        return pa.array([], pa.string())
    return pc.unique(entry_keys(flat.column(0).chunk(0), flat.column(1).chunk(0)))


def _records(rows: pa.Table, value: pa.Scalar) -> RecordChanges:
    """Return the records to write for entries of one file group, in one chunk. An entry that is removed from one file
    group of the table and added by another has moved with its row."""
    keys, is_removed = rows[_ENTRY].chunk(0), rows[_REMOVED].chunk(0)
    added, removed = pc.unique(keys.filter(pc.invert(is_removed))), pc.unique(keys.filter(is_removed))
    removed = removed.filter(pc.invert(pc.is_in(removed, value_set=added)))
    return RecordChanges(added, pa.repeat(value, len(added)), removed)
