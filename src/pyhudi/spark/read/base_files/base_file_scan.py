"""Scan of base files by Spark's own readers.

Files are read in parts with the same columns (narrower types than those of the table are cast, other names renamed) and
the same source of partition columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from multiprocessing.pool import ThreadPool
from typing import Protocol
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructField, StructType

from pyhudi.config import options
from pyhudi.errors import QueryError
from pyhudi.merge.log_changed_rows import BASE_POSITION
from pyhudi.read.execution.file_schemas import FilePart, file_parts
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.schema.logical_types.variants import VARIANT, is_variant
from pyhudi.schema.logical_types.vectors import is_vector
from pyhudi.schema.name_resolution import matches_ignoring_case
from pyhudi.spark.column_names import quoted_name
from pyhudi.spark.execution.local_relations import constant, union
from pyhudi.spark.helper_columns import SCANNED_FILE, SCANNED_ROW
from pyhudi.spark.read.base_files.column_conversion import converted_column
from pyhudi.spark.read.base_files.partition_columns import PartitionColumns, partition_columns
from pyhudi.spark.read.base_files.partition_folders import Folders
from pyhudi.spark.read.base_files.spark_file_reader import (
    FileReader,
    is_missing_file_system,
    is_mount_error,
    read_settings,
)
from pyhudi.spark.read.base_files.vector_column import schema_in_files
from pyhudi.spark.read.spark_scan import SparkScan
from pyhudi.spark.spark_types import HAS_VARIANTS, spark_schema

STREAM_METADATA = "_spark_metadata"
"""Folders of Spark's own streams. What is below, at any depth, is not listed by its readers of files and streams."""
_PLANNERS = 4
"""Threads that create the DataFrames of parts; they mostly wait for Spark."""
_reached = {"file://"}
"""File systems that Spark has reached in this process."""


class FileNumbers(Protocol):
    """Numbers that identify files: of given paths, and as Spark computes them if folders do not provide them."""

    def numbers_of(self, paths: pa.ChunkedArray) -> pa.Int64Array: ...

    def column(self) -> Column: ...


def can_number_rows(paths: pa.ChunkedArray, columns: Iterable[str]) -> bool:
    """Return True if Spark provides the names of base files and the positions of rows in them.

    Its column ``_metadata`` has them for Parquet files, unless the table has a column of this name.

    Args:
        paths: Paths of the files; null where a file slice has none.
        columns: The columns to read.
    """
    is_parquet = pc.ends_with(pc.drop_null(paths), ".parquet")
    return bool(pc.all(is_parquet, min_count=0).as_py()) and not matches_ignoring_case("_metadata", columns)


@dataclass(frozen=True, slots=True)
class ScanExtras:
    """Additional columns and files of a scan of base files. The columns require `can_number_rows`.

    Attributes:
        numbers: Add the number of the file and the position of the row in it as the last columns.
        positions: Add the position of the row as the last column.
        files: Tasks for additional files, which have the columns of the plan.
        base_positions: Read `BASE_POSITION` from them, which is null in base files.
    """

    numbers: FileNumbers | None = None
    positions: bool = False
    files: pa.Table | None = None
    base_positions: bool = False

    @property
    def has_positions(self) -> bool:
        """True if the scan has row positions."""
        return self.positions or self.numbers is not None


def read_natively(scan: SparkScan, *, required: bool, extras: ScanExtras | None = None) -> DataFrame | None:
    """Read all base files of a plan by Spark's own readers. Lazy.

    Args:
        scan: The scan.
        required: Raise an error if Spark cannot read the files.
        extras: Additional columns and files.

    Returns:
        The unfiltered rows with all columns of the table; None if Spark cannot read the files.

    Raises:
        QueryError: Spark cannot read the files, and this is required.
    """
    extras = extras or ScanExtras()
    numbers, more = extras.numbers, extras.files
    plan, root = scan.plan, scan.table.storage.uri()
    reason = _why_not_by_spark(plan, root)
    if reason is not None:
        if required:
            raise _unreadable(reason)
        return None
    if numbers is not None:
        plan = replace(plan, tasks=_numbered(plan.tasks, numbers))
        more = None if more is None else _numbered(more, numbers)
    scan = scan.with_plan(plan)
    sources = partition_columns(scan, numbered=numbers is not None)
    if sources is None:
        if required:
            names = ", ".join(plan.partition_columns.values)
            raise _unreadable(f"Spark cannot parse the values of the partition columns {names} from so many paths")
        return None
    try:
        files = plan.tasks.num_rows + (0 if more is None else more.num_rows)
        with read_settings(scan.spark, files, root):
            return _read(scan, sources, replace(extras, files=more))
    except Exception as e:  # PySpark has no class for this error of the JVM
        if required or not is_missing_file_system(e):
            raise
        return None


def _why_not_by_spark(plan: ScanPlan, root: str) -> str | None:
    """Return the reason why Spark would not read the files of a plan correctly; None if it does."""
    paths = plan.tasks["base_path"]
    if has_stream_metadata(root) or pc.any(pc.match_substring_regex(paths, f"(^|/){STREAM_METADATA}/")).as_py():
        return f"Spark leaves out all files in folders named {STREAM_METADATA}, which its own streams have"
    if not HAS_VARIANTS and _contains(plan.schema, is_variant):
        return "this release of Spark has no variants, and would read shredded ones as null"
    if plan.bootstrapped()[0].tasks.num_rows:
        return "Spark cannot read bootstrapped files, whose columns are in two files each"
    if _has_orc_times(plan):
        return (
            "Spark reads the timestamps of ORC files in the time zone of its JVM, regardless of the zone of the writer"
        )
    return None


def has_stream_metadata(uri: str) -> bool:
    """Return True if a location is in a folder of Spark's own streams (`STREAM_METADATA`)."""
    return STREAM_METADATA in uri.split("/")


def _unreadable(reason: str) -> QueryError:
    return QueryError(f"{reason}; leave out {options.READ_ENGINE.key}")


def _has_orc_times(plan: ScanPlan) -> bool:
    """Return True if columns with timestamps are read from ORC files. They store instants as local times in a zone that
    the file names, and local times as numbers."""
    paths = plan.tasks["base_path"]
    return _contains(plan.schema, pa.types.is_timestamp) and bool(pc.any(pc.ends_with(paths, ".orc")).as_py())


def _contains(schema: pa.Schema, is_searched: Callable[[pa.DataType], bool]) -> bool:
    """Return True if a condition is true of the type of a column, or of a type inside of it."""

    def contains(data_type: pa.DataType) -> bool:
        return is_searched(data_type) or any(contains(data_type.field(i).type) for i in range(data_type.num_fields))

    return any(contains(field.type) for field in schema)


def _numbered(tasks: pa.Table, numbers: FileNumbers) -> pa.Table:
    return tasks.append_column(SCANNED_FILE, [numbers.numbers_of(tasks["base_path"])])


def _read(scan: SparkScan, sources: list[PartitionColumns], extras: ScanExtras) -> DataFrame:
    plan, parts = scan.plan, []
    for part in _with_more(file_parts(scan.table, plan, plan.tasks), plan.schema, extras.files):
        reader = _PartReader(scan, part, extras)
        for source in sources:
            tasks = part.tasks.filter(pc.is_in(part.tasks["partition"], value_set=source.partitions))
            if tasks.num_rows:
                parts.append((reader, source, tasks))
    if len(parts) == 1:
        reader, source, tasks = parts[0]
        return reader.read(source, tasks)
    with ThreadPool(min(len(parts), _PLANNERS)) as pool:
        return union(pool.starmap(_PartReader.read, parts))


def _with_more(parts: list[FilePart], schema: pa.Schema, more: pa.Table | None) -> list[FilePart]:
    """Add additional files with the columns of ``schema``, to a part with the same columns if there is one."""
    if more is None or not more.num_rows:
        return parts
    fitting = next(
        (i for i, p in enumerate(parts) if p.file_schema.equals(schema) and not p.names and not p.others), None
    )
    if fitting is None:
        return [*parts, FilePart(more, schema, {})]
    joined = replace(parts[fitting], tasks=pa.concat_tables([parts[fitting].tasks, more]))
    return [*parts[:fitting], joined, *parts[fitting + 1 :]]


class _PartReader:
    """Reader of files with the same columns, which returns the columns and types of the plan."""

    def __init__(self, scan: SparkScan, part: FilePart, extras: ScanExtras) -> None:
        plan = scan.plan
        self._scan, self._schema, self._numbers = scan, plan.schema, extras.numbers
        self._has_positions = extras.has_positions
        self._more_stored = [BASE_POSITION] if extras.base_positions else []
        names = {c: part.names_of(c) for c in plan.schema.names}
        stored = pa.schema(
            [_stored_field(part, plan, c).with_name(n) for c, file_names in names.items() for n in file_names]
        )
        self._as_named = stored.names == plan.schema.names
        self._has_vectors = any(is_vector(field.type) for field in plan.schema)
        changed = {f.name: converted_column(f, names[f.name], part.file_schema, part.names) for f in plan.schema}
        self._changed = {name: column for name, column in changed.items() if column is not None}
        more = [StructField(name, LongType()) for name in self._more_stored]
        self._stored_schema = StructType([*spark_schema(schema_in_files(stored)).fields, *more])
        self._files = FileReader(scan.spark, self._stored_schema)

    def read(self, source: PartitionColumns, tasks: pa.Table) -> DataFrame:
        """Return the rows of some of the files. Thread-safe."""
        if source.folders is None:
            rows = self._files.read(self._uris(tasks))
        else:
            rows = self._read_in_folders(source, source.folders, tasks)
        changed = {name: column for name, column in self._changed.items() if name not in source.from_path}
        changed |= {name: constant(value, self._schema.field(name)) for name, value in source.constants.items()}
        if self._numbers is not None:
            changed |= {} if source.numbered else {SCANNED_FILE: self._numbers.column()}
        if self._has_positions:
            changed[SCANNED_ROW] = sf.col("_metadata.row_index")
        # A select takes calls to the JVM for each column, milliseconds in total. Columns of folders come last. In Spark
        # Connect, `withColumns` would drop the metadata that marks vectors.
        stored = [*self._schema.names, *self._more_stored]
        expected = [*stored, *([SCANNED_FILE] if source.numbered else [])]
        in_order = source.folders is None or rows.columns == expected
        if self._as_named and in_order and not self._has_vectors:
            return rows.withColumns(changed) if changed else rows
        helpers = [*([SCANNED_FILE] if self._numbers else []), *([SCANNED_ROW] if self._has_positions else [])]
        names = [*stored, *helpers]
        return rows.select(*(changed[n].alias(n) if n in changed else quoted_name(n) for n in names))

    def _uris(self, tasks: pa.Table) -> list[str]:
        return [self._scan.table.storage.uri(path) for path in tasks["base_path"].to_pylist()]

    def _read_in_folders(self, source: PartitionColumns, folders: Folders, tasks: pa.Table) -> DataFrame:
        first_uri = self._uris(tasks.slice(0, 1))
        file_system = "{0.scheme}://{0.netloc}".format(urlsplit(first_uri[0]))
        if file_system not in _reached:  # A mount hides errors of its file system, and logs one for each file.
            self._files.read(first_uri)
            _reached.add(file_system)
        try:
            return FileReader(self._scan.spark, self._in_folders(source), folders).read(source.uris(tasks))
        except Exception as e:  # PySpark has no class for this error of the JVM
            if is_mount_error(e):
                self._files.read(first_uri)  # Raises the error of the file system.
            raise

    def _in_folders(self, source: PartitionColumns) -> StructType:
        """Return the schema to read; values from folders have the types of the table."""
        fields_by_name = {f.name: f for f in spark_schema(self._schema)}
        in_folders = source.from_path - set(source.constants)
        fields = [fields_by_name[f.name] if f.name in in_folders else f for f in self._stored_schema]
        return StructType([*fields, StructField(SCANNED_FILE, LongType())] if source.numbered else fields)


def _stored_field(part: FilePart, plan: ScanPlan, column: str) -> pa.Field:
    """Return a column of the files. Variants are read as such, also shredded ones, which only Spark can read."""
    field = part.file_schema.field(column)
    return field.with_type(VARIANT) if is_variant(plan.schema.field(column).type) else field
