"""The keys of a table on their way to the tasks that write the file groups of a record index.

What a write has added is read back from its files, only their keys: the tasks that wrote them decided at last which
file took which record. Log files add keys where the bucket index is in use, which does not look whether a key is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config.enums import InvalidText
from pyhudi.format.file_names import LOG, file_names_of, parse_names
from pyhudi.format.log import DATA_BLOCKS, decode_records, scan_blocks
from pyhudi.index.record_index_groups import NO_FILE_GROUP, RecordGroups
from pyhudi.merge.file_group_reader import FileSlice, SliceContext, read_slice
from pyhudi.schema.meta_fields import COMMIT_TIME, PARTITION_PATH, RECORD_KEY
from pyhudi.spark.execution.driver_frames import small_frame
from pyhudi.spark.execution.python_workers import prepare_worker
from pyhudi.spark.execution.task_placement import placement_keys
from pyhudi.spark.session_settings import shuffle_partitions
from pyhudi.storage import Storage
from pyhudi.write.rows.base_file_batches import open_base

FILE, GROUP, TASK = "_pyhudi_file", "_pyhudi_group", "_pyhudi_task"
"""Columns of frames of keys: the number of the key's location, the number of the file group of the index that has the
key, and the placement key of the task that writes that file group."""
_KEYS = f"{RECORD_KEY} string, {FILE} int, {GROUP} int, {TASK} int"
Batches = Iterator[pa.RecordBatch]


def removed_from(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    """The numbers of locations for keys that are gone from partitions with these numbers; and back."""
    return pc.subtract(pa.scalar(-1, pa.int32()), numbers)


def file_keys(
    spark: SparkSession,
    storage: Storage,
    files: pa.Table,
    groups: RecordGroups,
    tasks: int,
    *,
    since: str | None = None,
    invalid_text: InvalidText = InvalidText.FAIL,
) -> DataFrame:
    """The keys that base files and log files hold (`FILE`, `GROUP`, `TASK`). Lazy.

    ``files`` have the columns path, partition and number, and maybe ``tail``: the number of last rows that are wanted
    (null: all). ``since``: only rows that were written by this instant. ``invalid_text``: what becomes of keys that are
    not UTF-8.
    """
    placement = np.array(placement_keys(tasks), dtype=np.int32)

    def read(batches: Iterable[pa.RecordBatch]) -> Batches:
        prepare_worker()
        for batch in batches:
            for path, partition, number, tail in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                for keys in _keys_of(storage, path, since, tail, invalid_text):
                    yield _numbered(keys, partition, number, groups, placement)

    if "tail" not in files.column_names:
        files = files.append_column("tail", pa.nulls(files.num_rows, pa.int64()))
    frame = small_frame(spark, files.select(["path", "partition", "number", "tail"]))
    return frame.repartition(max(1, min(files.num_rows, 4 * shuffle_partitions(spark)))).mapInArrow(read, _KEYS)


def _keys_of(
    storage: Storage, path: str, since: str | None, tail: int | None, invalid_text: InvalidText
) -> Iterator[pa.Array]:
    names = [RECORD_KEY, *([COMMIT_TIME] if since and tail is None else [])]
    if parse_names(file_names_of(pa.array([path])))["kind"][0].as_py() == LOG:
        with storage.open_input(path) as source:
            for block in scan_blocks(source):
                if block.type in DATA_BLOCKS and (since is None or block.instant == since):
                    records = decode_records(block, columns=[RECORD_KEY], invalid_text=invalid_text)
                    yield records[RECORD_KEY].combine_chunks()
        return
    schema = pa.schema([(name, pa.string()) for name in names])
    with open_base(storage, path, invalid_text) as base:
        if tail is not None:
            yield from (rows.column(RECORD_KEY) for rows in base.last(schema, tail))
            return
        for rows in base.batches(schema):
            keys = rows.column(RECORD_KEY)
            yield keys if since is None else keys.filter(pc.equal(rows.column(COMMIT_TIME), since))


def slice_keys(
    spark: SparkSession,
    context: SliceContext,
    slices: Sequence[tuple[FileSlice, int]],
    groups: RecordGroups,
    tasks: int,
) -> DataFrame:
    """The keys of the rows that file slices hold now, log files merged, like `file_keys`, each with the number of its
    slice. Lazy."""
    placement = np.array(placement_keys(tasks), dtype=np.int32)
    context = replace(context, columns=(RECORD_KEY,))

    def read(batches: Iterable[pa.RecordBatch]) -> Batches:
        prepare_worker()
        for batch in batches:
            for at in batch.column(0).to_pylist():
                one, number = slices[at]
                for rows in read_slice(context, one):
                    yield _numbered(rows.column(0).cast(pa.string()), one.partition, number, groups, placement)

    frame = small_frame(spark, pa.table({"at": pa.array(range(len(slices)), pa.int32())}))
    return frame.repartition(max(1, min(len(slices), 4 * shuffle_partitions(spark)))).mapInArrow(read, _KEYS)


def removed_keys(rows: DataFrame, partitions: pa.Array, groups: RecordGroups, tasks: int) -> DataFrame:
    """Keys that are gone, in the form of `file_keys`. Lazy. *rows* have them and the partitions that they are gone
    from, which are among ``partitions``; others are left out."""
    placement = np.array(placement_keys(tasks), dtype=np.int32)

    def number(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            keys, paths = (batch.column(name).cast(pa.string()) for name in (RECORD_KEY, PARTITION_PATH))
            at = pc.index_in(paths, value_set=partitions)
            known = at.is_valid()
            locations = removed_from(at).filter(known)
            yield _numbered(keys.filter(known), paths.filter(known), locations, groups, placement)

    return rows.select(RECORD_KEY, PARTITION_PATH).mapInArrow(number, _KEYS)


def _numbered(
    keys: pa.Array,
    partitions: pa.Array | str,
    locations: pa.Array | int,
    groups: RecordGroups,
    placement: np.ndarray[tuple[int], np.dtype[np.int32]],
) -> pa.RecordBatch:
    of_group = groups.numbers(keys, partitions)
    if isinstance(locations, int):
        locations = pa.array(np.full(len(keys), locations, dtype=np.int32))
    columns = [keys, locations, pa.array(of_group), pa.array(placement[of_group % len(placement)])]
    found = pa.RecordBatch.from_arrays(columns, names=[RECORD_KEY, FILE, GROUP, TASK])
    # what has no file group has never been in the index
    return found.filter(pa.array(of_group != NO_FILE_GROUP)) if groups.partitioned else found


def task_count(groups: int, spark: SparkSession) -> int:
    """Return the number of tasks that write an index of ``groups`` file groups."""
    return max(1, min(groups, shuffle_partitions(spark)))
