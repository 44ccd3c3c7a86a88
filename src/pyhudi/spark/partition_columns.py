"""Where the values of partition columns come from, so that Spark can leave out files of other partitions.

Spark takes them from the names of folders where it can (see :mod:`pyhudi.spark.folders`), and prunes by them. Where
folders do not tell the exact value, the column is read from the files, whose row groups are still skipped by their
statistics.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.values import PartitionValues
from pyhudi.keygen.paths import partition_fields
from pyhudi.spark.folders import FILE_NUMBER, Folders, can_be_mounted, level, mounted

if TYPE_CHECKING:
    from pyhudi.read.pinned import PinnedTable
    from pyhudi.read.plan import ScanPlan

_ESCAPE = r"%[0-9A-Fa-f]{2}"
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

    ``folders``: Spark takes columns from their names: ``told``, the partition columns, which files hold otherwise, and
    if ``numbered``, the number of each file. ``levels`` are folders that are mounted above the files, for each column
    an array with an element for each partition.
    """

    partitions: pa.Array
    folders: Folders | None = None
    told: frozenset[str] = frozenset()
    levels: tuple[pa.Array, ...] = ()
    numbered: bool = False

    def uris(self, tasks: pa.Table) -> list[str]:
        """The addresses of some of the partitions' files."""
        assert self.folders is not None
        at = pc.index_in(tasks["partition"], value_set=self.partitions)
        levels = [each.take(at.combine_chunks()) for each in self.levels]
        numbers = level(FILE_NUMBER, tasks[FILE_NUMBER].combine_chunks()) if self.numbered else None
        return self.folders.uris(tasks["base_path"].combine_chunks(), levels, numbers)


def partition_columns(
    table: PinnedTable, plan: ScanPlan, settings: Options, *, numbered: bool
) -> list[PartitionColumns] | None:
    """The plan's partitions, split by where their partition columns come from; None when Spark cannot get at some
    values: partition columns that it finds neither in path nor file. ``numbered``: tasks have numbers of files, which
    are to be had from folders, too, if possible."""
    every = plan.partition_values["partition"].combine_chunks()
    fields = [f.name for f in partition_fields(table.config)]
    root = table.storage.uri()
    forced = bool(plan.path_columns)
    wish = settings.get_typed(options.READ_PARTITION_VALUES)
    numbered = numbered and wish is not PartitionValues.FILE and can_be_mounted(root)
    ways: list[PartitionColumns] = []
    if forced or (wish is not PartitionValues.FILE and (numbered or wish is PartitionValues.PATH or len(every) > 1)):
        ways = _with_values(table, plan, fields, numbered=numbered, forced=forced)
    rest = _without(every, ways)
    if forced:
        return None if len(rest) else ways
    if numbered:
        ways += _some(PartitionColumns(rest.filter(_free(rest)), mounted(root), numbered=True))
        rest = _without(rest, ways)
    return [*ways, *_some(PartitionColumns(rest))]


def _some(*ways: PartitionColumns) -> list[PartitionColumns]:
    return [way for way in ways if len(way.partitions)]


def _with_values(
    table: PinnedTable, plan: ScanPlan, fields: list[str], *, numbered: bool, forced: bool
) -> list[PartitionColumns]:
    """The ways by folders that tell values, if any partition can go one."""
    if not fields or not all(f in plan.schema.names and _reads_as_text(plan.schema.field(f).type) for f in fields):
        return []
    root, told = table.storage.uri(), frozenset(fields)
    values = plan.partition_values
    if not forced:
        values = values.filter(reduce(pc.and_, (values[f"exact_{i}"] for i in range(len(fields)))))
    partitions = values["partition"].combine_chunks()
    if table.config.hive_style:
        decodable = _decodable(partitions, fields, encoded=table.config.url_encode)
        partitions = partitions.filter(decodable)
        partitions = partitions.filter(_has_scales(partitions, values.filter(decodable), fields))
        if not numbered:
            return _some(PartitionColumns(partitions, Folders(root), told))
        schemes = pc.match_substring(partitions, ":")
        return _some(
            PartitionColumns(partitions.filter(pc.invert(schemes)), mounted(root), told, numbered=True),
            PartitionColumns(partitions.filter(schemes), Folders(root), told),
        )
    if not can_be_mounted(root, fields):
        return []
    usable = pc.and_(_free(partitions), _can_be_told(values, fields))
    values, partitions = values.filter(usable), partitions.filter(usable)
    levels = tuple(level(f, values[f].combine_chunks()) for f in fields)
    return _some(PartitionColumns(partitions, mounted(root), told, levels, numbered))


def _without(partitions: pa.Array, ways: list[PartitionColumns]) -> pa.Array:
    for way in ways:
        partitions = partitions.filter(pc.invert(pc.is_in(partitions, value_set=way.partitions)))
    return partitions


def _reads_as_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in _READ_AS_TEXT)


def _decodable(partitions: pa.Array, fields: list[str], *, encoded: bool) -> pa.BooleanArray:
    """Which hive-style folders Spark decodes to the exact values; it always undoes percent escapes."""
    usable = pc.equal(pc.count_substring(partitions, "/"), len(fields) - 1)
    return usable if encoded else pc.and_not(usable, pc.match_substring_regex(partitions, _ESCAPE))


def _has_scales(partitions: pa.Array, values: pa.Table, fields: list[str]) -> pa.BooleanArray:
    """Which hive-style folders have decimal numbers with as many digits as their type: Spark takes 1.5 for 0.15 where
    the type has two digits after the point."""
    told = pa.repeat(pa.scalar(True), len(partitions))
    names = pc.split_pattern(partitions, "/")
    for i, field in enumerate(fields):
        if pa.types.is_decimal(values.schema.field(field).type):
            as_typed = pc.binary_join_element_wise(field, pc.cast(values[field].combine_chunks(), pa.string()), "=")
            told = pc.and_(told, pc.fill_null(pc.equal(pc.list_element(names, i), as_typed), True))
    return told


def _free(partitions: pa.Array) -> pa.BooleanArray:
    """Which folders mean nothing to Spark, and nothing else to Hadoop."""
    return pc.invert(pc.match_substring_regex(partitions, "[=:]"))


def _can_be_told(values: pa.Table, fields: list[str]) -> pa.BooleanArray:
    """Where names of folders can tell all values: no floating-point numbers, no empty texts."""
    told = pa.repeat(pa.scalar(True), values.num_rows)
    for column in (values[f].combine_chunks() for f in fields):
        if pa.types.is_floating(column.type):
            return pa.repeat(pa.scalar(False), values.num_rows)
        if pa.types.is_string(column.type):
            told = pc.and_not(told, pc.fill_null(pc.equal(column, ""), False))
    return told
