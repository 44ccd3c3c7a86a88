"""Lookup in the record index: keys are sent to the tasks that read the file groups of the index to which they belong.

One Spark job yields everything that planning a write requires: the location of each key, the number of rows per file
group, and whether keys are repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructField, StructType

from pyhudi.arrow.group_runs import by_group
from pyhudi.index.record_index import RecordIndex
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.metadata.reader.metadata_table import KEY
from pyhudi.metadata.records.metadata_record import RECORD_INDEX_PAYLOAD
from pyhudi.metadata.records.record_index_file_groups import NO_FILE_GROUP, RecordIndexFileGroups
from pyhudi.metadata.records.record_locations import decode_locations
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.execution.cached_frames import PersistFrame
from pyhudi.spark.execution.row_tasks import Batches, map_in_arrow
from pyhudi.spark.execution.slice_tasks import coalesced, parallelism
from pyhudi.spark.execution.task_placement import placement_keys
from pyhudi.spark.helper_columns import INDEX_GROUP, OLD_FILE_ID, OLD_PARTITION
from pyhudi.spark.indexes.key_ranges import sorted_by_index_group
from pyhudi.spark.keys.deduplication import is_marked_delete
from pyhudi.spark.lookup.batch_summary import BatchSummary
from pyhudi.write.location_columns import IS_DELETE, PLACEMENT_KEY

_INDEXED_KEY, _ROW_COUNT = "_pyhudi_indexed_key", "_pyhudi_row_count"
_KEYS = StructType(
    [
        StructField(RECORD_KEY, StringType()),
        StructField(PARTITION_PATH, StringType()),
        StructField(IS_DELETE, BooleanType()),
        StructField(INDEX_GROUP, IntegerType()),
        StructField(PLACEMENT_KEY, IntegerType()),
    ]
)
_LOCATIONS = StructType(
    [
        *_KEYS.fields,
        StructField(OLD_PARTITION, StringType()),
        StructField(OLD_FILE_ID, StringType()),
        StructField(_ROW_COUNT, LongType()),
    ]
)
_BY = (PARTITION_PATH, OLD_PARTITION, OLD_FILE_ID, IS_DELETE)


@dataclass(frozen=True, slots=True)
class BatchLocations:
    """Locations of the keys of a batch by the record index.

    Attributes:
        locations: One row per key: the key, partition path and delete mark of one of its rows, the file group of the
            index to which it belongs (`INDEX_GROUP`; `NO_FILE_GROUP` if the partition has none), its `PLACEMENT_KEY`,
            and its location (`OLD_PARTITION`, `OLD_FILE_ID`). Keys of one file group of the index are in one partition
            of the DataFrame.
        counts: Number of keys (``keys``) and rows (``rows``) by partition path, location and delete mark.
        max_rows_of_key: Maximum number of rows with the same key.
        groups: The file groups of the index.
    """

    locations: DataFrame
    counts: pa.Table
    max_rows_of_key: int
    groups: RecordIndexFileGroups

    @property
    def batch(self) -> BatchSummary:
        """Summary of the batch, without ranges."""
        paths = pc.unique(self.counts[PARTITION_PATH]).to_pylist()
        return BatchSummary(pc.sum(self.counts["rows"]).as_py() or 0, tuple(sorted(paths)), self.max_rows_of_key > 1)

    @property
    def located_rows(self) -> pa.Table:
        """Those of ``counts`` whose keys are in the index."""
        return self.counts.filter(pc.is_valid(self.counts[OLD_FILE_ID]))

    @property
    def deletes(self) -> bool:
        """True if rows of the batch whose keys are in the index are deletes."""
        return bool(pc.any(self.located_rows[IS_DELETE]).as_py())

    def match(self, rows: DataFrame, *, broadcast: bool) -> DataFrame:
        """Return rows with the locations of their keys, null for new keys."""
        indexed = self.locations.where(F.col(OLD_FILE_ID).isNotNull())
        indexed = indexed.select(F.col(RECORD_KEY).alias(_INDEXED_KEY), OLD_PARTITION, OLD_FILE_ID)
        condition = F.col(RECORD_KEY) == F.col(_INDEXED_KEY)
        if self.groups.partitioned:
            condition &= F.col(PARTITION_PATH) == F.col(OLD_PARTITION)
        return rows.join(F.broadcast(indexed) if broadcast else indexed, condition, "left").drop(_INDEXED_KEY)


def look_up_locations(rows: DataFrame, index: RecordIndex, persist: PersistFrame) -> BatchLocations:
    """Look up the keys of rows. Runs a Spark job.

    Args:
        rows: Keyed rows.
        index: The record index. If it is partitioned, keys are looked up in the partitions of their rows only.
        persist: Persists the locations.

    Returns:
        The locations of the keys.
    """
    groups = index.groups
    tasks = max(1, min(len(groups), parallelism(rows.sparkSession)))
    mark = is_marked_delete() if IS_DELETE in rows.columns else F.lit(False)
    keys = _with_group(rows.select(RECORD_KEY, PARTITION_PATH, mark.alias(IS_DELETE)), groups, tasks)

    def look_up(batches: Iterable[pa.RecordBatch]) -> Batches:
        for number, part in by_group(batches, INDEX_GROUP):
            yield _located(index, number, part)

    locations = persist(map_in_arrow(sorted_by_index_group(keys, tasks), look_up, _LOCATIONS))
    summed = coalesced(locations.groupBy(*_BY).agg(F.count(F.lit(1)), F.sum(_ROW_COUNT), F.max(_ROW_COUNT))).collect()
    schema = pa.schema(
        [
            *((name, pa.string()) for name in _BY[:3]),
            (IS_DELETE, pa.bool_()),
            ("keys", pa.int64()),
            ("rows", pa.int64()),
        ]
    )
    counts = pa.Table.from_arrays(
        [pa.array([row[i] for row in summed], field.type) for i, field in enumerate(schema)], schema=schema
    )
    return BatchLocations(locations, counts, max((row[6] for row in summed), default=0), groups)


def _with_group(rows: DataFrame, groups: RecordIndexFileGroups, tasks: int) -> DataFrame:
    """Return rows with the file group of their keys, and the placement key of its task: group ``g`` belongs to task
    ``g mod tasks``."""
    placement = np.array(placement_keys(tasks), dtype=np.int32)

    def add(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            numbers = groups.numbers(batch.column(0), batch.column(1))
            columns = [*batch.columns, pa.array(numbers), pa.array(placement[numbers % tasks])]
            yield pa.RecordBatch.from_arrays(columns, names=_KEYS.names)

    return map_in_arrow(rows, add, _KEYS)


def _located(index: RecordIndex, number: int, rows: pa.Table) -> pa.RecordBatch:
    """Return the keys of one file group with their locations."""
    keys, paths = rows[RECORD_KEY].combine_chunks(), rows[PARTITION_PATH].combine_chunks()
    same = pc.binary_join_element_wise(paths, keys, "\0") if index.partitioned else keys
    codes = same.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    distinct = rows.take(pa.array(first)).combine_chunks()
    keys = distinct[RECORD_KEY].combine_chunks()
    partitions, ids = _look_up_keys(index, number, keys)
    if index.partitioned:
        in_partition = pc.equal(partitions, distinct[PARTITION_PATH].combine_chunks())
        ids = pc.if_else(in_partition, ids, pa.scalar(None, pa.string()))
        partitions = pc.if_else(in_partition, partitions, pa.scalar(None, pa.string()))
    columns = [*(column.combine_chunks() for column in distinct.columns), partitions, ids, pa.array(counts, pa.int64())]
    return pa.RecordBatch.from_arrays(columns, names=_LOCATIONS.names)


def _look_up_keys(index: RecordIndex, number: int, keys: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return partition and file id of keys of one file group, null for keys that are not in the index."""
    if number == NO_FILE_GROUP:
        nothing = pa.nulls(len(keys), pa.string())
        return nothing, nothing
    records = index.table.lookup(RECORD_INDEX, keys, [RECORD_INDEX_PAYLOAD], prefix=index.groups.prefix(number))
    locations = decode_locations(records[RECORD_INDEX_PAYLOAD])
    at = pc.index_in(keys, value_set=records[KEY].combine_chunks())
    return locations["partition"].combine_chunks().take(at), locations["file_id"].combine_chunks().take(at)
