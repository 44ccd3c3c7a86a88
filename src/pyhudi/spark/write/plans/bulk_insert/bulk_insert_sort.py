"""Sort modes of bulk_insert: the order of rows before they are written."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from pyhudi.config import Options, options
from pyhudi.config.enums import SortMode
from pyhudi.errors import SchemaMismatchError
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.column_names import resolve


def sort_for_bulk_insert(rows: DataFrame, opts: Options, *, partitioned: bool) -> tuple[DataFrame, bool]:
    """Sort rows by `hoodie.bulkinsert.sort.mode`; also return whether the rows of each partition are adjacent.

    As in Apache Hudi, NONE leaves the order unchanged: each task writes a file for each partition in its rows.
    """
    tasks = opts.get_typed(options.BULKINSERT_PARALLELISM)
    columns = opts.get_typed(options.BULKINSERT_SORT_COLUMNS)
    if columns:
        # the partitioner by user-specified columns
        keys = [F.col(PARTITION_PATH), *(_sort_column(rows.schema, name) for name in columns)]
        if opts.get_typed(options.BULKINSERT_SORT_SUFFIX_RECORD_KEY):
            keys.append(F.col(RECORD_KEY))
        return _limited(rows.sort(*keys), tasks), True
    mode = opts.get_typed(options.BULKINSERT_SORT_MODE)
    if mode is SortMode.GLOBAL_SORT:
        return _limited(rows.sort(PARTITION_PATH, RECORD_KEY), tasks), True
    if mode is SortMode.PARTITION_SORT:
        return _limited(rows, tasks).sortWithinPartitions(PARTITION_PATH, RECORD_KEY), True
    if mode is SortMode.NONE:
        return rows, not partitioned
    moved = _limited(rows, tasks)
    if partitioned:
        moved = rows.repartition(tasks, PARTITION_PATH) if tasks else rows.repartition(PARTITION_PATH)
    if mode is SortMode.PARTITION_PATH_REPARTITION_AND_SORT:
        return moved.sortWithinPartitions(PARTITION_PATH), True
    return moved, not partitioned


def check_sort_columns(schema: StructType, opts: Options) -> None:
    """Check that the sort columns exist.

    Raises:
        SchemaMismatchError: A sort column does not exist.
    """
    for name in opts.get_typed(options.BULKINSERT_SORT_COLUMNS):
        _sort_column(schema, name)


def _sort_column(schema: StructType, name: str) -> Column:
    if name in (RECORD_KEY, PARTITION_PATH):
        return F.col(name)
    return resolve(schema, name, "sort order", SchemaMismatchError)[0]


def _limited(rows: DataFrame, tasks: int) -> DataFrame:
    return rows.coalesce(tasks) if tasks else rows
