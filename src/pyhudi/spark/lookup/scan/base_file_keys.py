"""Keys in base files, with the file and the row position of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from pyhudi.config.enums import InvalidText, ReadEngine
from pyhudi.format.file_names import file_names_of
from pyhudi.merge.base_file_readers import open_base
from pyhudi.read.execution.file_schemas import written_schemas
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.spark.column_names import quoted
from pyhudi.spark.execution.local_relations import small_frame
from pyhudi.spark.execution.row_tasks import Batches, map_in_arrow
from pyhudi.spark.execution.slice_tasks import file_task_count
from pyhudi.spark.helper_columns import OLD_BASE_PATH, OLD_FILE_ID, OLD_FILE_NAME, OLD_PARTITION, SEARCHED_FILE
from pyhudi.spark.lookup.key_lookup import KeyLookup
from pyhudi.spark.read.base_files.base_file_scan import can_number_rows
from pyhudi.spark.read.base_files.spark_file_reader import is_missing_file_system, read_files
from pyhudi.storage import Storage
from pyhudi.table.bootstrap_index import is_skeleton
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_slicing import has_log_files
from pyhudi.write.location_columns import ROW_POSITION


@dataclass(frozen=True, slots=True)
class BaseFiles:
    """Base files to be searched.

    Attributes:
        table: Their slices (SLICE_SCHEMA) and file_no, a number for each.
    """

    table: pa.Table

    @classmethod
    def from_slices(cls, slices: pa.Table, partitions: Sequence[str] | None, *, log_only: bool = False) -> BaseFiles:
        """Return the base files of slices, of some partitions (None: all). ``log_only`` includes slices without one."""
        keep = pc.or_(pc.is_valid(slices["base_path"]), pa.scalar(log_only))
        if partitions is not None:
            keep = pc.and_(keep, pc.is_in(slices["partition"], value_set=pa.array(partitions, pa.string())))
        searched = slices.filter(keep).combine_chunks()
        return cls(searched.append_column("file_no", pa.array(range(searched.num_rows), pa.int32())))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def split(self) -> tuple[BaseFiles, BaseFiles]:
        """Return the files of slices without log files, and those of slices with log files."""
        logged = has_log_files(self.table)
        return BaseFiles(self.table.filter(pc.invert(logged))), BaseFiles(self.table.filter(logged))

    def names(self) -> pa.Array:
        """Return the file names without their folders."""
        return file_names_of(self.table["base_path"])

    def frame(self, spark: SparkSession, *columns: str) -> DataFrame:
        """Return columns of the table as a small DataFrame, under the names of the helper columns."""
        names = {
            "file_no": SEARCHED_FILE,
            "partition": OLD_PARTITION,
            "base_path": OLD_BASE_PATH,
            "file_id": OLD_FILE_ID,
            "name": OLD_FILE_NAME,
        }
        data = [self.names() if c == "name" else self.table[c] for c in columns]
        return small_frame(spark, pa.table(data, names=[names[c] for c in columns]))


def stored_types(client: TableMetaClient, files: BaseFiles, names: Sequence[str]) -> dict[str, set[pa.DataType | None]]:
    """Return the types of columns in the files; None where a file lacks one."""
    schemas = written_schemas(client.active_timeline(), files.table).values()
    return {n: {s.field(n).type if n in s.names else None for s in schemas} for n in names}


def base_rows(
    spark: SparkSession, lookup: KeyLookup, files: BaseFiles, schema: StructType, *, engine: ReadEngine
) -> DataFrame:
    """Read columns of base files, with row positions.

    Args:
        spark: The session.
        lookup: The table and its settings.
        files: Files to read.
        schema: Columns to read, with their types.
        engine: ARROW: pyhudi's reader on the executors, which casts to ``schema``. SPARK: Spark's reader, which
            requires files with exactly these types. AUTO: Spark's reader for Parquet files that it can reach.

    Returns:
        The columns, `ROW_POSITION` and a reference to the file: `SEARCHED_FILE`, or `OLD_FILE_NAME` if Spark reads the
        files.
    """
    paths = files.table["base_path"].to_pylist()
    unique = pc.count_distinct(files.names()).as_py() == len(files)
    numbered = can_number_rows(files.table["base_path"], schema.names) and not any(map(is_skeleton, paths))
    if engine is not ReadEngine.ARROW and numbered and unique:
        try:
            uris = [lookup.client.storage.uri(path) for path in paths]
            rows = read_files(spark, schema, uris)
            return rows.select(
                *(quoted([name]) for name in schema.names),
                F.col("_metadata.file_name").alias(OLD_FILE_NAME),
                F.col("_metadata.row_index").alias(ROW_POSITION),
            )
        except Exception as error:  # PySpark has no class for this error of the JVM
            if not is_missing_file_system(error):
                raise
    return _arrow_rows(spark, lookup, files, schema)


def with_file_no(spark: SparkSession, rows: DataFrame, files: BaseFiles) -> DataFrame:
    """Return rows of `base_rows` with `SEARCHED_FILE` and `OLD_PARTITION`."""
    if OLD_FILE_NAME in rows.columns:
        numbers = F.broadcast(files.frame(spark, "name", "file_no", "partition"))
        return rows.join(numbers, OLD_FILE_NAME).drop(OLD_FILE_NAME)
    return rows.join(F.broadcast(files.frame(spark, "file_no", "partition")), SEARCHED_FILE)


def _arrow_rows(spark: SparkSession, lookup: KeyLookup, files: BaseFiles, schema: StructType) -> DataFrame:
    storage, invalid_text = lookup.client.storage, lookup.invalid_text
    target = from_spark_json(schema.json())
    out = positioned_schema(schema)

    def read(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            for number, path in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                yield from read_positioned_rows(storage, path, number, target, invalid_text)

    tasks = file_task_count(spark, len(files))
    paths = files.frame(spark, "file_no", "base_path").repartition(tasks)
    return map_in_arrow(paths, read, out)


def read_positioned_rows(
    storage: Storage, path: str, number: int, schema: pa.Schema, invalid_text: InvalidText = InvalidText.FAIL
) -> Batches:
    """Read a base file batch by batch.

    Args:
        storage: Storage of the table.
        path: Path of the file, relative to the root of the table.
        number: Number of the file.
        schema: Columns to read; those that the file lacks are null.
        invalid_text: Treatment of text that is not UTF-8.

    Yields:
        Batches with the columns of ``schema``, `SEARCHED_FILE` and `ROW_POSITION`.
    """
    start = 0
    with open_base(storage, path, invalid_text) as base:
        for batch in base.batches(schema):
            end = start + batch.num_rows
            yield positioned_batch(batch, schema, number, pa.array(np.arange(start, end, dtype=np.int64)))
            start = end


def positioned_schema(schema: StructType) -> StructType:
    """Return columns with `SEARCHED_FILE` and `ROW_POSITION`."""
    return StructType(
        [*schema.fields, StructField(SEARCHED_FILE, IntegerType()), StructField(ROW_POSITION, LongType())]
    )


def positioned_batch(batch: pa.RecordBatch, schema: pa.Schema, number: int, positions: pa.Array) -> pa.RecordBatch:
    """Return the rows of a file as a batch of `positioned_schema`.

    Args:
        batch: The rows.
        schema: Columns to return; those that the rows lack are null.
        number: Number of the file.
        positions: Positions of the rows in it.
    """
    columns = [
        batch.column(f.name).cast(f.type) if f.name in batch.schema.names else pa.nulls(batch.num_rows, f.type)
        for f in schema
    ]
    numbers = pa.repeat(pa.scalar(number, pa.int32()), batch.num_rows)
    return pa.RecordBatch.from_arrays(
        [*columns, numbers, positions], names=[*schema.names, SEARCHED_FILE, ROW_POSITION]
    )
