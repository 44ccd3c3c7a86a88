"""Base files of a scan plan through Spark's own readers.

Files are read in parts: by what they hold (narrower types than the table's are cast, other names renamed), and by where
the values of their partition columns come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType

from pyhudi.errors import QueryError
from pyhudi.read.file_schemas import FilePart, file_parts
from pyhudi.spark.files import FileReader, cannot_reach, read_settings
from pyhudi.spark.partition_columns import PartitionColumns, partition_columns
from pyhudi.spark.types import spark_schema

if TYPE_CHECKING:
    from pyhudi.config import Options
    from pyhudi.read.pinned import PinnedTable
    from pyhudi.read.plan import ScanPlan

_PLANNERS = 4
"""Threads that ask Spark for the parts of a query; most of their time is waiting for it."""


def read_natively(
    spark: SparkSession,
    table: PinnedTable,
    plan: ScanPlan,
    settings: Options,
    *,
    required: bool,
    extra: Mapping[str, Column] | None = None,
) -> DataFrame | None:
    """The unfiltered rows of all base files with all columns, or None when Spark cannot read them. ``extra`` columns,
    which may look at ``_metadata``, come last.

    Raises:
        QueryError: Spark cannot read them, though that is ``required``.
    """
    if _has_orc_times(plan):
        if required:
            raise QueryError(
                "Spark reads the times of ORC files in the time zone of its JVM, whatever they were written in; leave "
                "out pyhudi.read.engine"
            )
        return None
    ways = partition_columns(table, plan, settings)
    if ways is None:
        if required:
            raise QueryError(
                f"Spark cannot take the values of the partition columns {', '.join(plan.path_columns)} from paths; "
                "leave out pyhudi.read.engine"
            )
        return None
    try:
        with read_settings(spark, plan.tasks.num_rows, table.storage.uri()):
            return _read(spark, table, plan, ways, extra or {})
    except Exception as e:  # what has no class of its own in PySpark comes as the JVM's
        if required or not cannot_reach(e):
            raise
        return None


def _has_orc_times(plan: ScanPlan) -> bool:
    """Whether columns with timestamps are read from ORC files. There instants are times of day in a zone that the file
    names, and local times plain numbers."""
    paths = plan.tasks["base_path"]
    return _has_times(pa.struct(list(plan.schema))) and bool(pc.any(pc.ends_with(paths, ".orc")).as_py())


def _has_times(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or any(_has_times(kind.field(i).type) for i in range(kind.num_fields))


def _read(
    spark: SparkSession, table: PinnedTable, plan: ScanPlan, ways: list[PartitionColumns], extra: Mapping[str, Column]
) -> DataFrame:
    parts = []
    for held in file_parts(table, plan, plan.tasks):
        reader = _PartReader(spark, table, plan, held, extra)
        for way in ways:
            tasks = held.tasks.filter(pc.is_in(held.tasks["partition"], value_set=way.partitions))
            if tasks.num_rows:
                parts.append((reader, way, tasks))
    if len(parts) == 1:
        reader, way, tasks = parts[0]
        return reader.read(way, tasks)
    with ThreadPool(min(len(parts), _PLANNERS)) as pool:
        return _union(pool.starmap(_PartReader.read, parts))


class _PartReader:
    """Reads files that hold the same, giving the columns and types of the plan."""

    def __init__(
        self, spark: SparkSession, table: PinnedTable, plan: ScanPlan, part: FilePart, extra: Mapping[str, Column]
    ) -> None:
        self._table, self._schema, self._extra = table, plan.schema, extra
        names = {c: part.names.get(c, c) for c in plan.schema.names}
        held = pa.schema([part.held.field(c).with_name(n) for c, n in names.items() if n is not None])
        self._as_named = held.names == plan.schema.names
        self._changed = {f.name: c for f in plan.schema if (c := _changed(f, names[f.name], part.held)) is not None}
        self._spark, self._held = spark, spark_schema(held)
        self._files = FileReader(spark, self._held)

    def read(self, way: PartitionColumns, tasks: pa.Table) -> DataFrame:
        """The rows of some of the files. Threads may call it side by side."""
        if way.folders is None:
            rows = self._files.read([self._table.storage.uri(path) for path in tasks["base_path"].to_pylist()])
        else:
            rows = FileReader(self._spark, self._held, way.folders).read(way.folders.uris(tasks["base_path"]))
        constants = {name: constant(value, self._schema.field(name)) for name, value in way.constants.items()}
        changed = {**self._changed, **constants, **self._extra}
        # a select costs calls to the JVM for each column, milliseconds in all
        if self._as_named and (way.folders is None or rows.columns == self._schema.names):
            return rows.withColumns(changed) if changed else rows
        names = [*self._schema.names, *self._extra]
        return rows.select(*(changed[n].alias(n) if n in changed else quoted(n) for n in names))


def _changed(field: pa.Field, name: str | None, held: pa.Schema) -> Column | None:
    """How a column of the plan is made from what files hold; None: they have it as it is."""
    if name is None:
        return sf.lit(None).cast(_spark_type(field))
    kind = held.field(field.name).type
    if kind != field.type:
        return _widened(name, kind, field)
    return sf.col(quoted(name)) if name != field.name else None


def _widened(name: str, held: pa.DataType, field: pa.Field) -> Column:
    column = sf.col(quoted(name))
    if pa.types.is_float32(held) and pa.types.is_float64(field.type):
        column = column.cast("string")  # 0.1 stays 0.1, as the original widens
    return column.cast(_spark_type(field))


def constant(value: object, field: pa.Field) -> Column:
    """A value as a column. Optimised to the literal; but nullable, as the column is in all other ways."""
    return sf.when(sf.lit(True), sf.lit(value).cast(_spark_type(field).simpleString()))


def _spark_type(field: pa.Field) -> DataType:
    return spark_schema(pa.schema([field])).fields[0].dataType


def _union(parts: Sequence[DataFrame]) -> DataFrame:
    """The rows of parts with the same columns. Halves are joined, because Spark looks through all of a union's parts
    whenever another one is added."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return _union(parts[:half]).union(_union(parts[half:]))


def quoted(name: str) -> str:
    """A column's name as Spark's column functions take it, whatever characters it has."""
    return f"`{name.replace('`', '``')}`"
