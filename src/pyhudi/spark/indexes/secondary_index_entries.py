"""Entries of secondary indexes, computed by comparing file slices before and after a write, and written to the file
groups of the indexes.

Each row that a write changes belongs to a file slice that it writes. The slices before and after the write are read,
only the record keys and the indexed columns, and the differences are the index updates. This is correct for
each operation and each merge mode.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.arrow.group_runs import by_group
from pyhudi.merge.file_group_reader import read_slice
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.metadata.file_groups.delta_commit_writer import GroupFiles, GroupSlice
from pyhudi.metadata.indexes.file_slice_changes import GroupChange
from pyhudi.metadata.indexes.secondary_index_definition import SecondaryIndex, entry_keys, entry_value
from pyhudi.metadata.records.file_group_hash import secondary_file_group_index_of
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.spark.execution.python_workers import prepare_worker, this_task
from pyhudi.spark.execution.task_placement import placement_keys
from pyhudi.spark.helper_columns import INDEX_GROUP
from pyhudi.spark.session_settings import shuffle_partitions
from pyhudi.storage import Storage
from pyhudi.timeline.fencing.write_fence import WriteFence
from pyhudi.write.location_columns import PLACEMENT_KEY

_ENTRY, _REMOVED = "_pyhudi_entry", "_pyhudi_entry_removed"
_ENTRIES = f"{_ENTRY} string, {_REMOVED} boolean, {INDEX_GROUP} int, {PLACEMENT_KEY} int"
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class IndexTarget:
    """Secondary indexes to be written: the file groups of each (``groups``), and the writer and instant. ``first``:
    base files are written. ``fence``: as in `GroupFiles`."""

    storage: Storage
    instant: str
    version: int
    indexes: Sequence[SecondaryIndex]
    groups: Sequence[Sequence[GroupSlice]]
    first: bool = False
    fence: WriteFence | None = None

    @property
    def starts(self) -> list[int]:
        """Return the number of the first file group of each index in a numbering over all indexes, and at the end the
        total number of groups."""
        return [0, *np.cumsum([len(groups) for groups in self.groups]).tolist()]

    def write(self, number: int, records: RecordChanges, token: str) -> Mapping[str, Any]:
        """Write one file group; return the write stat of the file."""
        at = int(np.searchsorted(self.starts, number, side="right")) - 1
        where, partition = self.groups[at][number - self.starts[at]], self.indexes[at].partition
        files = GroupFiles(self.storage, partition, self.instant, self.version, self.fence)
        return files.write(where, records, first=self.first, token=token)


def write_entries(
    spark: SparkSession, context: SliceContext, changes: Sequence[GroupChange], target: IndexTarget
) -> list[dict[str, Any]]:
    """Update indexes with changes of file groups; return the write stats of the files. Runs a Spark job.

    ``context`` reads the record key and the indexed columns.
    """
    count = target.starts[-1]
    tasks = max(1, min(count, shuffle_partitions(spark)))
    value = entry_value(target.version)

    def write(batches: Iterable[pa.RecordBatch]) -> Batches:
        prepare_worker()
        token = this_task().token
        groups = by_group(batches, INDEX_GROUP)
        parts = ((number, _records(rows[_ENTRY].chunk(0), rows[_REMOVED].chunk(0), value)) for number, rows in groups)
        stats = [json.dumps(target.write(number, records, token)) for number, records in parts if len(records)]
        yield pa.RecordBatch.from_arrays([pa.array(stats, pa.string())], names=["stat"])

    entries = _entries(spark, context, changes, target, tasks)
    moved = entries.repartition(tasks, PLACEMENT_KEY).sortWithinPartitions(INDEX_GROUP)
    return [json.loads(row[0]) for row in moved.mapInArrow(write, "stat string").collect()]


def _entries(
    spark: SparkSession, context: SliceContext, changes: Sequence[GroupChange], target: IndexTarget, tasks: int
) -> DataFrame:
    """Return the entries that are added and removed, with the file group of each. Lazy."""
    placement = np.array(placement_keys(tasks), dtype=np.int32)

    def read(batches: Iterable[pa.RecordBatch]) -> Batches:
        prepare_worker()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                change = changes[number]
                before, after = _slice_rows(context, change.before), _slice_rows(context, change.after)
                for at, index in enumerate(target.indexes):
                    old, new = (_keys(rows, index.column) for rows in (before, after))
                    removed = old.filter(pc.invert(pc.is_in(old, value_set=new)))
                    added = new.filter(pc.invert(pc.is_in(new, value_set=old)))
                    for keys, is_removed in ((removed, True), (added, False)):
                        if len(keys):
                            yield _placed(keys, at, is_removed, target, placement)

    number = len(changes)
    return spark.range(0, number, 1, numPartitions=max(1, number)).mapInArrow(read, _ENTRIES)


def _placed(keys: pa.Array, at: int, is_removed: bool, target: IndexTarget, placement: np.ndarray[Any, Any]) -> Any:
    groups = secondary_file_group_index_of(keys, len(target.groups[at]), target.version) + target.starts[at]
    columns = [
        keys,
        pa.repeat(pa.scalar(is_removed), len(keys)),
        pa.array(groups.astype(np.int32)),
        pa.array(placement[groups % len(placement)]),
    ]
    return pa.RecordBatch.from_arrays(columns, names=[_ENTRY, _REMOVED, INDEX_GROUP, PLACEMENT_KEY])


def _slice_rows(context: SliceContext, file_slice: FileSlice | None) -> pa.Table:
    batches = [] if file_slice is None else read_slice(context, file_slice)
    return pa.Table.from_batches(batches, context.output_schema)


def _keys(rows: pa.Table, column: str) -> pa.Array:
    flat = rows.select([column, RECORD_KEY]).combine_chunks()
    if not flat.num_rows:
        return pa.array([], pa.string())
    return pc.unique(entry_keys(flat.column(0).chunk(0), flat.column(1).chunk(0)))


def _records(keys: pa.Array, is_removed: pa.Array, value: pa.Scalar) -> RecordChanges:
    """Return the records to write for entries of one file group. An entry that is removed from one file group of the
    table and added by another has moved with its row."""
    added, removed = pc.unique(keys.filter(pc.invert(is_removed))), pc.unique(keys.filter(is_removed))
    removed = removed.filter(pc.invert(pc.is_in(removed, value_set=added)))
    return RecordChanges(added, pa.repeat(value, len(added)), removed)
