"""Types in the files of a plan that are narrower than the table's.

All files of a write have its columns, which are recorded in its commit metadata. Only for archived writes, table
services that recorded no columns, and operations whose files may be narrower than recorded, is one file per instant
read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge.base_file_readers import read_schema
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.schema.converters.arrow_avro import from_avro
from pyhudi.schema.evolution.internal_types import ELEMENT, KEY, VALUE
from pyhudi.schema.evolution.schema_projection import FileNames, nested_columns
from pyhudi.schema.evolution.write_evolution import promote
from pyhudi.schema.table_types import to_table_types
from pyhudi.schema.timestamp_units import actual_type
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline

_ROW_WRITES = frozenset(("BULK_INSERT", "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE"))
"""Operations that Apache Hudi's row writer runs: its files have the types of the rows, and its commits the table's."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """Tasks whose base files can be read by one scan, because they have the same types.

    ``file_schema`` are the plan's columns with the types in the files (the table's for missing columns). ``names`` has
    the name in the files of a column that differs there, None if it is missing although the files have another column
    of that name. ``others`` are further names of columns, if they differ between the files; no file has two of them.
    """

    tasks: pa.Table
    file_schema: pa.Schema
    names: FileNames
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def names_of(self, column: str) -> tuple[str, ...]:
        """Return the names of a column in files of the part; none if it is missing in all of them."""
        name = self.names.get(column, column)
        return () if name is None else (name, *self.others.get(column, ()))


@dataclass(slots=True)
class _Group:
    """Files of some writes with the same types: their instants, all their column names, and those of the plan's
    columns."""

    file_schema: pa.Schema
    names: FileNames
    instants: list[str]
    stored: list[frozenset[str]]


def file_parts(table: TableSnapshot, plan: ScanPlan, tasks: pa.Table) -> list[FilePart]:
    """Split tasks of the plan by the types in their base files. Nearly always there is one part."""
    groups: dict[str, _Group] = {}
    for instant, schema in written_schemas(table.active, tasks).items():
        names = plan.reading.renamed.get(instant, {})
        stored = stored_schema(plan.schema, schema, names)
        group = groups.setdefault(f"{stored} {names}", _Group(stored, names, [], []))
        group.instants.append(instant)
        group.stored.append(frozenset(schema.names))
    if len(groups) == 1:
        return [FilePart(tasks, group.file_schema, group.names) for group in groups.values()]
    filtered = set() if plan.filter is None else set(plan.filter.columns(plan.schema))
    return [_part(tasks, merged) for merged in _merged(list(groups.values()), plan.schema.names, filtered)]


def _part(tasks: pa.Table, groups: list[_Group]) -> FilePart:
    instants = pa.array([instant for group in groups for instant in group.instants], pa.string())
    matching = tasks.filter(pc.is_in(tasks["base_instant"], value_set=instants))
    first = groups[0]
    others = {}
    for column in first.file_schema.names:
        names = dict.fromkeys(group.names.get(column, column) for group in groups)
        if len(names) > 1:
            others[column] = tuple(name for name in list(names)[1:] if name is not None)
    return FilePart(matching, first.file_schema, first.names, others)


def _merged(groups: list[_Group], columns: list[str], filtered: set[str]) -> list[list[_Group]]:
    """Combine groups that one scan can read together, because each scan costs a stage, and Spark does not compile a
    union together with later operators. A column is then the one of its names that a file has. Columns of the filter
    keep one name, so that Spark can prune row groups by it."""
    merged: list[list[_Group]] = []
    for group in groups:
        fitting = next((one for one in merged if _read_together([*one, group], columns, filtered)), None)
        if fitting is None:
            merged.append([group])
        else:
            fitting.append(group)
    return merged


def _read_together(groups: list[_Group], columns: list[str], filtered: set[str]) -> bool:
    if any(group.file_schema != groups[0].file_schema or nested_columns(group.names) for group in groups):
        return False
    taken: set[str] = set()
    for column in columns:
        names = {group.names.get(column, column) for group in groups}
        if None in names:
            if len(names) > 1:
                return False
            continue
        if len(names) > 1 and column in filtered:
            return False
        if not taken.isdisjoint(names):
            return False
        taken.update(name for name in names if name is not None)
        for group in groups:
            stored_name = group.names.get(column, column)
            if any((stored & names) - {stored_name} for stored in group.stored):
                return False
    return True


def stored_schema(table: pa.Schema, written: pa.Schema, names: FileNames) -> pa.Schema:
    """Return the table's columns with the types that a file of the ``written`` schema has for them."""
    have: dict[str | None, pa.Field] = {field.name: field for field in written}
    pairs = [(field, have.get(names.get(field.name, field.name))) for field in table]
    nested = nested_columns(names)
    return pa.schema(
        [
            field if stored is None else _stored_field(field, stored, field.name, names if field.name in nested else {})
            for field, stored in pairs
        ]
    )


def _stored_field(field: pa.Field, written: pa.Field, path: str, names: FileNames) -> pa.Field:
    return field.with_type(_stored_type(field.type, written.type, path, names))


def _stored_type(table_type: pa.DataType, written: pa.DataType, path: str, names: FileNames) -> pa.DataType:
    """Return the type of a column in files; renamed nested fields have the files' names."""
    if not names and (table_type == written or _same_in_files(table_type, written)):
        return table_type
    if pa.types.is_struct(table_type) and pa.types.is_struct(written):
        return pa.struct(_stored_members(table_type, written, path, names))
    if pa.types.is_list(table_type) and pa.types.is_list(written):
        inside = _stored_type(table_type.value_type, written.value_type, f"{path}.{ELEMENT}", names)
        return pa.list_(table_type.value_field.with_type(inside))
    if pa.types.is_map(table_type) and pa.types.is_map(written):
        return pa.map_(
            table_type.key_field.with_type(_stored_type(table_type.key_type, written.key_type, f"{path}.{KEY}", {})),
            table_type.item_field.with_type(
                _stored_type(table_type.item_type, written.item_type, f"{path}.{VALUE}", names)
            ),
        )
    return table_type if _same_in_files(table_type, written) else written


def _stored_members(table_type: pa.StructType, written: pa.StructType, path: str, names: FileNames) -> list[pa.Field]:
    have = {written.field(i).name: written.field(i) for i in range(written.num_fields)}
    members = []
    for i in range(table_type.num_fields):
        field = table_type.field(i)
        inside = f"{path}.{field.name}"
        name = names.get(inside, field.name)
        if name in have:
            members.append(_stored_field(field, have[name], inside, names).with_name(name))
        elif not names:  # Spark returns null for missing columns.
            members.append(field)
    if not any(
        field.name in have for field in members
    ):  # It also returns null for structs without any requested field.
        return [written.field(0)]
    return members


def _same_in_files(table_type: pa.DataType, written: pa.DataType) -> bool:
    """Return True if readers treat the types in the same way: timestamps of either unit, if it is the actual one."""
    t = pa.types
    if not (t.is_timestamp(table_type) and t.is_timestamp(written)):
        return False
    return (table_type.tz is None) == (written.tz is None) and actual_type(written, table_type) == written


def written_schemas(active: ActiveTimeline, files: pa.Table) -> dict[str, pa.Schema]:
    """Return the columns of base files by the instant that wrote them; ``files`` has the columns base_instant and
    base_path (never null)."""
    instants: list[str] = pc.unique(files["base_instant"]).to_pylist()
    return dict(zip(instants, concurrent_map(lambda i: _schema_of(active, files, i), instants), strict=True))


def _schema_of(active: ActiveTimeline, files: pa.Table, instant: str) -> pa.Schema:
    write = active.timeline.find(instant)
    recorded: pa.Schema | None = None
    if write is not None and write.is_completed and write.is_write:
        metadata = active.commit_metadata(write)
        recorded = from_avro(metadata.schema_json) if metadata.schema_json else None
        if recorded is not None and (metadata.operation not in _ROW_WRITES or _is_first(active, files, instant)):
            return recorded
    path = files["base_path"][pc.index(files["base_instant"], instant).as_py()].as_py()
    stored = file_schema(active.storage, path)
    return stored if recorded is None else _narrowed(recorded, stored)


def _is_first(active: ActiveTimeline, files: pa.Table, instant: str) -> bool:
    """Return True if no earlier write is known, which may have made the table's types wider than those of this one."""
    first = active.timeline.writes().first
    return first is not None and instant <= first.requested and instant <= pc.min(files["base_instant"]).as_py()


def _narrowed(recorded: pa.Schema, stored: pa.Schema) -> pa.Schema:
    """Return recorded columns with the types of numbers that a file has for them, also inside of structs, lists and
    maps, if the recorded types take them."""
    return pa.schema(_narrowed_fields(recorded, stored))


def _narrowed_fields(recorded: Iterable[pa.Field], stored: Iterable[pa.Field]) -> list[pa.Field]:
    have = {field.name: field.type for field in stored}
    return [field.with_type(_narrowed_type(field.type, have.get(field.name))) for field in recorded]


def _narrowed_type(recorded: pa.DataType, stored: pa.DataType | None) -> pa.DataType:
    t = pa.types
    if stored is None:
        return recorded
    if t.is_struct(recorded) and t.is_struct(stored):
        return pa.struct(_narrowed_fields(recorded, stored))
    if t.is_list(recorded) and t.is_list(stored):
        return pa.list_(recorded.value_field.with_type(_narrowed_type(recorded.value_type, stored.value_type)))
    if t.is_map(recorded) and t.is_map(stored):
        key = recorded.key_field.with_type(_narrowed_type(recorded.key_type, stored.key_type))
        return pa.map_(key, recorded.item_field.with_type(_narrowed_type(recorded.item_type, stored.item_type)))
    is_number = t.is_integer(stored) or t.is_floating(stored) or t.is_decimal(stored)
    return stored if is_number and promote(recorded, stored) == recorded else recorded


def file_schema(storage: Storage, path: str) -> pa.Schema:
    """Return the columns of a base file, in the form of table schemas."""
    return to_table_types(read_schema(storage, path))
