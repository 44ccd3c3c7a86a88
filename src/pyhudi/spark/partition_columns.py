"""Where the values of partition columns come from, so that Spark can leave out files of other partitions.

Spark prunes files by a filter on a partition column in two ways. Hive-style folders it decodes itself. For other styles
the column is an expression over the file's path, which Spark evaluates for each file before reading any (and for each
row that is then read). Where the path does not tell the exact value the column is read from the files, whose row groups
are still skipped by their statistics.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as sf

from pyhudi.config import Options, options
from pyhudi.config.values import PartitionValues, ReadEngine
from pyhudi.errors import QueryError
from pyhudi.keygen.paths import partition_fields
from pyhudi.keygen.spec import DEFAULT_PARTITION
from pyhudi.spark.types import spark_schema

if TYPE_CHECKING:
    from pyhudi.read.pinned import PinnedTable
    from pyhudi.read.plan import ScanPlan

MANY_FILES = 64
"""From so many files on it is worth some work per row to open only those of the right partitions."""

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.=/+,:;@~-]*")
_READ_AS_TEXT = (
    pa.types.is_string,
    pa.types.is_int32,
    pa.types.is_int64,
    pa.types.is_boolean,
    pa.types.is_date32,
    pa.types.is_decimal,
    pa.types.is_floating,
)


@dataclass(frozen=True, slots=True)
class PartitionColumns:
    """``discovered``: Spark decodes hive-style folders. ``expressions``: columns computed from the file's path."""

    discovered: bool = False
    expressions: Mapping[str, Column] = field(default_factory=dict)


def partition_columns(
    table: PinnedTable, plan: ScanPlan, settings: Options
) -> list[tuple[pa.Table, PartitionColumns]] | None:
    """The plan's tasks, split by where their partition columns come from; None when Spark cannot get at some values:
    partition columns that it finds neither in path nor file, and times in ORC files.

    Raises:
        QueryError: there are such times, and Spark is to read them.
    """
    if _has_orc_times(plan):
        if settings.get_typed(options.READ_ENGINE) is ReadEngine.SPARK:
            raise QueryError(
                "Spark reads the times of ORC files in the time zone of its JVM, whatever they were written in; leave "
                "out pyhudi.read.engine"
            )
        return None
    wish = settings.get_typed(options.READ_PARTITION_VALUES)
    fields = [f.name for f in partition_fields(table.config)]
    readable = bool(fields) and all(
        f in plan.schema.names and _reads_as_text(plan.schema.field(f).type) for f in fields
    )
    forced = bool(plan.path_columns)
    if not readable or (wish is PartitionValues.FILE and not forced):
        return None if forced else [(plan.tasks, PartitionColumns())]
    if table.config.hive_style:
        usable, way = _decodable(table, plan, fields, forced), PartitionColumns(discovered=True)
    elif forced or wish is PartitionValues.PATH or plan.tasks.num_rows >= MANY_FILES:
        usable, way = _plain(plan, fields, forced), PartitionColumns(expressions=_expressions(plan, fields))
    else:
        return [(plan.tasks, PartitionColumns())]
    by_path = plan.tasks.filter(pc.is_in(plan.tasks["partition"], value_set=pa.array(usable, pa.string())))
    if by_path.num_rows == plan.tasks.num_rows:
        return [(plan.tasks, way)]
    if forced:
        return None
    rest = plan.tasks.filter(pc.invert(pc.is_in(plan.tasks["partition"], value_set=pa.array(usable, pa.string()))))
    parts = [(by_path, way), (rest, PartitionColumns())]
    return [(tasks, columns) for tasks, columns in parts if tasks.num_rows]


def _has_orc_times(plan: ScanPlan) -> bool:
    """Whether columns with timestamps are read from ORC files. There instants are times of day in a zone that the file
    names, and local times plain numbers."""
    paths = plan.tasks["base_path"]
    return _has_times(pa.struct(list(plan.schema))) and bool(pc.any(pc.ends_with(paths, ".orc")).as_py())


def _has_times(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or any(_has_times(kind.field(i).type) for i in range(kind.num_fields))


def _reads_as_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in _READ_AS_TEXT)


def _decodable(table: PinnedTable, plan: ScanPlan, fields: list[str], forced: bool) -> list[str]:
    """Partitions whose folders Spark decodes to the exact values; it always undoes percent escapes."""
    escaped = table.config.url_encode
    return [
        p
        for p in _trusted(plan, fields, forced)
        if (escaped or not _ESCAPE.search(p)) and p.count("/") == len(fields) - 1
    ]


def _plain(plan: ScanPlan, fields: list[str], forced: bool) -> list[str]:
    """Partitions with one folder per field and no character that paths may show in another form."""
    return [p for p in _trusted(plan, fields, forced) if _PLAIN_PATH.fullmatch(p) and p.count("/") == len(fields) - 1]


def _trusted(plan: ScanPlan, fields: list[str], forced: bool) -> list[str]:
    values = plan.partition_values
    if forced:
        paths: list[str] = values["partition"].to_pylist()
        return paths
    exact = reduce(pc.and_, (values[f"exact_{i}"] for i in range(len(fields))))
    trusted: list[str] = values.filter(exact)["partition"].to_pylist()
    return trusted


def _expressions(plan: ScanPlan, fields: list[str]) -> dict[str, Column]:
    path = sf.col("_metadata.file_path")
    spark = spark_schema(pa.schema([plan.schema.field(f) for f in fields]))
    found = {}
    for i, name in enumerate(fields):
        # counted from the end: what stands before the table's folders is Spark's spelling of the root
        folder = sf.substring_index(sf.substring_index(path, "/", -(len(fields) - i + 1)), "/", 1)
        if not pa.types.is_string(plan.schema.field(name).type):
            folder = folder.cast(spark[name].dataType)
        elif any(DEFAULT_PARTITION in p for p in plan.partitions):
            folder = sf.when(folder != DEFAULT_PARTITION, folder)
        found[name] = folder
    return found
