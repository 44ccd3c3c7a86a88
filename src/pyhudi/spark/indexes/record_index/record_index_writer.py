"""Writes the file groups of a record index, each in a task that gets all of its keys.

An index has one location per key. These tasks detect keys with two locations, within a write or between a write and the
index, and count them: an index that lacks locations must not be used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from pyhudi.arrow.group_runs import by_group
from pyhudi.errors import UnsupportedTableError
from pyhudi.format.hfile.hfile_writer import LONGEST_KEY
from pyhudi.metadata.file_groups.delta_commit_writer import GroupFiles, GroupSlice
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.metadata.reader.metadata_table import KEY, MetadataTable
from pyhudi.metadata.records.metadata_record import RECORD_INDEX_PAYLOAD
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.metadata.records.record_index_file_groups import RecordIndexFileGroups
from pyhudi.metadata.records.record_locations import decode_locations, encode_locations
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.spark.execution.python_workers import this_task
from pyhudi.spark.execution.row_tasks import Batches, map_in_arrow
from pyhudi.spark.helper_columns import INDEX_GROUP, INDEX_LOCATION
from pyhudi.spark.indexes.key_ranges import ranges_by_group, sorted_by_index_group
from pyhudi.spark.indexes.record_index.record_index_keys import KeyRouting
from pyhudi.spark.spark_errors import task_errors
from pyhudi.storage import Storage
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.fencing.write_fence import WriteFence

_STAT = "stat string, duplicates long"
_NO_KEYS = pa.array([], pa.string())
_INDEXED = ["k", "partition", "file_id"]


@dataclass(frozen=True, slots=True)
class RecordIndexWrite:
    """A write of file groups of a record index.

    Attributes:
        storage: Storage of the table.
        instant: Instant of the metadata table.
        version: Version of the table.
        groups: All file groups of the index.
        slices: Their current slices, by the number of the group.
        current: The index before the write; None: it is being built, so no lookups are possible, and deletes are not
            verified.
        looks_up_added: Added keys are looked up in ``current``, too, because they may have another location there.
        fence: As in `GroupFiles`.
    """

    storage: Storage
    instant: str
    version: int
    groups: RecordIndexFileGroups
    slices: Sequence[GroupSlice]
    current: MetadataTable | None = None
    looks_up_added: bool = False
    fence: WriteFence | None = None

    @property
    def files(self) -> GroupFiles:
        """Writer of the files of the index."""
        return GroupFiles(self.storage, RECORD_INDEX, self.instant, self.version, self.fence)


@dataclass(frozen=True, slots=True)
class KeyLocations:
    """Locations of keys.

    Attributes:
        files: Locations to which keys are added: number, partition, file_id, millis.
        partitions: Partitions from which keys are removed, by number.
    """

    files: pa.Table
    partitions: pa.Array


@dataclass(frozen=True, slots=True)
class KeyWriteResult:
    """Write stats of the files of an index, and the number of keys with more than one location."""

    stats: list[WriteStat]
    duplicates: int


def write_initial_keys(
    keys: DataFrame, files: pa.Table, target: RecordIndexWrite, routing: KeyRouting
) -> KeyWriteResult:
    """Write the keys of a table (`pyhudi.spark.indexes.record_index.record_index_keys`) to the first base files of the
    index. Runs a Spark job. Memory of a task: one range of the keys of a file group.

    Args:
        keys: The keys, routed by ``routing``.
        files: Their locations (`KeyLocations`).
        target: The index.
        routing: Their routing.
    """
    merge = LocationMerge.from_locations(KeyLocations(files, _NO_KEYS), target)
    ranges = len(routing.ranges)

    def write(batches: Iterable[pa.RecordBatch]) -> Batches:
        token = this_task().token
        for number, parts in ranges_by_group(batches, ranges):
            yield _result(*merge.write_base_file(number, parts, token))

    return _write(keys, write, routing.tasks)


def write_keys(keys: DataFrame, locations: KeyLocations, target: RecordIndexWrite, tasks: int | None) -> KeyWriteResult:
    """Write keys (`pyhudi.spark.indexes.record_index.record_index_keys`) to log files of the index, in ``tasks`` tasks
    (None: the keys of a group already are in one partition of the frame). Runs a Spark job. Memory of a task: the keys
    of one file group.

    A key that was removed from one location and is in another file has moved. A key that was removed from another
    partition than that of the index keeps its location.
    """
    merge = LocationMerge.from_locations(locations, target)

    def write(batches: Iterable[pa.RecordBatch]) -> Batches:
        token = this_task().token
        for number, rows in by_group(batches, INDEX_GROUP):
            records, duplicates = merge.records(number, rows)
            stat = target.files.write_log(target.slices[number], records, token=token) if len(records) else None
            yield _result(stat, duplicates)

    return _write(keys, write, tasks)


def _write(keys: DataFrame, write: Callable[[Iterable[pa.RecordBatch]], Batches], tasks: int | None) -> KeyWriteResult:
    """Write routed keys in tasks."""
    placed = keys.sortWithinPartitions(INDEX_GROUP) if tasks is None else sorted_by_index_group(keys, tasks)
    with task_errors():
        results = map_in_arrow(placed, write, _STAT).collect()
    return KeyWriteResult([json.loads(row[0]) for row in results if row[0] is not None], sum(row[1] for row in results))


def _result(stat: WriteStat | None, duplicates: int) -> pa.RecordBatch:
    """Return the result of a task for one file group: write stat as JSON, and number of duplicates."""
    columns = [pa.array([None if stat is None else json.dumps(stat)], pa.string()), pa.array([duplicates], pa.int64())]
    return pa.RecordBatch.from_arrays(columns, names=["stat", "duplicates"])


def count_duplicates(keys: DataFrame, locations: KeyLocations, target: RecordIndexWrite, tasks: int) -> int:
    """Return the number of keys with more than one location, as `write_keys` counts them. Writes nothing; runs a
    Spark job."""
    merge = LocationMerge.from_locations(locations, target)

    def count(batches: Iterable[pa.RecordBatch]) -> Batches:
        for number, rows in by_group(batches, INDEX_GROUP):
            _, duplicates = merge.records(number, rows)
            yield pa.RecordBatch.from_arrays([pa.array([duplicates], pa.int64())], names=["duplicates"])

    with task_errors():
        counts = map_in_arrow(sorted_by_index_group(keys, tasks), count, "duplicates long").collect()
    return sum(int(row[0]) for row in counts)


@dataclass(frozen=True, slots=True)
class LocationMerge:
    """Merge of added and removed keys with those of the index, one file group of it after the other.

    Attributes:
        files: As in `KeyLocations`, by number.
        partitions: As in `KeyLocations`.
        values: Records of the index for the locations ``files``.
        target: The write of the index.
    """

    files: pa.Table
    partitions: pa.Array
    values: pa.Array
    target: RecordIndexWrite

    @classmethod
    def from_locations(cls, locations: KeyLocations, target: RecordIndexWrite) -> LocationMerge:
        """Return the merge for keys with these locations."""
        files = locations.files.sort_by("number").combine_chunks()
        values = encode_locations(files.select(["partition", "file_id", "millis"]), target.version)
        return cls(files, locations.partitions, values, target)

    def write_base_file(self, number: int, parts: Iterable[pa.Table], token: str) -> tuple[WriteStat, int]:
        """Write the keys of a file group, range by range in their order. Return the write stat, and the number of keys
        with two locations."""
        counts: list[int] = []

        def entries() -> Iterator[tuple[pa.Array, pa.Array]]:
            for rows in parts:
                records, duplicates = self.records(number, rows)
                counts.append(duplicates)
                yield records.sorted()

        target = self.target
        stat = target.files.write_sorted(target.slices[number].file_id, entries(), token=token)
        return stat, sum(counts)

    def records(self, number: int, rows: pa.Table) -> tuple[RecordChanges, int]:
        """Return the last location of each key with the keys that have none any more, and the number of keys with two
        locations.

        Raises:
            UnsupportedTableError: A key is too long for the index.
        """
        keys, numbers = rows[RECORD_KEY].combine_chunks(), rows[INDEX_LOCATION].combine_chunks()
        _check_lengths(keys)
        is_removal = pc.less(numbers, 0)
        added, file_numbers = keys.filter(pc.invert(is_removal)), numbers.filter(pc.invert(is_removal))
        removed = pa.table(
            [keys.filter(is_removal), pc.subtract(-1, numbers.filter(is_removal).cast(pa.int64()))], names=["k", "p"]
        )
        added, file_numbers, duplicates = self._last(added, file_numbers)
        target = self.target
        removed_for_good = removed.filter(pc.invert(pc.is_in(removed["k"], value_set=added)))
        deletes = removed_for_good["k"].combine_chunks()
        if target.current is None:
            return RecordChanges(added, self.values.take(file_numbers), pc.unique(deletes)), duplicates
        # A partitioned index has a key by partition, so deletes need no lookup.
        to_look_up = deletes if not target.groups.partitioned else _NO_KEYS
        indexed = self._indexed_locations(
            number, pa.concat_arrays([to_look_up, added]) if target.looks_up_added else to_look_up
        )
        if target.looks_up_added:
            duplicates += self._count_in_other_groups(indexed, added, file_numbers, removed)
        if not target.groups.partitioned:
            deletes = indexed["k"].filter(self._has_left_partition(indexed, removed_for_good)).combine_chunks()
        return RecordChanges(added, self.values.take(file_numbers), pc.unique(deletes)), duplicates

    def _last(self, keys: pa.Array, file_numbers: pa.Array) -> tuple[pa.Array, pa.Array, int]:
        """Return each key once, with the number of its last location; and the number of further locations of keys."""
        encoded = keys.dictionary_encode()
        if len(encoded.dictionary) == len(keys):
            return keys, file_numbers, 0
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # The log files of a file group are one location.
        groups = _composite_keys(self.files["partition"], self.files["file_id"]).dictionary_encode().indices
        locations = groups.to_numpy(zero_copy_only=False).astype(np.int64)[file_numbers.to_numpy()]
        pairs = pc.count_distinct(pa.array(codes * (int(locations.max(initial=0)) + 1) + locations)).as_py()
        last = np.zeros(len(encoded.dictionary), dtype=np.int64)
        last[codes] = np.arange(len(codes))
        return keys.take(pa.array(last)), file_numbers.take(pa.array(last)), pairs - len(encoded.dictionary)

    def _indexed_locations(self, number: int, keys: pa.Array) -> pa.Table:
        """Return the locations that the index has for keys of a file group: k, partition, file_id."""
        assert self.target.current is not None
        if not len(keys):
            return pa.table(dict.fromkeys(_INDEXED, _NO_KEYS))
        prefix = self.target.groups.prefix(number)
        stored = self.target.current.lookup(RECORD_INDEX, keys, [RECORD_INDEX_PAYLOAD], prefix=prefix)
        where = decode_locations(stored[RECORD_INDEX_PAYLOAD])
        return pa.table([stored[KEY], where["partition"], where["file_id"]], names=_INDEXED)

    def _count_in_other_groups(
        self, indexed: pa.Table, added: pa.Array, file_numbers: pa.Array, removed: pa.Table
    ) -> int:
        """Return the number of keys that the index has in another file group, from which they were not removed."""
        rows = pc.index_in(indexed["k"], value_set=added).combine_chunks()
        added_files = self.files.take(file_numbers.take(rows))
        in_same_group = pc.equal(
            _composite_keys(added_files["partition"], added_files["file_id"]),
            _composite_keys(indexed["partition"], indexed["file_id"]),
        )
        elsewhere = indexed.filter(pc.invert(pc.fill_null(in_same_group, True)))
        return int(elsewhere.filter(pc.invert(self._has_left_partition(elsewhere, removed))).num_rows)

    def _has_left_partition(self, indexed: pa.Table, removed: pa.Table) -> pa.Array:
        """Return a mask of the keys that were removed from the partition that the index has for them."""
        partitions = self.partitions.take(removed["p"].combine_chunks())
        keys_left = _composite_keys(removed["k"], pa.chunked_array([partitions]))
        return pc.is_in(_composite_keys(indexed["k"], indexed["partition"]), value_set=keys_left)


def _check_lengths(keys: pa.Array) -> None:
    longest = pc.max(pc.binary_length(keys)).as_py() or 0
    if longest > LONGEST_KEY:
        raise UnsupportedTableError(
            f"a record key has {longest} bytes, too many for the record index; at most {LONGEST_KEY} are supported. "
            "Use another index (hoodie.index.type)"
        )


def _composite_keys(*columns: pa.ChunkedArray) -> pa.Array:
    texts = [(c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c).cast(pa.string()) for c in columns]
    return pc.binary_join_element_wise(*texts, "\0")
