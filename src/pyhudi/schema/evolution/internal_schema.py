"""Internal schemas: the columns of a table with ids that remain when a column is renamed, moved or changed in type.

Apache Hudi stores them as JSON (`org.apache.hudi.internal.schema.utils.SerDeHelper`): in the commit metadata under
``latest_schema``, and all versions in the files of ``.hoodie/.schema``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.schema.evolution.internal_types import (
    ELEMENT,
    KEY,
    OPAQUE,
    VALUE,
    Array,
    Field,
    Map,
    Record,
    Type,
    opaque_type,
    primitive_text,
    primitive_to_arrow,
    to_field,
    type_from_json,
    type_to_json,
)
from pyhudi.schema.logical_types.vectors import is_vector
from pyhudi.schema.table_types import COMMENT, is_list


@dataclass(frozen=True, slots=True)
class InternalSchema:
    """One version of the columns of a table, including meta columns.

    ``version_id`` is the instant since which the version applies (0: since the creation). ``max_column_id`` is the
    greatest id ever assigned to a column, so that ids are never reused.
    """

    version_id: int
    max_column_id: int
    fields: tuple[Field, ...]

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> InternalSchema:
        """Assign ids to the columns of a schema, as Apache Hudi does at the start of a table's schema history."""
        ids = _Ids(-1)
        record = ids.record(_NOTHING, list(schema))
        return cls(0, ids.last, record.fields)

    def evolved(self, schema: pa.Schema, version_id: int) -> InternalSchema:
        """Return the version with the columns of ``schema``, or this version if nothing has changed.

        Columns and nested fields keep their ids by name; new ones get new ids.
        """
        ids = _Ids(self.max_column_id)
        fields = ids.record(Record(self.fields), list(schema)).fields
        return self if fields == self.fields else InternalSchema(version_id, ids.last, fields)

    def paths(self) -> dict[str, int]:
        """Return the id of each column by its dotted path (`ELEMENT`, `KEY` and `VALUE` inside arrays and maps)."""
        return dict(_paths("", Record(self.fields)))

    def field_at(self, path: str) -> Field | None:
        """Return the column, or struct field, at a dotted path; None if it does not exist."""
        fields, current = self.fields, None
        for name in path.split("."):
            current = next((field for field in fields if field.name == name), None)
            if current is None:
                return None
            fields = current.type.fields if isinstance(current.type, Record) else ()
        return current

    def to_arrow(self) -> pa.Schema:
        """Return the columns as a table schema.

        Raises:
            SchemaError: A type is not a valid table type.
        """
        return pa.schema([to_field(field) for field in self.fields])

    def to_json(self) -> str:
        """Return the JSON text that is stored under ``latest_schema`` in commit metadata."""
        return json.dumps(
            {
                "max_column_id": self.max_column_id,
                "version_id": self.version_id,
                **type_to_json(Record(self.fields)),
            },
            separators=(",", ":"),
            ensure_ascii=False,
        )

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> InternalSchema:
        """Convert parsed JSON to a version.

        Raises:
            KeyError, TypeError, ValueError: The JSON is not a valid version.
        """
        record = type_from_json(value)
        if not isinstance(record, Record):
            raise ValueError("the schema is not a record")
        ids = [id_ for _, id_ in _paths("", record)]
        max_column_id = int(value["max_column_id"]) if "max_column_id" in value else max(ids, default=-1)
        return cls(int(value["version_id"]), max_column_id, record.fields)


_NOTHING = Record(())


class _Ids:
    """Assigns ids to types: those of earlier types with the same name, otherwise new ones.

    The fields of a struct get their ids before their nested fields, as in Apache Hudi.
    """

    def __init__(self, last: int) -> None:
        self.last = last

    def _next(self) -> int:
        self.last += 1
        return self.last

    def record(self, before: Type, fields: list[pa.Field]) -> Record:
        old = {field.name: field for field in before.fields} if isinstance(before, Record) else {}
        ids = [old[field.name].id if field.name in old else self._next() for field in fields]
        return Record(
            tuple(
                Field(id_, f.name, self._type(old[f.name].type if f.name in old else "", f.type), f.nullable, _doc(f))
                for id_, f in zip(ids, fields, strict=True)
            )
        )

    def _type(self, before: Type, data_type: pa.DataType) -> Type:
        if data_type in OPAQUE:
            return OPAQUE[data_type]
        if pa.types.is_struct(data_type):
            return self.record(before, [data_type.field(i) for i in range(data_type.num_fields)])
        if pa.types.is_map(data_type):
            old_map = before if isinstance(before, Map) else None
            key_id = self._next() if old_map is None else old_map.key_id
            value_id = self._next() if old_map is None else old_map.value_id
            inside = self._type("" if old_map is None else old_map.value, data_type.item_type)
            return Map(key_id, value_id, "string", inside, data_type.item_field.nullable)
        if is_list(data_type) and not is_vector(data_type):
            old = before if isinstance(before, Array) else None
            element_id = self._next() if old is None else old.element_id
            inside = self._type("" if old is None else old.element, data_type.value_type)
            return Array(element_id, inside, data_type.value_field.nullable)
        same = isinstance(before, str) and before and primitive_to_arrow(before) == data_type
        return before if same else primitive_text(data_type)


def _doc(field: pa.Field) -> str | None:
    text = (field.metadata or {}).get(COMMENT)
    if text is not None:
        return str(text.decode())
    return "" if field.name.startswith("_hoodie_") else None


def _paths(prefix: str, kind: Type) -> Iterator[tuple[str, int]]:
    inside: Iterable[tuple[str, int, Type]] = ()
    match kind:
        case Record() if opaque_type(kind) is None:
            inside = ((field.name, field.id, field.type) for field in kind.fields)
        case Array():
            inside = ((ELEMENT, kind.element_id, kind.element),)
        case Map():
            inside = ((KEY, kind.key_id, kind.key), (VALUE, kind.value_id, kind.value))
    for name, id_, type_ in inside:
        path = f"{prefix}.{name}" if prefix else name
        yield path, id_
        yield from _paths(path, type_)
