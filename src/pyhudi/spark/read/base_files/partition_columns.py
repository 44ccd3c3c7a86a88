"""Sources of the values of partition columns, chosen so that Spark can prune files of other partitions.

Spark takes them from the names of folders where it can (see :mod:`pyhudi.spark.read.base_files.partition_folders`), and
prunes by them. Where paths determine values that Spark would not parse from them, they are constants of a part of the
query.
Where paths do not determine the exact value, the column is read from the files, whose row groups are still skipped by
their statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import options
from pyhudi.config.enums import PartitionValues
from pyhudi.keygen.partition_value_extractor import partition_fields
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.spark.helper_columns import SCANNED_FILE
from pyhudi.spark.read.base_files.partition_folders import Folders, can_be_mounted, level, mounted
from pyhudi.spark.read.spark_scan import SparkScan
from pyhudi.table.table_snapshot import TableSnapshot

_MAX_SOURCES = 64
"""Maximum number of parts with constants; each costs some milliseconds."""
_LINE_ENDS = "\n\r\x85\u2028\u2029"
_LEFT_OUT = "(?i:(^|/)_temporary(/|$))"
"""Folders whose files Spark takes for leftovers of its own writes when it parses partitions."""
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
    """Source of the partition columns of some partitions.

    ``folders``: Spark parses columns from their names: the partition columns in ``from_path``, which are otherwise read
    from the files, and if ``numbered``, the number of each file. ``levels`` are folders mounted above the files, for
    each column an array with an element for each partition. ``constants``: the values of ``from_path`` columns that
    folder names cannot represent, which are the same in all these partitions.
    """

    partitions: pa.Array
    folders: Folders | None = None
    from_path: frozenset[str] = frozenset()
    levels: tuple[pa.Array, ...] = ()
    numbered: bool = False
    constants: Mapping[str, Any] = field(default_factory=dict)

    def uris(self, tasks: pa.Table) -> list[str]:
        """Return the URIs of the files of some partitions."""
        assert self.folders is not None
        at = pc.index_in(tasks["partition"], value_set=self.partitions)
        levels = [each.take(at.combine_chunks()) for each in self.levels]
        numbers = level(SCANNED_FILE, tasks[SCANNED_FILE].combine_chunks()) if self.numbered else None
        return self.folders.uris(tasks["base_path"].combine_chunks(), levels, numbers)


def partition_columns(scan: SparkScan, *, numbered: bool) -> list[PartitionColumns] | None:
    """Return the partitions of a plan, split by the source of their partition columns; None if Spark cannot get some
    values: those that paths determine, in too many partitions in forms that it does not parse. ``numbered``: tasks
    require file numbers, which folders provide where possible."""
    table, plan = scan.table, scan.plan
    paths = plan.partition_columns.paths
    root = table.storage.uri()
    forced = bool(plan.partition_columns.required)
    wish = scan.opts.get_typed(options.READ_PARTITION_VALUES)
    numbered = numbered and wish is not PartitionValues.FILE and can_be_mounted(root)
    sources: list[PartitionColumns] = []
    if forced or wish is not PartitionValues.FILE:
        in_folders = forced or numbered or wish is PartitionValues.PATH or len(paths) > 1
        for from_path, rows in _by_columns(plan):
            read_partitions = plan.partition_columns.partitions.filter(rows)
            values = {name: plan.partition_columns.values[name].values.filter(rows) for name in from_path}
            folders = _in_folders(table, plan, read_partitions, values, numbered=numbered) if in_folders else []
            rest = pc.invert(pc.is_in(read_partitions["partition"].combine_chunks(), value_set=_partitions_of(folders)))
            others = _constant(read_partitions.filter(rest), {n: v.filter(rest) for n, v in values.items()})
            sources += folders + [_mounted(source, root) if numbered else source for source in others]
            if len(sources) > _MAX_SOURCES:
                return None
    rest = _remaining_partitions(paths, sources)
    if numbered:
        sources += _non_empty(PartitionColumns(rest.filter(_without_special_names(rest)), mounted(root), numbered=True))
        rest = _remaining_partitions(rest, sources)
    return [*sources, *_non_empty(PartitionColumns(rest))]


def _by_columns(plan: ScanPlan) -> list[tuple[tuple[str, ...], pa.BooleanArray]]:
    """Return the partitions grouped by the columns that their paths determine."""
    rows, columns = plan.partition_columns.partitions.num_rows, plan.partition_columns.values
    which = reduce(
        pc.add,
        (pc.multiply(each.is_exact.cast(pa.int64()), 1 << i) for i, each in enumerate(columns.values())),
        pa.repeat(pa.scalar(0, pa.int64()), rows),
    )
    groups = []
    for number in pc.unique(which).to_pylist():
        if number:
            names = tuple(name for i, name in enumerate(columns) if number >> i & 1)
            groups.append((names, pc.equal(which, number)))
    return groups


def _constant(partitions: pa.Table, values: dict[str, pa.Array]) -> list[PartitionColumns]:
    """Group partitions with the same values, which become constants."""
    if not partitions.num_rows:
        return []
    groups: dict[tuple[object, ...], list[str]] = {}
    rows = zip(*(each.to_pylist() for each in values.values()), strict=True)
    for path, row in zip(partitions["partition"].to_pylist(), rows, strict=True):
        groups.setdefault(tuple(map(repr, row)), []).append(path)
    sources = []
    for paths in groups.values():
        at = pc.index(partitions["partition"], paths[0]).as_py()
        constants = {name: each[at].as_py() for name, each in values.items()}
        sources.append(PartitionColumns(pa.array(paths, pa.string()), from_path=frozenset(values), constants=constants))
    return sources


def _mounted(source: PartitionColumns, root: str) -> PartitionColumns:
    """Add file numbers to the folders, where folders can provide them."""
    if not pc.all(_without_special_names(source.partitions)).as_py():
        return source
    return replace(source, folders=mounted(root), numbered=True)


def _partitions_of(sources: list[PartitionColumns]) -> pa.Array:
    return pa.concat_arrays([pa.array([], pa.string()), *(source.partitions for source in sources)])


def _non_empty(*sources: PartitionColumns) -> list[PartitionColumns]:
    return [source for source in sources if len(source.partitions)]


def _in_folders(
    table: TableSnapshot, plan: ScanPlan, rows: pa.Table, values: dict[str, pa.Array], *, numbered: bool
) -> list[PartitionColumns]:
    """Return the sources by folder names for those of some partitions that folder names can represent."""
    if not all(_reads_as_text(plan.schema.field(name).type) for name in values):
        return []
    root, from_path = table.storage.uri(), frozenset(values)
    partitions = rows["partition"].combine_chunks()
    if table.config.hive_style:
        fields = [field.name for field in partition_fields(table.config)]
        if from_path != set(fields):  # Spark would take all of them from folders
            return []
        usable = _decodable(partitions, fields, encoded=table.config.url_encode)
        partitions = partitions.filter(usable)
        partitions = partitions.filter(
            _has_scales(partitions, {n: v.filter(usable) for n, v in values.items()}, fields)
        )
        if not numbered:
            return _non_empty(PartitionColumns(partitions, Folders(root), from_path))
        schemes = pc.match_substring_regex(partitions, f"[:{_LINE_ENDS}]")
        return _non_empty(
            PartitionColumns(partitions.filter(pc.invert(schemes)), mounted(root), from_path, numbered=True),
            PartitionColumns(partitions.filter(schemes), Folders(root), from_path),
        )
    if not can_be_mounted(root, list(values)):
        return []
    usable = pc.and_(_without_special_names(partitions), _can_be_folder_names(values))
    levels = tuple(level(name, each.filter(usable)) for name, each in values.items())
    return _non_empty(PartitionColumns(partitions.filter(usable), mounted(root), from_path, levels, numbered))


def _remaining_partitions(partitions: pa.Array, sources: list[PartitionColumns]) -> pa.Array:
    for source in sources:
        partitions = partitions.filter(pc.invert(pc.is_in(partitions, value_set=source.partitions)))
    return partitions


def _reads_as_text(data_type: pa.DataType) -> bool:
    return any(test(data_type) for test in _READ_AS_TEXT)


def _decodable(partitions: pa.Array, fields: list[str], *, encoded: bool) -> pa.BooleanArray:
    """Return a mask of the Hive-style folders that Spark decodes to the exact values; it always undoes percent
    escapes."""
    usable = pc.equal(pc.count_substring(partitions, "/"), len(fields) - 1)
    return usable if encoded else pc.and_not(usable, pc.match_substring_regex(partitions, _ESCAPE))


def _has_scales(partitions: pa.Array, values: dict[str, pa.Array], fields: list[str]) -> pa.BooleanArray:
    """Return a mask of the Hive-style folders whose decimal numbers have as many digits as their type: Spark reads 0.15
    as 1.5 where the type has two digits after the point."""
    fits = pa.repeat(pa.scalar(True), len(partitions))
    for i, name in enumerate(fields):
        if pa.types.is_decimal(values[name].type):
            typed = pc.binary_join_element_wise(name, pc.cast(values[name], pa.string()), "=")
            at = pc.list_element(pc.split_pattern(partitions, "/"), i)
            fits = pc.and_(fits, pc.fill_null(pc.equal(at, typed), True))
    return fits


def _without_special_names(partitions: pa.Array) -> pa.BooleanArray:
    """Return a mask of the folders without special characters of Spark or Hadoop, whose patterns match no line ends,
    and without folders that Spark leaves out."""
    return pc.invert(pc.match_substring_regex(partitions, f"[=:{_LINE_ENDS}]|{_LEFT_OUT}"))


def _can_be_folder_names(values: dict[str, pa.Array]) -> pa.BooleanArray:
    """Return a mask of the values that folder names can represent: no floating-point numbers, no empty texts."""
    columns = list(values.values())
    fits = pa.repeat(pa.scalar(not any(pa.types.is_floating(column.type) for column in columns)), len(columns[0]))
    for column in columns:
        if pa.types.is_string(column.type):
            fits = pc.and_not(fits, pc.fill_null(pc.equal(column, ""), False))
    return fits
