"""Changes of columns by name: add, drop, rename, move, change type, comment (schema-on-read evolution).

The rules are those of Apache Hudi's ``ALTER TABLE`` (`org.apache.hudi.internal.schema.action.TableChanges`), except
that type changes that would lose values are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.errors import SchemaMismatchError
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
)
from pyhudi.schema.evolution.type_widening import widened_type
from pyhudi.schema.logical_types.blobs import BLOB, BLOB_TEXT
from pyhudi.schema.logical_types.variants import VARIANT_TEXT
from pyhudi.schema.meta_columns import is_meta_column, is_reserved
from pyhudi.schema.name_resolution import matches_ignoring_case
from pyhudi.schema.table_types import NAME_RULE, is_valid_name, nullable_type

_NEW = "\0new"


@dataclass(frozen=True, slots=True)
class ColumnPosition:
    """A position among the fields of a struct: first, or before or after another field. Meta columns stay in front:
    Apache Hudi writes them by their positions."""

    first: bool = False
    after: str | None = None
    before: str | None = None

    def place(self, fields: tuple[Field, ...], moved: Field, parent: str) -> tuple[Field, ...]:
        """Return the fields with one of them (or a new one) at this position.

        Raises:
            SchemaMismatchError: The reference field does not exist.
        """
        others = [field for field in fields if field.id != moved.id]
        meta = [field for field in others if not parent and is_meta_column(field.name)]
        others = [field for field in others if field not in meta]
        if self.first:
            return (*meta, moved, *others)
        reference = self.after if self.after is not None else self.before
        names = [field.name for field in others]
        if reference is None:
            return (*meta, *others, moved)
        if reference not in names:
            raise SchemaMismatchError(
                f"cannot place column {_child_path(parent, moved.name)!r} next to {reference!r}: "
                f"{parent or 'the table'} has no such column; it has {', '.join(names)}"
            )
        at = names.index(reference) + (self.after is not None)
        return (*meta, *others[:at], moved, *others[at:])


LAST = ColumnPosition()


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
