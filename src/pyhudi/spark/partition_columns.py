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
from pyhudi.spark.folders import Folders, can_be_mounted, level, mounted

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

    ``folders``: Spark takes them from names of folders; ``levels`` are those that are mounted above the files, one
    array with an element for each partition for each column. Without ``folders``, files hold the columns.
    ``number``: the column that numbers files, if Spark has it from folders, too.
    """

    partitions: pa.Array
    folders: Folders | None = None
    levels: tuple[pa.Array, ...] = ()
    number: str | None = None

    def uris(self, tasks: pa.Table) -> list[str]:
        """The addresses of some of the partitions' files."""
        assert self.folders is not None
        at = pc.index_in(tasks["partition"], value_set=self.partitions)
        levels = [each.take(at.combine_chunks()) for each in self.levels]
        if self.number is not None:
            levels.append(level(self.number, tasks[self.number].combine_chunks()))
        return self.folders.uris(tasks["base_path"].combine_chunks(), levels)


def partition_columns(
    table: PinnedTable, plan: ScanPlan, settings: Options, number: str | None
) -> list[PartitionColumns] | None:
    """The plan's partitions, split by where their partition columns come from; None when Spark cannot get at some
    values: partition columns that it finds neither in path nor file. ``number``: the column of tasks that numbers
    files, which is to be had from folders, too, if possible."""
    every = plan.partition_values["partition"].combine_chunks()
    fields = [f.name for f in partition_fields(table.config)]
    forced = bool(plan.path_columns)
    wish = settings.get_typed(options.READ_PARTITION_VALUES)
    if wish is PartitionValues.FILE or not can_be_mounted([number or "", *fields]):
        number = None
    ways: list[PartitionColumns] = []
    if forced or (wish is not PartitionValues.FILE and (number or wish is PartitionValues.PATH or len(every) > 1)):
        ways = _with_values(table, plan, fields, number, forced=forced)
    rest = _without(every, ways)
    if forced:
        return None if len(rest) else ways
    if number:
        free = rest.filter(_free(rest))
        ways += [PartitionColumns(free, mounted(table.storage.uri(), [number]), (), number)] if len(free) else []
        rest = _without(rest, ways)
    return [*ways, PartitionColumns(rest)] if len(rest) else ways


def _with_values(
    table: PinnedTable, plan: ScanPlan, fields: list[str], number: str | None, *, forced: bool
) -> list[PartitionColumns]:
    """The way by folders that tell values, if any partition can go it."""
    if not fields or not all(f in plan.schema.names and _reads_as_text(plan.schema.field(f).type) for f in fields):
        return []
    root = table.storage.uri()
    values = plan.partition_values
    if not forced:
        values = values.filter(reduce(pc.and_, (values[f"exact_{i}"] for i in range(len(fields)))))
    partitions = values["partition"].combine_chunks()
    if table.config.hive_style:
        usable = partitions.filter(_decodable(partitions, fields, encoded=table.config.url_encode))
        folders, levels = mounted(root, [number]) if number else Folders(root), ()
    elif can_be_mounted(fields):
        usable = pc.and_(_free(partitions), _can_be_told(values, fields))
        values, usable = values.filter(usable), partitions.filter(usable)
        folders = mounted(root, [*fields, number] if number else fields)
        levels = tuple(level(f, values[f].combine_chunks()) for f in fields)
    else:
        return []
    return [PartitionColumns(usable, folders, levels, number)] if len(usable) else []


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
