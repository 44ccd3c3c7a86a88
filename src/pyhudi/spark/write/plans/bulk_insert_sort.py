"""Sort modes of a bulk insert: the arrangement of rows before they are written."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from pyhudi.config import Options, options
from pyhudi.config.enums import SortMode
from pyhudi.errors import SchemaMismatchError
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.keys.key_text import resolve


def arrange(rows: DataFrame, opts: Options, *, partitioned: bool) -> tuple[DataFrame, bool]:
    """Arrange rows by `hoodie.bulkinsert.sort.mode`; also return whether each partition's rows are adjacent.

    As in the original, NONE leaves rows where they are: every task writes a file for each partition it meets.
    """
    tasks = opts.get_typed(options.BULKINSERT_PARALLELISM)
    columns = opts.get_typed(options.BULKINSERT_SORT_COLUMNS)
    if columns:
        # the partitioner by columns of the user's choice
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
    """Check that the columns to sort by exist.

    Raises:
        SchemaMismatchError: one is not.
    """
    for name in opts.get_typed(options.BULKINSERT_SORT_COLUMNS):
        _sort_column(schema, name)


def _sort_column(schema: StructType, name: str) -> Column:
    if name in (RECORD_KEY, PARTITION_PATH):
        return F.col(name)
    return resolve(schema, name, "sort order", SchemaMismatchError)[0]


def _limited(rows: DataFrame, tasks: int) -> DataFrame:
    return rows.coalesce(tasks) if tasks else rows
