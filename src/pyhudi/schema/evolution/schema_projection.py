"""Schema on read: rows of files with an older schema in the columns of the current one.

A file may have been written before columns were renamed, or dropped and added again, so the same column may have
another name in it (`file_names_of_columns`), and before columns were added or their types widened (`conform`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from pyhudi.errors import SchemaMismatchError
from pyhudi.schema.converters.arrow_avro import default_value
from pyhudi.schema.evolution.internal_schema import InternalSchema
from pyhudi.schema.evolution.internal_types import ELEMENT, VALUE
from pyhudi.schema.table_types import is_list
from pyhudi.schema.type_conversion import convert

FileNames: TypeAlias = Mapping[str, str | None]
"""Names in a file, by the dotted path of the column, or of a field inside a column, in the table.

A name is the last part of the path in the file; None if the file has a different column of that name. Paths with the
same name in the file are omitted.
"""


def file_names_of_columns(
    written: InternalSchema, current: InternalSchema, columns: pa.Schema | None = None
) -> FileNames:
    """Return the names that a file of version ``written`` has for the columns of version ``current``.

    ``columns`` may include columns that no version has yet and therefore no file contains.
    """
    written_paths = {id_: path for path, id_ in written.paths().items()}
    used_paths = set(written_paths.values())
    names: dict[str, str | None] = {}
    for path, id_ in current.paths().items():
        old = written_paths.get(id_)
        name = None if old is None else old.rpartition(".")[2]
        if name is None:
            if _in_file(path, names, used_paths):
                names[path] = None
        elif name != path.rpartition(".")[2]:
            names[path] = name
    current_names = {field.name for field in current.fields}
    for name in columns.names if columns is not None else ():
        if name not in current_names and name in used_paths:
            names[name] = None
    return names


def _in_file(path: str, names: Mapping[str, str | None], used_paths: set[str]) -> bool:
    """True if a file has a different column, in the same struct, under the name of a column that it lacks."""
    parts = path.split(".")
    inside: list[str] = []
    for depth in range(1, len(parts)):
        name = names.get(".".join(parts[:depth]), parts[depth - 1])
        if name is None:
            return False
        inside.append(name)
    return ".".join([*inside, parts[-1]]) in used_paths


def file_columns(schema: pa.Schema, names: FileNames) -> dict[str, str]:
    """Return a mapping from name in the file to column of the schema, for the columns that a file with such names can
    have."""
    return {file_column: name for name in schema.names if (file_column := names.get(name, name)) is not None}


def with_table_names(batch: pa.RecordBatch, inside: Mapping[str, str], names: FileNames) -> pa.RecordBatch:
    """Return the rows of a file with the table's names of columns and nested fields.

    ``inside`` are the columns returned by `file_columns`.
    """
    columns = [inside[name] for name in batch.schema.names]
    nested = nested_columns(names)
    if nested:
        arrays = [
            _renamed(array, name, names) if name in nested else array
            for name, array in zip(columns, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=columns)
    return batch if columns == batch.schema.names else batch.rename_columns(columns)


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows with exactly the columns of ``schema``: reordered, promoted, others dropped. Missing ones are
    null, or have their default if they may not be null.

    Works for incoming rows and for those of base files with an older schema. No cost for columns whose types match.

    Raises:
        SchemaMismatchError: A type cannot be converted, a value does not fit, or a non-nullable column is missing or
            has nulls.
    """
    columns = []
    for target in schema:
        index = batch.schema.get_field_index(target.name)
        if index < 0:
            default = None if target.nullable else default_value(target)
            column = pa.nulls(batch.num_rows, target.type) if default is None else pa.repeat(default, batch.num_rows)
        else:
            column = convert(batch.column(index), target.type, target.name)
        if not target.nullable and column.null_count:
            raise SchemaMismatchError(
                f"column {target.name!r} of this table is not nullable, but {column.null_count} of {len(column)} "
                "rows have null; provide values"
            )
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def nested_columns(names: FileNames) -> frozenset[str]:
    """Return the top-level columns with nested fields that have other names in the file."""
    return frozenset(path.split(".")[0] for path in names if "." in path)


def _renamed(array: pa.Array, path: str, names: FileNames) -> pa.Array:
    """Return the values of a column with the table's names of nested fields."""
    data_type = array.type
    if not any(other.startswith(f"{path}.") for other in names):
        return array
    if pa.types.is_struct(data_type):
        return _renamed_struct(array, path, names)
    if pa.types.is_map(data_type):
        items = _renamed(array.items, f"{path}.{VALUE}", names)
        made = pa.map_(data_type.key_type, data_type.item_field.with_type(items.type))
        return _with_children(made, array, [_entries(array.keys, items, made)])
    if is_list(data_type):
        values = _renamed(array.values, f"{path}.{ELEMENT}", names)
        return _with_children(pa.list_(data_type.value_field.with_type(values.type)), array, [values])
    return array


def _renamed_struct(array: pa.StructArray, path: str, names: FileNames) -> pa.Array:
    by_file = {
        name: other.rpartition(".")[2]
        for other, name in names.items()
        if name is not None and other.rpartition(".")[0] == path
    }
    fields, children = [], []
    for i in range(array.type.num_fields):
        field = array.type.field(i)
        name = by_file.get(field.name)
        if name is None:
            if f"{path}.{field.name}" in names:
                continue
            name = field.name
        child = _renamed(array.field(i), f"{path}.{name}", names)
        fields.append(field.with_name(name).with_type(child.type))
        children.append(child)
    if not fields:  # A child array is needed for the length and the validity of the struct.
        fields, children = [array.type.field(0).with_name("")], [array.field(0)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _entries(keys: pa.Array, items: pa.Array, data_type: pa.MapType) -> pa.Array:
    return pa.StructArray.from_arrays([keys, items], fields=[data_type.key_field, data_type.item_field])


def _with_children(data_type: pa.DataType, array: pa.Array, children: list[pa.Array]) -> pa.Array:
    """Return a list or map array of the same shape over other values."""
    return pa.Array.from_buffers(
        data_type, len(array), array.buffers()[:2], array.null_count, array.offset, children=children
    )
