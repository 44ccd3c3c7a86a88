"""Types of internal schemas, with ids inside structs, arrays and maps; from and to Arrow and JSON
(`org.apache.hudi.internal.schema.Types`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from pyhudi.errors import SchemaError
from pyhudi.schema.logical_types.blobs import BLOB
from pyhudi.schema.logical_types.variants import VARIANT
from pyhudi.schema.logical_types.vectors import internal_text, is_vector, parse_internal
from pyhudi.schema.table_types import COMMENT, LIST_ITEM

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
OPAQUE = {BLOB: BLOB_RECORD, VARIANT: VARIANT_RECORD}
"""Records whose fields are not columns, by table type."""


def primitive_text(data_type: pa.DataType) -> str:
    """Return the text of a primitive table type."""
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision}, {data_type.scale})"
    if is_vector(data_type):
        return internal_text(data_type)
    return _PRIMITIVES[data_type]


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
            return pa.struct([to_field(field) for field in kind.fields]) if opaque is None else opaque
        case Array():
            return pa.list_(pa.field(LIST_ITEM, type_to_arrow(kind.element), kind.optional))
        case Map():
            return pa.map_(pa.string(), pa.field("value", type_to_arrow(kind.value), kind.optional))


def opaque_type(kind: Type) -> pa.DataType | None:
    """Return the table type of a record whose fields are not columns, a blob or variant; None for other types."""
    ids = {field.id for field in kind.fields} if isinstance(kind, Record) else set()
    return next((arrow for arrow, record in OPAQUE.items() if ids == {field.id for field in record.fields}), None)


def to_field(field: Field) -> pa.Field:
    """Return the table column for a field."""
    metadata = {COMMENT: field.doc.encode()} if field.doc else None
    return pa.field(field.name, type_to_arrow(field.type), field.optional, metadata)


def type_to_json(kind: Type) -> Any:
    """Return the JSON value of a type."""
    match kind:
        case str():
            return kind
        case Record():
            return {"type": "record", "fields": [_field_to_json(field) for field in kind.fields]}
        case Array():
            return {
                "type": "array",
                "element_id": kind.element_id,
                "element": type_to_json(kind.element),
                "element_optional": kind.optional,
            }
        case Map():
            return {
                "type": "map",
                "key_id": kind.key_id,
                "key": type_to_json(kind.key),
                "value_id": kind.value_id,
                "value": type_to_json(kind.value),
                "value_optional": kind.optional,
            }


def _field_to_json(field: Field) -> dict[str, Any]:
    value = {"id": field.id, "name": field.name, "optional": field.optional, "type": type_to_json(field.type)}
    return value if field.doc is None else {**value, "doc": field.doc}


def type_from_json(value: Any) -> Type:
    """Return the type of a JSON value.

    Raises:
        KeyError, TypeError, ValueError: The value is not a valid type.
    """
    if isinstance(value, str):
        return value if parse_internal(value) is not None else value.lower()
    match value["type"]:
        case "record":
            return Record(tuple(map(_field_from_json, value["fields"])))
        case "array":
            return Array(
                int(value["element_id"]), type_from_json(value["element"]), bool(value.get("element_optional", True))
            )
        case "map":
            key, inside = type_from_json(value["key"]), type_from_json(value["value"])
            optional = bool(value.get("value_optional", True))
            return Map(int(value["key_id"]), int(value["value_id"]), key, inside, optional)
        case other:
            raise ValueError(f"{other!r} is not a valid type of a schema")


def _field_from_json(value: dict[str, Any]) -> Field:
    return Field(
        int(value["id"]), str(value["name"]), type_from_json(value["type"]), bool(value["optional"]), value.get("doc")
    )
