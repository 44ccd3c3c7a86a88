"""Changes of columns by name: add, drop, rename, move, change type, comment (schema-on-read evolution).

The rules are those of Apache Hudi's ``ALTER TABLE`` (`org.apache.hudi.internal.schema.action.TableChanges`), except
that type changes that would lose values are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pyhudi.errors import SchemaError, SchemaMismatchError
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.schema.evolution.internal_schema import InternalSchema
from pyhudi.schema.evolution.internal_types import (
    ELEMENT,
    KEY,
    VALUE,
    Array,
    Field,
    Map,
    Record,
    Type,
    opaque_type,
    primitive_text,
    primitive_to_arrow,
)
from pyhudi.schema.logical_types.blobs import BLOB, BLOB_TEXT, is_blob_text
from pyhudi.schema.logical_types.variants import VARIANT, VARIANT_TEXT, is_variant_text
from pyhudi.schema.logical_types.vectors import parse_vector
from pyhudi.schema.meta_columns import is_reserved
from pyhudi.schema.name_resolution import matches_ignoring_case
from pyhudi.schema.table_types import NAME_RULE, is_valid_name, nullable_type, table_type

_DIGITS = {"int": 10, "long": 19}
_WIDER = {
    "int": {"long", "double", "string"},
    "long": {"string"},
    "float": {"double", "string"},
    "double": {"string"},
    "date": {"string"},
}
_SQL_NAMES = {
    "bool": "boolean",
    "integer": "int",
    "bigint": "long",
    "real": "float",
    "text": "string",
    "bytes": "binary",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "local-timestamp-micros",
}


@dataclass(frozen=True, slots=True)
class ColumnPosition:
    """A position among the fields of a struct: first, or before or after another field."""

    first: bool = False
    after: str | None = None
    before: str | None = None

    def place(self, fields: tuple[Field, ...], moved: Field, parent: str) -> tuple[Field, ...]:
        """Return the fields with one of them (or a new one) at this position.

        Raises:
            SchemaMismatchError: The reference field does not exist.
        """
        others = [field for field in fields if field.id != moved.id]
        if self.first:
            return (moved, *others)
        reference = self.after if self.after is not None else self.before
        names = [field.name for field in others]
        if reference is None:
            return (*others, moved)
        if reference not in names:
            raise SchemaMismatchError(
                f"cannot place column {_child_path(parent, moved.name)!r} next to {reference!r}: "
                f"{parent or 'the table'} has no such column; it has {', '.join(names)}"
            )
        at = names.index(reference) + (self.after is not None)
        return (*others[:at], moved, *others[at:])


LAST = ColumnPosition()


def as_table_type(kind: object) -> pa.DataType:
    """Return the type of a column from an Arrow type, a PySpark type or a text such as ``bigint``.

    Raises:
        SchemaError: The type is not supported in tables.
    """
    if isinstance(kind, pa.DataType):
        return nullable_type(table_type(kind))
    if isinstance(kind, str):
        text = kind.strip().lower()
        decimal = re.fullmatch(r"(?:decimal|numeric|dec)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", text)
        if decimal is not None:
            return table_type(pa.decimal128(int(decimal[1]), int(decimal[2] or 0)))
        if is_blob_text(text):
            return BLOB
        if is_variant_text(text):
            return VARIANT
        vector = parse_vector(text)
        if vector is not None:
            return vector
        try:
            return primitive_to_arrow(_SQL_NAMES.get(text, text))
        except SchemaError:
            raise SchemaError(
                f"unknown type {kind!r}; pass one of pyarrow or of pyspark.sql.types, or a text such as 'int', "
                "'bigint', 'string' or 'decimal(10, 2)'"
            ) from None
    if hasattr(kind, "jsonValue"):
        return from_spark_json(_one_column(kind)).field(0).type
    raise SchemaError(
        f"{kind!r} is not a type: pass one of pyarrow or of pyspark.sql.types, or a text such as 'bigint'"
    )


def _one_column(kind: Any) -> str:
    field = {"name": "c", "type": kind.jsonValue(), "nullable": True, "metadata": {}}
    return json.dumps({"type": "struct", "fields": [field]})


def add_column(
    schema: InternalSchema, path: str, data_type: pa.DataType, doc: str | None = None, position: ColumnPosition = LAST
) -> InternalSchema:
    """Return the schema with a new nullable column, or a new field in a struct."""
    parent, _, name = path.rpartition(".")
    if not name:
        raise SchemaMismatchError(f"{path!r} is not a valid column name")
    numbered = schema.evolved(pa.schema([*schema.to_arrow(), pa.field(_NEW, nullable_type(data_type))]), 0)
    new = replace(numbered.fields[-1], name=name, doc=doc)

    def add(fields: tuple[Field, ...]) -> tuple[Field, ...]:
        _check_new_name(fields, name, parent)
        return position.place(fields, new, parent)

    return replace(_edited(schema, parent, add), max_column_id=numbered.max_column_id)


def drop_column(schema: InternalSchema, path: str) -> InternalSchema:
    """Return the schema without a column or field."""
    parent, _, name = path.rpartition(".")

    def drop(fields: tuple[Field, ...]) -> tuple[Field, ...]:
        target = _find(fields, name, parent)
        left = tuple(field for field in fields if field.id != target.id)
        if not any(not field.name.startswith("_hoodie_") for field in left):
            raise SchemaMismatchError(
                f"cannot drop column {path!r}: it is the last one of {parent or 'the table'}, which needs at least one"
            )
        return left

    return _edited(schema, parent, drop)


def rename_column(schema: InternalSchema, path: str, name: str) -> InternalSchema:
    """Return the schema with another name for a column or field. ``name`` is only the last part of the path."""
    if not name or "." in name:
        raise SchemaMismatchError(f"invalid new name {name!r} for column {path!r}; pass only the last part of its path")

    def rename(target: Field, fields: tuple[Field, ...], parent: str) -> Field:
        others = tuple(field for field in fields if field.id != target.id)
        _check_new_name(others, name, parent)
        return replace(target, name=name)

    return _changed(schema, path, rename)


def change_type(schema: InternalSchema, path: str, data_type: pa.DataType) -> InternalSchema:
    """Return the schema with a wider type for a column or field, or for its elements or values."""
    new = _primitive(data_type, path)
    record = _with_type(Record(schema.fields), path.split("."), lambda old: widened_type(old, new, path), path)
    assert isinstance(record, Record)
    return replace(schema, fields=record.fields)


def move_column(schema: InternalSchema, path: str, position: ColumnPosition) -> InternalSchema:
    """Return the schema with a column or field at another position."""
    parent, _, name = path.rpartition(".")
    return _edited(schema, parent, lambda fields: position.place(fields, _find(fields, name, parent), parent))


def set_comment(schema: InternalSchema, path: str, text: str | None) -> InternalSchema:
    """Return the schema with another comment for a column or field."""
    return _changed(schema, path, lambda target, _, __: replace(target, doc=text))


def differ_in_comments_only(before: InternalSchema, after: InternalSchema) -> bool:
    """Return True if two versions of a schema differ in comments at most."""
    return before.paths() == after.paths() and before.to_arrow().equals(after.to_arrow(), check_metadata=False)


def make_nullable(schema: InternalSchema, path: str) -> InternalSchema:
    """Return the schema with a column or field made nullable."""
    return _changed(schema, path, lambda target, _, __: replace(target, optional=True))


def widened_type(old: Type, new: str, path: str) -> str:
    """Return the new type of a column.

    Raises:
        SchemaMismatchError: Values would be lost, or the column is a struct, list or map.
    """
    if not isinstance(old, str):
        raise SchemaMismatchError(
            f"cannot change the type of column {path!r}: it is nested; change the types of its fields, elements or "
            "values instead"
        )
    if _is_wider(old, new):
        return new
    raise SchemaMismatchError(
        f"cannot change the type of column {path!r} from {old} to {new}: values could be lost. Allowed are int to "
        "long, double, string or decimal; long to string or decimal; float to double or string; double, date and "
        "decimal to string; and decimal to a wider decimal. Otherwise add a column of the new type and fill it"
    )


def _is_wider(old: str, new: str) -> bool:
    before, after = primitive_to_arrow(old), primitive_to_arrow(new)
    if before == after:
        return True
    if pa.types.is_decimal(after):
        digits = after.precision - after.scale
        if pa.types.is_decimal(before):
            return bool(after.scale >= before.scale and digits >= before.precision - before.scale)
        return old in _DIGITS and bool(digits >= _DIGITS[old])
    if pa.types.is_decimal(before):
        return new == "string"
    return new in _WIDER.get(old, ())


_NEW = "\0new"


def _primitive(data_type: pa.DataType, path: str) -> str:
    if pa.types.is_nested(data_type):
        raise SchemaMismatchError(
            f"cannot change column {path!r} to {data_type}: only primitive types can be changed; add, drop or rename "
            "its fields instead"
        )
    return primitive_text(data_type)


def _child_path(parent: str, name: str) -> str:
    return f"{parent}.{name}" if parent else name


def _check_new_name(fields: tuple[Field, ...], name: str, parent: str) -> None:
    """Refuse a name that another field has, or that no column may have."""
    path = _child_path(parent, name)
    taken = matches_ignoring_case(name, [field.name for field in fields])
    if taken:
        raise SchemaMismatchError(f"column {_child_path(parent, taken[0])!r} exists; choose another name")
    if not is_valid_name(name):
        raise SchemaMismatchError(f"invalid column name {path!r}: {NAME_RULE}; choose another name")
    if not parent and is_reserved(name):
        raise SchemaMismatchError(f"the column name {path!r} is reserved; choose another name")


def _find(fields: tuple[Field, ...], name: str, parent: str) -> Field:
    target = next((field for field in fields if field.name == name), None)
    if target is None:
        names = ", ".join(field.name for field in fields if not field.name.startswith("_hoodie_"))
        raise SchemaMismatchError(
            f"column {_child_path(parent, name)!r} does not exist; {parent or 'the table'} has {names}"
        )
    if name.startswith("_hoodie_") and not parent:
        raise SchemaMismatchError(f"meta column {name!r} cannot be changed")
    return target


def _changed(
    schema: InternalSchema, path: str, change: Callable[[Field, tuple[Field, ...], str], Field]
) -> InternalSchema:
    """Return the schema with one field changed in place."""
    parent, _, name = path.rpartition(".")

    def edit(fields: tuple[Field, ...]) -> tuple[Field, ...]:
        target = _find(fields, name, parent)
        new = change(target, fields, parent)
        return tuple(new if field.id == target.id else field for field in fields)

    return _edited(schema, parent, edit)


_Edit = Callable[[tuple[Field, ...]], tuple[Field, ...]]


def _edited(schema: InternalSchema, parent: str, edit: _Edit) -> InternalSchema:
    """Return the schema with the fields of one struct changed. ``parent`` is its path; empty for the top-level
    columns."""

    def edit_fields(kind: Type) -> Type:
        _refuse_opaque(kind, parent)
        if not isinstance(kind, Record):
            raise SchemaMismatchError(f"column {parent!r} is not a struct, so it has no fields to change")
        return Record(edit(kind.fields))

    record = _with_type(Record(schema.fields), parent.split(".") if parent else [], edit_fields, parent)
    assert isinstance(record, Record)
    return replace(schema, fields=record.fields)


def _refuse_opaque(kind: Type, path: str) -> None:
    opaque = opaque_type(kind)
    if opaque is not None:
        name = BLOB_TEXT if opaque == BLOB else VARIANT_TEXT
        raise SchemaMismatchError(f"column {path!r} is a {name}, or inside of one, whose fields cannot be changed")


def _with_type(kind: Type, parts: list[str], change: Callable[[Type], Type], path: str) -> Type:
    """Return a type with a nested type at a path changed."""
    if not parts:
        return change(kind)
    name, rest = parts[0], parts[1:]
    _refuse_opaque(kind, path)
    match kind:
        case Record():
            target = _find(kind.fields, name, "")
            new = replace(target, type=_with_type(target.type, rest, change, path))
            return Record(tuple(new if field.id == target.id else field for field in kind.fields))
        case Array() if name == ELEMENT:
            return replace(kind, element=_with_type(kind.element, rest, change, path))
        case Map() if name == VALUE:
            return replace(kind, value=_with_type(kind.value, rest, change, path))
    inside = f"; keys of maps cannot be changed, their values are {VALUE!r}" if name == KEY else ""
    raise SchemaMismatchError(f"column {path!r} does not exist: it contains no {name!r}{inside}")
