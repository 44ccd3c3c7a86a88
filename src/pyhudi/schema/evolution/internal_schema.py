"""Internal schemas: the columns of a table with ids that remain when a column is renamed, moved or changed in type.

Apache Hudi stores them as JSON (`org.apache.hudi.internal.schema.utils.SerDeHelper`): in the commit metadata under
``latest_schema``, and all versions in the files of ``.hoodie/.schema``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa

from pyhudi.errors import SchemaError
from pyhudi.schema.logical_types.blobs import BLOB
from pyhudi.schema.logical_types.variants import VARIANT
from pyhudi.schema.logical_types.vectors import internal_text, is_vector, parse_internal
from pyhudi.schema.table_types import COMMENT, LIST_ITEM, is_list

_DECIMAL = re.compile(r"decimal(?:_bytes|_fixed)?\((\d+),\s*(\d+)\)(?:\[\d+\])?")
_FIXED = re.compile(r"fixed\[\d+\]")
_PRIMITIVES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.time32("ms"): "time-millis",
    pa.time64("us"): "time",
    pa.timestamp("ms", "UTC"): "timestamp-millis",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("ms"): "local-timestamp-millis",
    pa.timestamp("us"): "local-timestamp-micros",
}
_FROM_TEXT = {text: kind for kind, text in _PRIMITIVES.items()} | {"uuid": pa.string()}

ELEMENT, KEY, VALUE = "element", "key", "value"
"""Path segments of elements, keys and values inside arrays and maps (``InternalSchema`` in Apache Hudi)."""


@dataclass(frozen=True, slots=True)
class Record:
    """A struct."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """A list. Its elements have an id."""

    element_id: int
    element: Type
    optional: bool


@dataclass(frozen=True, slots=True)
class Map:
    """A map. Keys and values have one id each."""

    key_id: int
    value_id: int
    key: Type
    value: Type
    optional: bool


Type: TypeAlias = "str | Record | Array | Map"
"""Primitive types are texts such as ``long`` or ``decimal(10, 2)``."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a field of a struct."""

    id: int
    name: str
    type: Type
    optional: bool = True
    doc: str | None = None


_REFERENCE = Record(
    (
        Field(0, "external_path", "string", False),
        Field(1, "offset", "long"),
        Field(2, "length", "long"),
        Field(3, "managed", "boolean", False),
    )
)
BLOB_RECORD = Record(
    (
        Field(-10, "type", "string", False, "Blob storage type (INLINE | OUT_OF_LINE)"),
        Field(-11, "data", "binary", True, "Inline blob bytes"),
        Field(-12, "reference", _REFERENCE, True, "Out-of-line blob reference"),
    )
)
"""Blobs: all have the same ids, by which Apache Hudi tells them from structs. They identify no columns."""
VARIANT_RECORD = Record(
    (
        Field(-2, "metadata", "binary", False, "Variant metadata component"),
        Field(-1, "value", "binary", False, "Variant value component"),
    )
)
"""Variants, as blobs."""
_OPAQUE = {BLOB: BLOB_RECORD, VARIANT: VARIANT_RECORD}


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
        return pa.schema([_to_field(field) for field in self.fields])

    def to_json(self) -> str:
        """Return the JSON text that is stored under ``latest_schema`` in commit metadata."""
        return json.dumps(
            {
                "max_column_id": self.max_column_id,
                "version_id": self.version_id,
                **_type_to_json(Record(self.fields)),
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
        record = _type_from_json(value)
        if not isinstance(record, Record):
            raise ValueError("the schema is not a record")
        ids = [id_ for _, id_ in _paths("", record)]
        most = int(value["max_column_id"]) if "max_column_id" in value else max(ids, default=-1)
        return cls(int(value["version_id"]), most, record.fields)


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

    def _type(self, before: Type, kind: pa.DataType) -> Type:
        if kind in _OPAQUE:
            return _OPAQUE[kind]
        if pa.types.is_struct(kind):
            return self.record(before, [kind.field(i) for i in range(kind.num_fields)])
        if pa.types.is_map(kind):
            old_map = before if isinstance(before, Map) else None
            key_id = self._next() if old_map is None else old_map.key_id
            value_id = self._next() if old_map is None else old_map.value_id
            inside = self._type("" if old_map is None else old_map.value, kind.item_type)
            return Map(key_id, value_id, "string", inside, kind.item_field.nullable)
        if is_list(kind) and not is_vector(kind):
            old = before if isinstance(before, Array) else None
            element_id = self._next() if old is None else old.element_id
            inside = self._type("" if old is None else old.element, kind.value_type)
            return Array(element_id, inside, kind.value_field.nullable)
        same = isinstance(before, str) and before and primitive_to_arrow(before) == kind
        return before if same else primitive_text(kind)


def primitive_text(kind: pa.DataType) -> str:
    """Return the text of a primitive table type."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if is_vector(kind):
        return internal_text(kind)
    return _PRIMITIVES[kind]


def primitive_to_arrow(text: str) -> pa.DataType:
    """Return the type with the given text.

    Raises:
        SchemaError: There is no such type.
    """
    if (decimal := _DECIMAL.fullmatch(text)) is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if _FIXED.fullmatch(text):
        return pa.binary()
    if (vector := parse_internal(text)) is not None:
        return vector
    if text not in _FROM_TEXT:
        raise SchemaError(f"unknown type {text!r} in the schema history of the table")
    return _FROM_TEXT[text]


def type_to_arrow(kind: Type) -> pa.DataType:
    """Return the table type for a type of an internal schema."""
    match kind:
        case str():
            return primitive_to_arrow(kind)
        case Record():
            opaque = opaque_type(kind)
            return pa.struct([_to_field(field) for field in kind.fields]) if opaque is None else opaque
        case Array():
            return pa.list_(pa.field(LIST_ITEM, type_to_arrow(kind.element), kind.optional))
        case Map():
            return pa.map_(pa.string(), pa.field("value", type_to_arrow(kind.value), kind.optional))


def opaque_type(kind: Type) -> pa.DataType | None:
    """Return the table type of a record whose fields are not columns, a blob or variant; None for other types."""
    ids = {field.id for field in kind.fields} if isinstance(kind, Record) else set()
    return next((arrow for arrow, record in _OPAQUE.items() if ids == {field.id for field in record.fields}), None)


def _to_field(field: Field) -> pa.Field:
    metadata = {COMMENT: field.doc.encode()} if field.doc else None
    return pa.field(field.name, type_to_arrow(field.type), field.optional, metadata)


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


def _type_to_json(kind: Type) -> Any:
    match kind:
        case str():
            return kind
        case Record():
            return {"type": "record", "fields": [_field_to_json(field) for field in kind.fields]}
        case Array():
            return {
                "type": "array",
                "element_id": kind.element_id,
                "element": _type_to_json(kind.element),
                "element_optional": kind.optional,
            }
        case Map():
            return {
                "type": "map",
                "key_id": kind.key_id,
                "key": _type_to_json(kind.key),
                "value_id": kind.value_id,
                "value": _type_to_json(kind.value),
                "value_optional": kind.optional,
            }


def _field_to_json(field: Field) -> dict[str, Any]:
    value = {"id": field.id, "name": field.name, "optional": field.optional, "type": _type_to_json(field.type)}
    return value if field.doc is None else {**value, "doc": field.doc}


def _type_from_json(value: Any) -> Type:
    if isinstance(value, str):
        return value if parse_internal(value) is not None else value.lower()
    match value["type"]:
        case "record":
            return Record(tuple(map(_field_from_json, value["fields"])))
        case "array":
            return Array(
                int(value["element_id"]), _type_from_json(value["element"]), bool(value.get("element_optional", True))
            )
        case "map":
            key, inside = _type_from_json(value["key"]), _type_from_json(value["value"])
            optional = bool(value.get("value_optional", True))
            return Map(int(value["key_id"]), int(value["value_id"]), key, inside, optional)
        case other:
            raise ValueError(f"{other!r} is not a valid type of a schema")


def _field_from_json(value: dict[str, Any]) -> Field:
    return Field(
        int(value["id"]), str(value["name"]), _type_from_json(value["type"]), bool(value["optional"]), value.get("doc")
    )


def with_version(schema: InternalSchema, version_id: int) -> InternalSchema:
    """Return the same columns with another version id."""
    return replace(schema, version_id=version_id)
