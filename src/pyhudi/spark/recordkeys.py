"""Fills and updates the record index: keys are sent to the tasks that write its file groups.

What a write has added is read back from its base files, only their keys: the tasks that wrote them decided at last
which file took which record. Log files add no keys, unless the bucket index is in use, which needs no record index.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.format.columns import COMMIT_TIME, RECORD_KEY
from pyhudi.index.locations import encode_locations
from pyhudi.metadata.deltas import GroupSlice, Records, write_group_base, write_group_delta
from pyhudi.metadata.keys import group_of
from pyhudi.spark.frames import small_frame
from pyhudi.spark.placement import placement_keys
from pyhudi.spark.workers import settle_worker
from pyhudi.storage import Storage
from pyhudi.write.basereader import open_base

PARTITION = "record_index"
_GROUP, _FILE, _TASK = "_pyhudi_group", "_pyhudi_file", "_pyhudi_task"
_KEYS = f"{RECORD_KEY} string, {_FILE} int, {_GROUP} int, {_TASK} int"
_STAT = "stat string"
_GONE = -1
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Target:
    """The file groups of a record index that are written: by whom, when, and which (``slices``, by number). ``first``:
    base files are written, and one for each group."""

    storage: Storage
    instant: str
    version: int
    slices: Sequence[GroupSlice]
    first: bool = False

    def write(self, number: int, records: Records, token: str) -> Mapping[str, Any]:
        """Write one file group; returns the file's write stat."""
        where = self.slices[number]
        if self.first:
            return write_group_base(
                self.storage, PARTITION, where.file_id, self.instant, self.version, records, token=token
            )
        return write_group_delta(self.storage, PARTITION, where, self.instant, self.version, records, token=token)


def file_keys(
    spark: SparkSession, storage: Storage, files: pa.Table, groups: int, tasks: int, *, since: str | None = None
) -> DataFrame:
    """The keys that base files hold, with the number of the file, of the file group in an index of so many, and the
    placement key of that group's task. Lazy.

    ``files`` have the columns path and number; ``since``: only rows that were written by this instant.
    """
    placement = np.array(placement_keys(tasks), dtype=np.int32)
    names = [RECORD_KEY, *([COMMIT_TIME] if since else [])]
    schema = pa.schema([(name, pa.string()) for name in names])

    def read(batches: Iterable[pa.RecordBatch]) -> Batches:
        settle_worker()
        for batch in batches:
            for path, number in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                with open_base(storage, path) as base:
                    for rows in base.batches(schema):
                        keys = rows.column(RECORD_KEY)
                        if since is not None:
                            keys = keys.filter(pc.equal(rows.column(COMMIT_TIME), since))
                        yield _numbered(keys, number, groups, placement)

    frame = small_frame(spark, files.select(["path", "number"]))
    return frame.repartition(max(1, min(files.num_rows, 4 * _shuffles(spark)))).mapInArrow(read, _KEYS)


def gone_keys(rows: DataFrame, groups: int, tasks: int) -> DataFrame:
    """Keys of rows (their only column) that are deleted, in the form of `file_keys`. Lazy."""
    placement = np.array(placement_keys(tasks), dtype=np.int32)

    def number(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            yield _numbered(batch.column(0), _GONE, groups, placement)

    return rows.mapInArrow(number, _KEYS)


def write_keys(keys: DataFrame, files: pa.Table, target: Target, tasks: int) -> list[dict[str, Any]]:
    """Write keys (`file_keys`, `gone_keys`) to the file groups of the index; returns the write stats of the files.

    ``files`` have the columns number, partition, file_id and millis: where the keys of a file are, and since when. A
    key that one file has and that is gone elsewhere has moved. Runs a Spark job.
    """
    files = files.sort_by("number").combine_chunks()
    values = encode_locations(files.select(["partition", "file_id", "millis"]), target.version)

    def write(batches: Iterable[pa.RecordBatch]) -> Batches:
        from pyspark import TaskContext

        settle_worker()
        context = TaskContext.get()
        assert context is not None
        token = f"{context.partitionId()}-{context.stageId()}-{context.taskAttemptId()}"
        stats = [
            json.dumps(target.write(number, _records(keys, numbers, values), token))
            for number, keys, numbers in _by_group(batches)
        ]
        yield pa.RecordBatch.from_arrays([pa.array(stats, pa.string())], names=["stat"])

    moved = keys.repartition(tasks, _TASK).sortWithinPartitions(_GROUP)
    return [json.loads(row[0]) for row in moved.mapInArrow(write, _STAT).collect()]


def task_count(groups: int, spark: SparkSession) -> int:
    """The tasks that write an index of so many file groups."""
    return max(1, min(groups, _shuffles(spark)))


def _records(keys: pa.Array, numbers: pa.Array, values: pa.Array) -> Records:
    """What is written for keys of one file group: the last place of each, and the keys that are nowhere any more."""
    gone = pc.equal(numbers, _GONE)
    there, at = keys.filter(pc.invert(gone)), numbers.filter(pc.invert(gone))
    encoded = there.dictionary_encode()
    if len(encoded.dictionary) < len(there):
        # a key that is there twice is known by one of its places
        last = np.zeros(len(encoded.dictionary), dtype=np.int64)
        last[encoded.indices.to_numpy()] = np.arange(len(there))
        there, at = there.take(pa.array(last)), at.take(pa.array(last))
    lost = pc.unique(keys.filter(gone))
    lost = lost.filter(pc.invert(pc.is_in(lost, value_set=there)))
    return Records(there, values.take(at), lost)


def _numbered(keys: pa.Array, number: int, groups: int, placement: np.ndarray[Any, Any]) -> pa.RecordBatch:
    of_group = group_of(keys, groups)
    columns = [
        keys,
        pa.array(np.full(len(keys), number, dtype=np.int32)),
        pa.array(of_group),
        pa.array(placement[of_group % len(placement)]),
    ]
    return pa.RecordBatch.from_arrays(columns, names=[RECORD_KEY, _FILE, _GROUP, _TASK])


def _by_group(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Array, pa.Array]]:
    """Keys and file numbers of each file group; batches are sorted by group. Memory: one group."""
    held: list[pa.RecordBatch] = []
    current: int | None = None
    for batch in batches:
        groups = batch.column(_GROUP).to_numpy()
        bounds = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]
        for start, end in pairwise(bounds):
            if start == end:
                continue
            group = int(groups[start])
            if group != current and held:
                yield _joined(held, current)
                held = []
            current = group
            held.append(batch.slice(start, end - start))
    if held:
        yield _joined(held, current)


def _joined(held: Sequence[pa.RecordBatch], group: int | None) -> tuple[int, pa.Array, pa.Array]:
    assert group is not None
    table = pa.Table.from_batches(held).combine_chunks()
    return group, table[RECORD_KEY].combine_chunks(), table[_FILE].combine_chunks()


def _shuffles(spark: SparkSession) -> int:
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 200)
