"""Comparison of the record index and the secondary indexes of a table with its rows, as by the options
``--validate-record-index-count``, ``--validate-record-index-content`` and ``--validate-secondary-index`` of Apache
Hudi's HoodieMetadataTableValidator.

Each row of the table stands for an entry of each index. Spark counts the entries of both sides, so that only numbers
and one example of each difference get to the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import Options
from pyhudi.merge.file_group_reader import read_slice
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.metadata.indexes.record_index_definition import has_partitioned_record_index
from pyhudi.metadata.indexes.secondary_index_definition import (
    SecondaryIndex,
    can_be_indexed,
    entry_keys,
    secondary_indexes,
)
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.metadata.reader.metadata_table import KEY, MetadataTable
from pyhudi.metadata.reader.metadata_validation import DIFFERENCE_SCHEMA
from pyhudi.metadata.records.metadata_record import RECORD_INDEX_PAYLOAD, SECONDARY_INDEX_PAYLOAD
from pyhudi.metadata.records.record_locations import decode_locations
from pyhudi.read.execution.file_slice_reader import column_names, slice_context
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.schema.table_types import as_nullable
from pyhudi.spark.execution.row_tasks import Batches, rows_of_tasks
from pyhudi.spark.execution.slice_tasks import SlicePieces, file_task_count, parallelism, run_on_slices
from pyhudi.spark.spark_errors import task_errors
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView

MISSING, LEFT, ELSEWHERE, TWICE = (
    "lacks entries of rows",
    "has entries without a row",
    "has other file groups than the rows of these keys",
    "has one entry for several rows of a key",
)
"""Differences, in the words that follow the name of the index."""
_ENTRIES = pa.schema(
    [("index", pa.string()), ("entry", pa.string()), ("location", pa.string()), ("indexed", pa.int64())]
)


def index_differences(spark: SparkSession, table: TableSnapshot, opts: Options) -> pa.Table:
    """Compare the record index and the secondary indexes with the rows of a table. Runs a Spark job, which reads these
    indexes, and the record keys and indexed columns of all rows.

    Returns:
        One row per index and difference (`DIFFERENCE_SCHEMA`), whose ``problem`` has the number of entries and the
        first of them. Indexes that pyhudi does not maintain are not compared, such as those of floating-point columns,
        and of tables whose files do not store the record keys (`hoodie.populate.meta.fields=false`).

    Raises:
        MetadataTableError: The metadata table cannot be used.
    """
    table_schema = resolve_table_schema(table)
    if table_schema is None or not table.config.populate_meta_fields:
        return DIFFERENCE_SCHEMA.empty_table()
    metadata = MetadataTable.open(table)
    schema = as_nullable(table_schema.schema)
    secondary = [
        one
        for one in secondary_indexes(table.storage, table.config)
        if one.partition in metadata.partitions
        and one.column in schema.names
        and can_be_indexed(schema.field(one.column).type)
    ]
    has_record_index = RECORD_INDEX in metadata.partitions
    names = [*([RECORD_INDEX] if has_record_index else []), *(one.partition for one in secondary)]
    if not names:
        return DIFFERENCE_SCHEMA.empty_table()
    columns = dict.fromkeys((RECORD_KEY, *(one.column for one in secondary)))
    context = slice_context(table, schema, names=column_names(table, schema), opts=opts)
    by_partition = has_record_index and has_partitioned_record_index(table.storage, table.config)
    rows = _entries_of_rows(
        spark,
        replace(context, columns=tuple(columns)),
        FileSystemView.load(table).latest_slices().combine_chunks(),
        secondary,
        record_index=has_record_index,
        by_partition=by_partition,
    )
    differences = _counted(rows.union(_stored_entries(spark, metadata, names, by_partition=by_partition)))
    with task_errors():
        counts = differences.collect()
    problems = [f"{row[0]} {row.problem} ({row.number:,}), such as {row.entry!r}" for row in counts]
    nulls = [pa.nulls(len(problems), field.type) for field in list(DIFFERENCE_SCHEMA)[1:]]
    return pa.Table.from_arrays([pa.array(problems, pa.string()), *nulls], schema=DIFFERENCE_SCHEMA)


def _counted(entries: DataFrame) -> DataFrame:
    """Return the differences between rows (``indexed`` = 0) and indexes (1): index, problem, number of entries, and the
    first of these."""
    is_indexed = F.col("indexed") == 1
    sides = entries.groupBy("index", "entry").agg(
        F.sum("indexed").alias("indexed"),
        F.sum(1 - F.col("indexed")).alias("rows"),
        F.max(F.when(is_indexed, F.col("location"))).alias("indexed_at"),
        F.max(F.when(~is_indexed, F.col("location"))).alias("row_at"),
    )
    problem = (
        F.when(F.col("indexed") == 0, F.lit(MISSING))
        .when(F.col("rows") == 0, F.lit(LEFT))
        .when((F.col("rows") > 1) & (F.col("index") == RECORD_INDEX), F.lit(TWICE))
        .when(F.col("indexed_at") != F.col("row_at"), F.lit(ELSEWHERE))
    )
    different = sides.select("index", "entry", problem.alias("problem")).where("problem IS NOT NULL")
    counts = different.groupBy("index", "problem").agg(F.count("*").alias("number"), F.min("entry").alias("entry"))
    return counts.orderBy("index", "problem")


def _entries_of_rows(
    spark: SparkSession,
    context: SliceContext,
    slices: pa.Table,
    secondary: Sequence[SecondaryIndex],
    *,
    record_index: bool,
    by_partition: bool,
) -> DataFrame:
    """Return the entries that the rows of file slices stand for. Lazy; tasks read the slices."""

    def read(one: FileSlice) -> Batches:
        for rows in read_slice(context, one):
            keys = rows.column(RECORD_KEY).cast(pa.string())
            if record_index:
                entries = _with_partition(keys, pa.scalar(one.partition)) if by_partition else keys
                yield _entries(RECORD_INDEX, entries, _location(one.partition, one.file_id), indexed=0)
            for index in secondary:
                yield _entries(index.partition, entry_keys(rows.column(index.column), keys), "", indexed=0)

    return run_on_slices(spark, SlicePieces.from_slices(slices, parallelism(spark)), read, _ENTRIES)


def _stored_entries(
    spark: SparkSession, metadata: MetadataTable, names: Sequence[str], *, by_partition: bool
) -> DataFrame:
    """Return the entries of indexes. Lazy; tasks read the file groups."""
    groups = [(name, group) for name in names for group in metadata.file_slices(name)]

    def read(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                name, group = groups[number]
                payload = RECORD_INDEX_PAYLOAD if name == RECORD_INDEX else SECONDARY_INDEX_PAYLOAD
                for records in metadata.scan_groups([group], [payload]).combine_chunks().to_batches():
                    keys = records.column(KEY)
                    if name != RECORD_INDEX:
                        yield _entries(name, keys, "", indexed=1)
                        continue
                    locations = decode_locations(records.column(payload)).combine_chunks()
                    partitions, ids = (locations[column].chunk(0) for column in ("partition", "file_id"))
                    entries = _with_partition(keys, partitions) if by_partition else keys
                    yield _entries(name, entries, _location(partitions, ids), indexed=1)

    # in a limited number of tasks, because each gets all file groups
    tasks = file_task_count(spark, len(groups))
    return rows_of_tasks(spark.range(0, len(groups), 1, tasks), read, _ENTRIES)


def _with_partition(keys: pa.Array, partitions: pa.Array | pa.Scalar) -> pa.Array:
    """Return record keys with their partitions, which a partitioned record index tells apart."""
    return pc.binary_join_element_wise(partitions, keys, ": ")


def _location(partition: Any, file_id: Any) -> Any:
    """Return partition and file group as one text, or an array of texts."""
    if isinstance(partition, str):
        return f"{partition}/{file_id}"
    return pc.binary_join_element_wise(partition, file_id, "/")


def _entries(index: str, entries: pa.Array, locations: pa.Array | str, *, indexed: int) -> pa.RecordBatch:
    count = len(entries)
    if isinstance(locations, str):
        locations = pa.repeat(pa.scalar(locations), count)
    columns = [pa.repeat(pa.scalar(index), count), entries, locations, pa.repeat(pa.scalar(indexed, pa.int64()), count)]
    return pa.RecordBatch.from_arrays(columns, schema=_ENTRIES)
