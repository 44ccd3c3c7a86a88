"""Where the values of partition columns come from, so that Spark can leave out files of other partitions.

Spark prunes files by a filter on a partition column in three ways. Hive-style folders it decodes itself. For other
styles, where there are many files, each partition is read by itself if they are few, and the column is a constant:
Spark drops the partitions whose constants contradict the filter, and rows cost nothing. With many partitions the column
is an expression over the file's path, which Spark evaluates for each file before reading any (and for each row that is
then read, at some 0.2 microseconds). Of few files, and where the path does not tell the exact value, the column is read
from the files, whose row groups are still skipped by their statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as sf

from pyhudi.config import Options, options
from pyhudi.config.values import PartitionValues
from pyhudi.keygen.paths import partition_fields
from pyhudi.keygen.spec import DEFAULT_PARTITION
from pyhudi.spark.types import spark_schema

if TYPE_CHECKING:
    from pyhudi.read.pinned import PinnedTable
    from pyhudi.read.plan import ScanPlan

MANY_FILES = 64
"""From so many files on it is worth some work to open only those of the right partitions."""

FEW_PARTITIONS = 16
"""Up to so many partitions each is read by itself: planning costs some milliseconds for each, and compiling a query
that Spark has not seen yet some thirty."""

_ESCAPE = r"%[0-9A-Fa-f]{2}"
_PLAIN_PATH = r"^[A-Za-z0-9_.=/+,:;@~-]*$"
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
    """How the partition columns of some partitions are had.

    ``discovered``: Spark decodes hive-style folders. ``constants``: values of columns that are the same in all rows.
    ``expressions``: columns computed from the file's path. With none of them, files hold the columns.
    """

    partitions: pa.Array
    discovered: bool = False
    constants: Mapping[str, Any] = field(default_factory=dict)
    expressions: Mapping[str, Column] = field(default_factory=dict)


def partition_columns(table: PinnedTable, plan: ScanPlan, settings: Options) -> list[PartitionColumns] | None:
    """The plan's partitions, split by where their partition columns come from; None when Spark cannot get at some
    values: partition columns that it finds neither in path nor file."""
    every = plan.partition_values["partition"].combine_chunks()
    from_files = PartitionColumns(every)
    wish = settings.get_typed(options.READ_PARTITION_VALUES)
    fields = [f.name for f in partition_fields(table.config)]
    readable = bool(fields) and all(
        f in plan.schema.names and _reads_as_text(plan.schema.field(f).type) for f in fields
    )
    forced = bool(plan.path_columns)
    if not readable or (wish is PartitionValues.FILE and not forced):
        return None if forced else [from_files]
    if table.config.hive_style:
        usable = _decodable(table, plan, fields, forced)
        ways = [PartitionColumns(usable, discovered=True)]
    elif not (forced or wish is PartitionValues.PATH or plan.tasks.num_rows >= MANY_FILES):
        return [from_files]
    elif len(every) <= FEW_PARTITIONS:
        usable = _trusted(plan, fields, forced)
        ways = _constants(plan, fields, usable)
    else:
        usable = _plain(plan, fields, forced)
        ways = [PartitionColumns(usable, expressions=_expressions(plan, fields))]
    if len(usable) == len(every):
        return ways
    if forced:
        return None
    rest = every.filter(pc.invert(pc.is_in(every, value_set=usable)))
    return [*ways, PartitionColumns(rest)] if len(usable) else [from_files]


def _reads_as_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in _READ_AS_TEXT)


def _decodable(table: PinnedTable, plan: ScanPlan, fields: list[str], forced: bool) -> pa.Array:
    """Partitions whose folders Spark decodes to the exact values; it always undoes percent escapes."""
    trusted = _trusted(plan, fields, forced)
    usable = _one_folder_each(trusted, fields)
    if not table.config.url_encode:
        usable = pc.and_not(usable, pc.match_substring_regex(trusted, _ESCAPE))
    return trusted.filter(usable)


def _plain(plan: ScanPlan, fields: list[str], forced: bool) -> pa.Array:
    """Partitions with one folder per field and no character that paths may show in another form."""
    trusted = _trusted(plan, fields, forced)
    return trusted.filter(pc.and_(_one_folder_each(trusted, fields), pc.match_substring_regex(trusted, _PLAIN_PATH)))


def _one_folder_each(partitions: pa.Array, fields: list[str]) -> pa.BooleanArray:
    return pc.equal(pc.count_substring(partitions, "/"), len(fields) - 1)


def _trusted(plan: ScanPlan, fields: list[str], forced: bool) -> pa.Array:
    values = plan.partition_values
    if not forced:
        values = values.filter(reduce(pc.and_, (values[f"exact_{i}"] for i in range(len(fields)))))
    return values["partition"].combine_chunks()


def _constants(plan: ScanPlan, fields: list[str], partitions: pa.Array) -> list[PartitionColumns]:
    """A way for each partition."""
    values = plan.partition_values.filter(pc.is_in(plan.partition_values["partition"], value_set=partitions))
    return [
        PartitionColumns(pa.array([row["partition"]], pa.string()), constants={f: row[f] for f in fields})
        for row in values.to_pylist()
    ]


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
