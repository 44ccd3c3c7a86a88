"""Slices with log files in one scan of Spark's: base files and Parquet blocks of logs side by side.

Spark's own vectorised reader reads all of them, with column pruning and filter push-down, as files of an archive
(`pyhudi.spark.read.merge_on_read.log_archive`). Which of their rows are superseded a small job finds by keys, positions
and ordering values alone; the scan leaves these out by numbers of files and rows. No rows go through Python.

Folders of the archive tell partition columns, by which Spark prunes, and the number of each file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructField, StructType

from pyhudi.config import Options, options
from pyhudi.config.enums import PartitionValues, ReadEngine
from pyhudi.merge.file_group_reader import FileSlice, SliceContext
from pyhudi.merge.parquet_blocks import ParquetBlock, parquet_blocks
from pyhudi.merge.row_replacement import superseded_rows
from pyhudi.read.schema.file_schemas import as_held, file_parts
from pyhudi.spark.execution.slice_tasks import SlicePieces, parallelism, run_on_slices
from pyhudi.spark.keys.key_text import quoted_name
from pyhudi.spark.read.base_files.base_file_scan import ROW_NUMBER, read_engine
from pyhudi.spark.read.base_files.partition_columns import can_be_told
from pyhudi.spark.read.base_files.partition_folders import FILE_NUMBER, level
from pyhudi.spark.read.base_files.spark_file_reader import FileReader, read_settings
from pyhudi.spark.read.merge_on_read.log_archive import ArchivedRange, LogArchive, can_be_archived, write_archive
from pyhudi.spark.read.merge_on_read.row_exclusion import (
    BITMAP_SCHEMA,
    LARGEST_WITH_BITMAPS,
    bitmap_of_file,
    left_out_by_bitmaps,
)
from pyhudi.spark.spark_types import spark_schema

if TYPE_CHECKING:
    from pyhudi.read.scan_plan import ScanPlan
    from pyhudi.table.pinned_table import PinnedTable

_MOST_LOG_FILES = 1000
"""Log files up to which the driver reads the headers of their blocks."""
_MOST_FILES = 10_000
"""Files of the archive, whose index every task reads."""
_THREADS = 8


def native_log_scan(spark: SparkSession, table: PinnedTable, plan: ScanPlan, settings: Options) -> DataFrame | None:
    """The rows of slices, some of which have log files, with all columns of the plan and without its conditions; None
    where Spark cannot read them so, or has no folder for the index."""
    folder, context = settings.get_typed(options.READ_LOG_INDEX_FOLDER), plan.merging
    root = table.storage.uri()
    if folder is None or context is None or read_engine(settings) is ReadEngine.ARROW:
        return None
    if not _can_be_scanned(table, plan, context, settings):
        return None
    slices = [FileSlice.of(row) for row in plan.tasks.to_pylist()]
    with ThreadPool(_THREADS) as pool:
        blocks = pool.map(lambda one: parquet_blocks(context, one, lambda has: _holds(plan.schema, has)), slices)
    found = [each for each in blocks if each is not None]
    if len(found) < len(blocks):
        return None
    archived, numbers = _archived(plan, found)
    if len(archived) > _MOST_FILES or not can_be_archived(root, [each.path for each in archived]):
        return None
    archive = write_archive(folder, root, archived)
    rows = _read(spark, plan, archive, archived, root)
    pieces = SlicePieces.of(plan.with_logs(), parallelism(spark), whole=False)
    hidden = run_on_slices(spark, pieces, _FindSupersededRows(context, numbers), BITMAP_SCHEMA)
    return left_out_by_bitmaps(rows, hidden)


def _can_be_scanned(table: PinnedTable, plan: ScanPlan, context: SliceContext, settings: Options) -> bool:
    """True if all base files are Parquet of the table's own columns and types, and folders can tell what paths do."""
    base = plan.tasks.filter(pc.is_valid(plan.tasks["base_path"]))
    if plan.commit_times is not None or plan.path_columns or context.constant_columns or context.names_at is not None:
        return False
    if plan.bootstrapped()[0].tasks.num_rows:  # base files without the data columns
        return False
    if not base.num_rows or not pc.all(pc.ends_with(base["base_path"], ".parquet")).as_py():
        return False
    if len(pc.list_flatten(plan.tasks["log_paths"])) > _MOST_LOG_FILES:
        return False
    if (pc.sum(base["base_size"]).as_py() or 0) > LARGEST_WITH_BITMAPS:
        return False
    if plan.told and settings.get_typed(options.READ_PARTITION_VALUES) is PartitionValues.FILE:
        return False
    if not all(pc.all(value.counts).as_py() for value in plan.told.values()):
        return False
    if plan.told and not can_be_told({name: value.values for name, value in plan.told.items()}):
        return False
    parts = file_parts(table, plan, base)
    return len(parts) == 1 and not parts[0].names and parts[0].held.equals(plan.schema)


def _holds(wanted: pa.Schema, has: pa.Schema) -> bool:
    """True if a block has all columns with the types that the table has for them."""
    return set(wanted.names) <= set(has.names) and as_held(wanted, has, {}).equals(wanted)


def _archived(
    plan: ScanPlan, blocks: list[list[ParquetBlock]]
) -> tuple[list[ArchivedRange], dict[tuple[str, str], int]]:
    """All files of the scan, and for each file group the number of the first of its own: that of the base file, which
    those of its blocks follow."""
    levels = [level(name, value.values).to_pylist() for name, value in plan.told.items()]
    partitions = plan.partition_values["partition"].to_pylist()
    folders = dict(zip(partitions, zip(*levels, strict=True), strict=True)) if levels else {}
    archived: list[ArchivedRange] = []
    numbers: dict[tuple[str, str], int] = {}
    number = 0
    for task, own in zip(plan.tasks.to_pylist(), blocks, strict=True):
        above = "".join(f"{name}/" for name in folders.get(task["partition"], ()))
        numbers[task["partition"], task["file_id"]] = number
        path = task["base_path"]
        ranges = [] if path is None else [(number, path.rpartition("/")[2], ParquetBlock(path, 0, task["base_size"]))]
        for i, block in enumerate(own, 1):
            name = block.path.rpartition("/")[2].lstrip("._")
            ranges.append((number + i, f"{name}-{block.offset}.parquet", block))
        for n, name, one in ranges:
            archived.append(ArchivedRange(f"{above}{FILE_NUMBER}={n}/{name}", one.path, one.offset, one.length))
        number += 1 + len(own)
    return archived, numbers


def _read(
    spark: SparkSession, plan: ScanPlan, archive: LogArchive, archived: list[ArchivedRange], root: str
) -> DataFrame:
    told = set(plan.told)
    own = list(spark_schema(plan.schema))
    last = [f for f in own if f.name in told]
    schema = StructType([*(f for f in own if f.name not in told), *last, StructField(FILE_NUMBER, LongType())])
    more = {"basePath": archive.base_path, **archive.options}
    with read_settings(spark, len(archived), root):
        rows = FileReader(spark, schema, more=more).read([archive.base_path + each.name for each in archived])
    names = [quoted_name(name) for name in plan.schema.names]
    return rows.select(*names, FILE_NUMBER, sf.col("_metadata.row_index").alias(ROW_NUMBER))


@dataclass(frozen=True, slots=True)
class _FindSupersededRows:
    """Finds the rows of a slice's files that are not shown."""

    context: SliceContext
    numbers: Mapping[tuple[str, str], int]

    def __call__(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        first = self.numbers[file_slice.partition, file_slice.file_id]
        base, blocks = superseded_rows(replace(self.context, base_rows=None), file_slice)
        for number, rows in enumerate([base, *blocks], first):
            yield from bitmap_of_file(number, rows)
