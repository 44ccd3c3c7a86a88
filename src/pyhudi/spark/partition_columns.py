"""Where the values of partition columns come from, so that Spark can leave out files of other partitions.

Spark takes them from the names of folders where it can (see :mod:`pyhudi.spark.folders`), and prunes by them. Where
folders do not tell the exact value, the column is read from the files, whose row groups are still skipped by their
statistics; but of many files in few partitions each partition is read by itself, and the column is a constant: Spark
drops the parts whose constants contradict the filter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.values import PartitionValues
from pyhudi.keygen.paths import partition_fields
from pyhudi.spark.folders import Folders, can_be_mounted, mounted

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

    ``folders``: Spark takes them from names of folders. ``constants``: values of columns that are the same in all rows.
    With none of both, files hold the columns.
    """

    partitions: pa.Array
    folders: Folders | None = None
    constants: Mapping[str, Any] = field(default_factory=dict)


def partition_columns(table: PinnedTable, plan: ScanPlan, settings: Options) -> list[PartitionColumns] | None:
    """The plan's partitions, split by where their partition columns come from; None when Spark cannot get at some
    values: partition columns that it finds neither in path nor file."""
    every = plan.partition_values["partition"].combine_chunks()
    wish = settings.get_typed(options.READ_PARTITION_VALUES)
    fields = [f.name for f in partition_fields(table.config)]
    readable = bool(fields) and all(
        f in plan.schema.names and _reads_as_text(plan.schema.field(f).type) for f in fields
    )
    forced = bool(plan.path_columns)
    if not readable or (wish is PartitionValues.FILE and not forced):
        return None if forced else [PartitionColumns(every)]
    ways, rest = [], every
    if forced or wish is PartitionValues.PATH or len(every) > 1:
        ways = _in_folders(table, plan, fields, forced)
        rest = _without(every, ways)
    if 0 < len(rest) <= FEW_PARTITIONS and (forced or plan.tasks.num_rows >= MANY_FILES):
        ways += _constants(plan, fields, rest.filter(pc.is_in(rest, value_set=_trusted(plan, fields, forced))))
        rest = _without(rest, ways)
    if not len(rest):
        return ways
    return None if forced else [*ways, PartitionColumns(rest)]


def _in_folders(table: PinnedTable, plan: ScanPlan, fields: list[str], forced: bool) -> list[PartitionColumns]:
    """The way by folders, if any partition can go it."""
    root = table.storage.uri()
    if table.config.hive_style:
        usable, folders = _decodable(table, plan, fields, forced), Folders(root)
    elif can_be_mounted(root, fields):
        usable, folders = _plain(plan, fields, forced), mounted(root, fields)
    else:
        return []
    return [PartitionColumns(usable, folders)] if len(usable) else []


def _without(partitions: pa.Array, ways: list[PartitionColumns]) -> pa.Array:
    for way in ways:
        partitions = partitions.filter(pc.invert(pc.is_in(partitions, value_set=way.partitions)))
    return partitions


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
