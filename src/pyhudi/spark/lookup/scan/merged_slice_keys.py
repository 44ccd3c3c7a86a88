"""Current keys of file slices with log files, after merging the logs.

Most lookups read base files only: even if the row of a key is deleted in a log file, its next version goes to the same
file group. Merging is needed if log files contain keys that are not in the base file, and if the stored version decides
about the incoming one: whether a record moves to another partition, or is a duplicate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyhudi.errors import UnsupportedTableError
from pyhudi.merge.file_group_reader import open_slice, read_slice
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.read.execution.file_slice_reader import column_names, slice_context
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.spark.execution.row_tasks import Batches
from pyhudi.spark.execution.slice_tasks import KEYS, bytes_to_read, cut_rows, parallelism, run_on_rows
from pyhudi.spark.lookup.key_lookup import KeyLookup
from pyhudi.spark.lookup.scan.base_file_keys import BaseFiles, positioned_batch, positioned_schema
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.write.location_columns import UNKNOWN_POSITION


def merged_slice_rows(spark: SparkSession, lookup: KeyLookup, files: BaseFiles, schema: StructType) -> DataFrame:
    """Read the merged rows of file slices.

    With `KeyLookup.include_deleted`, rows of base files are returned even if log files delete them.

    Args:
        spark: The session.
        lookup: The table and settings of the lookup.
        files: Base files of slices with log files.
        schema: Columns to return, with their types.

    Returns:
        The columns, `SEARCHED_FILE`, and an unknown position.

    Raises:
        UnsupportedTableError: The table has no schema.
    """
    pinned = TableSnapshot.load(lookup.client)
    table_schema = resolve_table_schema(pinned)
    if table_schema is None:
        raise UnsupportedTableError("the table has log files, but no schema")
    context = slice_context(
        pinned, table_schema.schema, names=column_names(pinned, table_schema.schema), opts=lookup.opts
    )
    names = [name for name in schema.names if name in table_schema.schema.names]
    context = replace(context, columns=tuple(names))
    arrow_schema = from_spark_json(schema.json())
    include_deleted = lookup.include_deleted
    pieces = cut_rows(files.table, bytes_to_read(files.table, part=KEYS), parallelism(spark))

    def merged_rows(row: Mapping[str, Any]) -> Batches:
        file_slice = FileSlice.from_row(row)
        for rows in _with_deleted(context, file_slice) if include_deleted else read_slice(context, file_slice):
            unknown = pa.repeat(pa.scalar(UNKNOWN_POSITION, pa.int64()), rows.num_rows)
            yield positioned_batch(rows, arrow_schema, row["file_no"], unknown)

    return run_on_rows(spark, pieces, merged_rows, from_spark_json(positioned_schema(schema).json()))


def _with_deleted(context: SliceContext, file_slice: FileSlice) -> Batches:
    """Yield all rows of the base file, deleted or not, and the rows that only log files have."""
    with open_slice(context, file_slice) as opened:
        base_rows = read_slice(context, replace(file_slice, log_paths=(), log_sizes=()))
        log_records = opened.log_records
        if log_records is None:
            yield from base_rows
            return
        matches = opened.reader.match(log_records)
        yield from (part.rows for part in matches.parts(base_rows))
        for records in matches.unmatched():
            yield log_records.changes(records).rows.select(list(context.columns))
