"""Look-ups in the record index: keys are sent to the tasks that read the file groups where they can be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from pyhudi.format.columns import PARTITION_PATH, RECORD_KEY
from pyhudi.index.locations import locations_of
from pyhudi.metadata.keys import data_partition_id, group_of
from pyhudi.metadata.records import RECORD_INDEX
from pyhudi.metadata.table import KEY, MetadataTable
from pyhudi.spark.lookup import OLD_PARTITION
from pyhudi.spark.placement import placement_keys

RECORD_INDEX_PARTITION = "record_index"
FOUND_ID = "_pyhudi_found_id"
_FOUND_KEY, _GROUP = "_pyhudi_found_key", "_pyhudi_group"
_KEYS_A_TASK = 200_000
Batches = Iterator[pa.RecordBatch]


def record_places(rows: DataFrame, index: MetadataTable, count: int, *, partitioned: bool) -> DataFrame:
    """Where the keys of *rows* are: ``_pyhudi_found_key``, ``_pyhudi_old_partition``, ``_pyhudi_found_id``. Lazy.

    *count* is about how many rows there are. *partitioned*: the index knows keys by partition, and each is looked for
    in its own only.
    """
    groups = index.groups(RECORD_INDEX_PARTITION).num_rows
    tasks = max(1, min(groups, -(-count // _KEYS_A_TASK)))
    keys = rows.select(RECORD_KEY, PARTITION_PATH)
    if partitioned:
        moved = keys.repartition(tasks, PARTITION_PATH)
    else:
        moved = with_group(keys, groups, tasks).repartition(tasks, _GROUP).select(RECORD_KEY, PARTITION_PATH)
    out = StructType([StructField(name, StringType()) for name in (_FOUND_KEY, OLD_PARTITION, FOUND_ID)])

    def look_up(batches: Iterable[pa.RecordBatch]) -> Batches:
        parts = list(batches)
        if not parts:
            return
        table = pa.Table.from_batches(parts)
        found = _in_partitions(index, table) if partitioned else _look_up(index, table[RECORD_KEY])
        yield from found.combine_chunks().to_batches()

    return moved.mapInArrow(look_up, out)


def match(rows: DataFrame, places: DataFrame, *, partitioned: bool) -> DataFrame:
    """The rows with the places of their keys, null for those that are new."""
    condition = rows[RECORD_KEY] == places[_FOUND_KEY]
    if partitioned:
        condition &= rows[PARTITION_PATH] == places[OLD_PARTITION]
    return rows.join(places, condition, "left").drop(_FOUND_KEY)


def with_group(rows: DataFrame, groups: int, tasks: int) -> DataFrame:
    """Rows with the placement key of the task that serves the file group of their record key in an index of so many
    groups; group ``g`` is of task ``g mod tasks``."""
    out = StructType([*rows.schema.fields, StructField(_GROUP, IntegerType())])
    placement = np.array(placement_keys(tasks), dtype=np.int32)

    def add(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            numbers = placement[group_of(batch.column(RECORD_KEY), groups) % tasks]
            yield batch.append_column(_GROUP, pa.array(numbers))

    return rows.mapInArrow(add, out)


def _look_up(index: MetadataTable, keys: pa.ChunkedArray, prefix: str = "") -> pa.Table:
    found = index.lookup(RECORD_INDEX_PARTITION, keys, [RECORD_INDEX], prefix=prefix)
    places = locations_of(found[RECORD_INDEX])
    return pa.table([found[KEY], places["partition"], places["file_id"]], names=[_FOUND_KEY, OLD_PARTITION, FOUND_ID])


def _in_partitions(index: MetadataTable, rows: pa.Table) -> pa.Table:
    partitions = pc.unique(rows[PARTITION_PATH]).to_pylist()
    return pa.concat_tables(
        _look_up(
            index,
            rows[RECORD_KEY].filter(pc.equal(rows[PARTITION_PATH], partition)),
            f"record-index-{data_partition_id(partition)}-",
        )
        for partition in partitions
    )
