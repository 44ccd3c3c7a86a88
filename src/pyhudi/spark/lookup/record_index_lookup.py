"""Look-ups in the record index: keys are sent to the tasks that read the file groups where they can be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from pyhudi.index.record_index_groups import NOWHERE, RecordGroups
from pyhudi.index.record_index_values import locations_of
from pyhudi.metadata.reader.metadata_table import KEY
from pyhudi.metadata.records.metadata_record import RECORD_INDEX
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.execution.task_placement import placement_keys
from pyhudi.spark.indexes.record_index.record_index_reader import RecordIndex
from pyhudi.spark.indexes.record_index.record_index_writer import PARTITION
from pyhudi.spark.lookup.base_file_keys import OLD_PARTITION

FOUND_ID = "_pyhudi_found_id"
_FOUND_KEY, _GROUP, _TASK = "_pyhudi_found_key", "_pyhudi_group", "_pyhudi_task"
_KEYS_A_TASK = 200_000
Batches = Iterator[pa.RecordBatch]


def record_locations(rows: DataFrame, index: RecordIndex, count: int) -> DataFrame:
    """Look up the locations of the keys of *rows*: ``_pyhudi_found_key``, ``_pyhudi_old_partition``,
    ``_pyhudi_found_id``. Lazy.

    *count* is about how many rows there are. In an index that knows keys by partition, each is looked for in its own
    only.
    """
    groups = index.groups
    tasks = max(1, min(len(groups), -(-count // _KEYS_A_TASK)))
    keys = with_group(rows.select(RECORD_KEY, PARTITION_PATH), groups, tasks)
    out = StructType([StructField(name, StringType()) for name in (_FOUND_KEY, OLD_PARTITION, FOUND_ID)])

    def look_up(batches: Iterable[pa.RecordBatch]) -> Batches:
        parts = list(batches)
        if not parts:
            return
        table = pa.Table.from_batches(parts)
        yield from _look_up(index, table).combine_chunks().to_batches()

    return keys.repartition(tasks, _TASK).select(RECORD_KEY, _GROUP).mapInArrow(look_up, out)


def match(rows: DataFrame, places: DataFrame, *, partitioned: bool) -> DataFrame:
    """The rows with the places of their keys, null for those that are new."""
    condition = F.col(RECORD_KEY) == F.col(_FOUND_KEY)
    if partitioned:
        condition &= F.col(PARTITION_PATH) == F.col(OLD_PARTITION)
    return rows.join(places, condition, "left").drop(_FOUND_KEY)


def with_group(rows: DataFrame, groups: RecordGroups, tasks: int) -> DataFrame:
    """Rows with the file group of their keys, and the placement key of the task that serves it: group ``g`` is of task
    ``g mod tasks``. Rows whose partition has no file groups are left out."""
    out = StructType([*rows.schema.fields, StructField(_GROUP, IntegerType()), StructField(_TASK, IntegerType())])
    placement = np.array(placement_keys(tasks), dtype=np.int32)

    def add(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            numbers = groups.numbers(batch.column(RECORD_KEY), batch.column(PARTITION_PATH))
            found = batch.append_column(_GROUP, pa.array(numbers))
            found = found.append_column(_TASK, pa.array(placement[numbers % tasks]))
            yield found.filter(pa.array(numbers != NOWHERE)) if groups.partitioned else found

    return rows.mapInArrow(add, out)


def _look_up(index: RecordIndex, rows: pa.Table) -> pa.Table:
    """The places of keys (the first column; their file groups are the second)."""
    # file groups of one partition are looked up together
    families: dict[str, list[int]] = {}
    for number in pc.unique(rows[_GROUP]).to_pylist():
        families.setdefault(index.groups.prefix(number), []).append(number)
    found = []
    for prefix, numbers in families.items():
        mine = (
            rows if len(families) == 1 else rows.filter(pc.is_in(rows[_GROUP], value_set=pa.array(numbers, pa.int32())))
        )
        records = index.table.lookup(PARTITION, mine[RECORD_KEY], [RECORD_INDEX], prefix=prefix)
        places = locations_of(records[RECORD_INDEX])
        columns = [records[KEY], places["partition"], places["file_id"]]
        found.append(pa.table(columns, names=[_FOUND_KEY, OLD_PARTITION, FOUND_ID]))
    return pa.concat_tables(found)
