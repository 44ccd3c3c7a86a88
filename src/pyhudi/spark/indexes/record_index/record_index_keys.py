"""Keys of a table, routed to the tasks that write the file groups of a record index.

New keys of a write are read back from its files, because the tasks that wrote them assigned the records to files. With
the bucket index, log files contain new keys, too, because that index does not look up keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config.enums import InvalidText
from pyhudi.format.file_names import LOG, file_names_of, parse_names
from pyhudi.format.log import DATA_BLOCKS, decode_records, scan_blocks
from pyhudi.merge.base_file_readers import open_base
from pyhudi.merge.file_group_reader import read_slice
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.metadata.records.record_index_file_groups import NO_FILE_GROUP, RecordIndexFileGroups
from pyhudi.schema.meta_fields import COMMIT_TIME, PARTITION_PATH, RECORD_KEY
from pyhudi.spark.execution.local_relations import small_frame
from pyhudi.spark.execution.row_tasks import Batches, rows_of_tasks
from pyhudi.spark.execution.slice_tasks import KEYS, bytes_to_read, cut_rows, file_task_count, parallelism, run_on_rows
from pyhudi.spark.execution.task_placement import placement_keys
from pyhudi.spark.helper_columns import INDEX_GROUP, INDEX_LOCATION
from pyhudi.spark.indexes.key_ranges import ONE_RANGE, KeyRanges
from pyhudi.storage import Storage
from pyhudi.write.location_columns import PLACEMENT_KEY

_KEYS = pa.schema(
    [(RECORD_KEY, pa.string()), *((name, pa.int32()) for name in (INDEX_LOCATION, INDEX_GROUP, PLACEMENT_KEY))]
)


@dataclass(frozen=True, slots=True)
class KeyRouting:
    """Routing of keys to the tasks that write the index.

    Attributes:
        groups: File groups of the index.
        tasks: Number of tasks that write them.
        ranges: Ranges of keys in which each file group is written.
    """

    groups: RecordIndexFileGroups
    tasks: int
    ranges: KeyRanges = ONE_RANGE

    def route(self, keys: pa.Array, partitions: pa.Array | str, locations: pa.Array | int) -> pa.RecordBatch:
        """Return keys with their location (`INDEX_LOCATION`), their file group of the index, or range of keys in it
        (`INDEX_GROUP`), and the `PLACEMENT_KEY` of the task that writes it.

        Args:
            keys: Record keys.
            partitions: Their partitions, or that of all.
            locations: The numbers of their locations, or that of all.
        """
        placement = np.array(placement_keys(self.tasks), dtype=np.int32)
        group_numbers = self.groups.numbers(keys, partitions)
        if isinstance(locations, int):
            locations = pa.array(np.full(len(keys), locations, dtype=np.int32))
        written = self.ranges.group_ranges(group_numbers, keys)
        columns = [keys, locations, written, pa.array(placement[group_numbers % self.tasks])]
        routed = pa.RecordBatch.from_arrays(columns, names=[RECORD_KEY, INDEX_LOCATION, INDEX_GROUP, PLACEMENT_KEY])
        # Keys of partitions without a file group have never been in the index.
        return routed.filter(pa.array(group_numbers != NO_FILE_GROUP)) if self.groups.partitioned else routed


def removed_from(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert numbers of partitions to numbers of locations for keys that were removed from them, and back."""
    return pc.subtract(pa.scalar(-1, pa.int32()), numbers)


def file_keys(
    spark: SparkSession,
    storage: Storage,
    files: pa.Table,
    routing: KeyRouting,
    *,
    since: str | None = None,
    invalid_text: InvalidText,
) -> DataFrame:
    """Read the keys of base files and log files. Lazy.

    Args:
        spark: The session.
        storage: Storage of the table.
        files: Files, with the columns path, partition and number, and optionally ``tail``: the number of last rows to
            read (null: all).
        routing: Routing of the keys.
        since: Read only rows that were written by this instant.
        invalid_text: Treatment of keys that are not UTF-8.

    Returns:
        The keys (`INDEX_LOCATION`, `INDEX_GROUP`, `PLACEMENT_KEY`).
    """

    def read(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            for path, partition, number, tail in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                for keys in _keys_of(storage, path, since, tail, invalid_text):
                    yield routing.route(keys, partition, number)

    if "tail" not in files.column_names:
        files = files.append_column("tail", pa.nulls(files.num_rows, pa.int64()))
    frame = small_frame(spark, files.select(["path", "partition", "number", "tail"]))
    tasks = file_task_count(spark, files.num_rows)
    return rows_of_tasks(frame.repartition(tasks), read, _KEYS)


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


def slice_keys(spark: SparkSession, context: SliceContext, slices: pa.Table, routing: KeyRouting) -> DataFrame:
    """Read the current keys of file slices, with their log files merged. Lazy.

    Args:
        spark: The session.
        context: Settings for reading the slices.
        slices: Slices (`pyhudi.table.view.file_slicing.SLICE_SCHEMA`), and the column ``number``.
        routing: Routing of the keys.

    Returns:
        The keys (`INDEX_LOCATION`, `INDEX_GROUP`, `PLACEMENT_KEY`); `INDEX_LOCATION` is the number of the slice.
    """
    context = replace(context, columns=(RECORD_KEY,))

    def read(row: Mapping[str, Any]) -> Batches:
        for rows in read_slice(context, FileSlice.from_row(row)):
            yield routing.route(rows.column(0).cast(pa.string()), row["partition"], row["number"])

    pieces = cut_rows(slices, bytes_to_read(slices, part=KEYS), parallelism(spark))
    return run_on_rows(spark, pieces, read, _KEYS)


def removed_keys(rows: DataFrame, partitions: pa.Array, routing: KeyRouting) -> DataFrame:
    """Return removed keys in the form of `file_keys`. Lazy.

    Args:
        rows: Rows with the keys, and with the partitions from which they were removed.
        partitions: All partitions; rows of others are skipped.
        routing: Routing of the keys.
    """

    def number(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            keys, paths = (batch.column(name).cast(pa.string()) for name in (RECORD_KEY, PARTITION_PATH))
            at = pc.index_in(paths, value_set=partitions)
            is_listed = at.is_valid()
            locations = removed_from(at).filter(is_listed)
            yield routing.route(keys.filter(is_listed), paths.filter(is_listed), locations)

    return rows_of_tasks(rows.select(RECORD_KEY, PARTITION_PATH), number, _KEYS)
