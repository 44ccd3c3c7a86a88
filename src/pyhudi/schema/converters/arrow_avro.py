"""Conversion between Arrow schemas and Avro JSON, with the names and order of Apache Hudi's Spark writer.

The record is named ``<table>_record`` in namespace ``hoodie.<table>``, both sanitised. A nullable type is a union of
null and the type, with default null. The namespace of a named type (struct, decimal) is the path to it, so that names
never clash. Decimals are of type fixed, as small as the precision allows, unless the schema of the table has them as
bytes.
"""

from __future__ import annotations

import functools
import json
import re
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from pyhudi.errors import SchemaError
from pyhudi.schema.logical_types.blobs import BLOB, blob_avro, is_blob
from pyhudi.schema.logical_types.variants import VARIANT, as_plain_struct, is_variant, variant_avro
from pyhudi.schema.logical_types.vectors import is_vector, vector_avro, vector_of_avro
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.schema.table_types import COMMENT, DECIMAL_FORM, DEFAULT, LIST_ITEM, MAX_PRECISION, is_list, to_table_types

_PRIMITIVES: dict[pa.DataType, Any] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.null(): "null",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
    pa.timestamp("ms", "UTC"): {"type": "long", "logicalType": "timestamp-millis"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("ms"): {"type": "long", "logicalType": "local-timestamp-millis"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}
_FROM_AVRO: dict[tuple[str, str | None], pa.DataType] = {
    (avro["type"], avro["logicalType"]) if isinstance(avro, dict) else (avro, None): arrow
    for arrow, avro in _PRIMITIVES.items()
}


def sanitize(name: str) -> str:
    """Return a table name as a valid Avro name: every other character becomes two underscores."""
    first = re.sub(r"[^A-Za-z_]", "__", name[:1])
    return first + re.sub(r"[^A-Za-z0-9_]", "__", name[1:])


def record_name(table_name: str) -> tuple[str, str]:
    """Return the name and the namespace of a table's record."""
    clean = sanitize(table_name)
    return f"{clean}_record", f"hoodie.{clean}"


def decimal_size(precision: int) -> int:
    """Return the minimum number of bytes that holds every signed number with the given number of digits."""
    digits: int = 10**precision - 1
    return (digits.bit_length() + 8) // 8


def to_avro(schema: pa.Schema, table_name: str) -> str:
    """Return the schema of a table as compact Avro JSON. Meta columns have an empty doc, as in Apache Hudi.

    Raises:
        SchemaError: A column has an unsupported type or an invalid name.
    """
    name, namespace = record_name(table_name)
    fields = _named_once([_field(field, f"{namespace}.{name}") for field in to_table_types(schema)])
    return json.dumps(
        {"type": "record", "name": name, "namespace": namespace, "fields": fields},
        separators=(",", ":"),
        ensure_ascii=False,
    )


def _named_once(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Name the type of a vector, blob or variant where an earlier column has it: Avro refuses a second definition."""
    defined: set[str] = set()

    def named(avro: Any) -> Any:
        if isinstance(avro, list):
            return [named(branch) for branch in avro]
        if not isinstance(avro, dict):
            return avro
        if avro.get("logicalType") not in ("vector", "blob", "variant"):
            inner = {key: named(avro[key]) for key in ("type", "items", "values") if key in avro}
            if "fields" in avro:
                inner["fields"] = [{**field, "type": named(field["type"])} for field in avro["fields"]]
            return {**avro, **inner}
        name = avro["name"]
        if name in defined:
            return name
        defined.add(name)
        return avro

    return [{**field, "type": named(field["type"])} for field in fields]


def _field(field: pa.Field, namespace: str) -> dict[str, Any]:
    metadata = field.metadata or {}
    avro: dict[str, Any] = {"name": field.name, "type": _optional(field, field.name, namespace)}
    if COMMENT in metadata:
        avro["doc"] = metadata[COMMENT].decode()
    elif is_meta_column(field.name):
        avro["doc"] = ""
    if DEFAULT in metadata:
        avro["default"] = json.loads(metadata[DEFAULT])
        if isinstance(avro["type"], list):
            avro["type"].reverse()  # a default is a value of the first branch
    elif isinstance(avro["type"], list):
        avro["default"] = None
    return avro


def _optional(field: pa.Field, name: str, namespace: str) -> Any:
    avro = _decimal(field, name, namespace) if pa.types.is_decimal(field.type) else _type(field.type, name, namespace)
    return ["null", avro] if field.nullable and avro != "null" else avro


def _type(data_type: pa.DataType, name: str, namespace: str) -> Any:
    """Return the Avro type. ``name`` is that of the column, also for types inside its lists and maps."""
    if is_blob(data_type):
        return blob_avro()
    if is_variant(data_type):
        return variant_avro()
    if pa.types.is_struct(data_type):
        inner = f"{namespace}.{name}"
        fields = [_field(data_type.field(i), inner) for i in range(data_type.num_fields)]
        return {"type": "record", "name": name, "namespace": namespace, "fields": fields}
    if pa.types.is_map(data_type):
        return {"type": "map", "values": _optional(data_type.item_field, name, namespace)}
    if is_vector(data_type):
        return vector_avro(data_type)
    if is_list(data_type):
        return {"type": "array", "items": _optional(data_type.value_field, name, namespace)}
    return _PRIMITIVES[data_type]


def _decimal(field: pa.Field, name: str, namespace: str) -> dict[str, Any]:
    logical = {"logicalType": "decimal", "precision": field.type.precision, "scale": field.type.scale}
    if (field.metadata or {}).get(DECIMAL_FORM) == b"bytes":
        return {"type": "bytes", **logical}
    space, size = f"{namespace}.{name}", decimal_size(field.type.precision)
    return {"type": "fixed", "name": "fixed", "namespace": space, "size": size, **logical}


def _decimal_form(avro: Any) -> dict[bytes, bytes]:
    """Return the metadata of a field with decimals as bytes, which may be null; nothing for other fields."""
    branches = [branch for branch in (avro if isinstance(avro, list) else [avro]) if branch != "null"]
    kind = branches[0] if len(branches) == 1 else None
    is_bytes = isinstance(kind, dict) and (kind.get("type"), kind.get("logicalType")) == ("bytes", "decimal")
    return {DECIMAL_FORM: b"bytes"} if is_bytes else {}


def default_value(field: pa.Field) -> pa.Scalar | None:
    """Return the non-null default of a column; None if it has none, or is nested.

    Avro encodes bytes, and decimals as big-endian bytes, as text with one character per byte, and dates and times as
    their stored numbers.

    Raises:
        SchemaError: The default is not a value of the column's type.
    """
    text = (field.metadata or {}).get(DEFAULT)
    data_type = field.type
    if text is None or pa.types.is_nested(data_type):
        return None
    value = json.loads(text)
    try:
        if pa.types.is_binary(data_type):
            return pa.scalar(value.encode("latin-1"), data_type)
        if pa.types.is_decimal(data_type):
            unscaled = int.from_bytes(value.encode("latin-1"), "big", signed=True)
            return pa.scalar(Decimal(unscaled).scaleb(-data_type.scale, Context(prec=MAX_PRECISION)), data_type)
        if pa.types.is_temporal(data_type):
            return pa.scalar(value, pa.int32() if data_type.bit_width == 32 else pa.int64()).cast(data_type)
        return pa.scalar(value).cast(data_type)
    except (pa.ArrowException, AttributeError, ValueError, ArithmeticError) as error:
        raise SchemaError(
            f"the default {text.decode()} of column {field.name!r} is not a valid {data_type}: {error}"
        ) from error


@functools.lru_cache(maxsize=256)
def from_avro(text: str) -> pa.Schema:
    """Return the Arrow schema of a table's Avro JSON.

    Enums become strings, and fixed becomes binary, or a vector (`pyhudi.schema.logical_types.vectors`). A union of int
    and long, or of float and double, becomes the wider type. Other unions of several types become a struct with one
    nullable field ``member<n>`` per type, as in Spark. Comments, non-null defaults, and whether decimals are bytes, are
    kept in the metadata of fields.

    Raises:
        SchemaError: The text is not an Avro record schema, or the schema is recursive.
    """
    try:
        avro = json.loads(text)
    except ValueError as error:
        raise SchemaError(f"the table schema is not valid JSON: {error}") from error
    if not isinstance(avro, dict) or avro.get("type") != "record":
        raise SchemaError("the table schema is not an Avro record")
    reader = _Reader()
    try:
        return pa.schema(reader.struct(avro, "", ""))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise SchemaError(f"the table schema is not valid Avro: {type(error).__name__}: {error}") from error


class _Reader:
    """Reader of an Avro schema. Named types may be referenced by name."""

    def __init__(self) -> None:
        self._named: dict[str, pa.DataType | None] = {}

    def struct(self, avro: dict[str, Any], namespace: str, path: str) -> pa.StructType:
        full, inner = self._declare(avro, namespace)
        fields = []
        for field in avro["fields"]:
            where = f"{path}.{field['name']}" if path else field["name"]
            data_type, nullable = self._nullable(field["type"], inner, where)
            metadata = _decimal_form(field["type"])
            if "doc" in field:
                metadata[COMMENT] = field["doc"].encode()
            if field.get("default") is not None:
                metadata[DEFAULT] = json.dumps(field["default"]).encode()
            fields.append(pa.field(field["name"], data_type, nullable, metadata or None))
        result = pa.struct(fields)
        if "logicalType" not in avro:
            result = as_plain_struct(result)
        self._named[full] = result
        return result

    def _declare(self, avro: dict[str, Any], namespace: str) -> tuple[str, str]:
        """Register a named type as being read. Return its full name and the namespace inside it."""
        name = avro["name"]
        space = name.rpartition(".")[0] if "." in name else avro.get("namespace", namespace)
        full = name if "." in name or not space else f"{space}.{name}"
        self._named[full] = None
        return full, space

    def _nullable(self, avro: Any, namespace: str, path: str) -> tuple[pa.DataType, bool]:
        if not isinstance(avro, list):
            return self._type(avro, namespace, path), avro == "null"
        types = [self._type(branch, namespace, path) for branch in avro if branch != "null"]
        return self._union(types), len(types) < len(avro)

    @staticmethod
    def _union(types: list[pa.DataType]) -> pa.DataType:
        if not types:
            return pa.null()
        if len(types) == 1:
            return types[0]
        if set(types) == {pa.int32(), pa.int64()}:
            return pa.int64()
        if set(types) == {pa.float32(), pa.float64()}:
            return pa.float64()
        return pa.struct([pa.field(f"member{i}", member) for i, member in enumerate(types)])

    def _type(self, avro: Any, namespace: str, path: str) -> pa.DataType:
        if isinstance(avro, list):
            return self._nullable(avro, namespace, path)[0]
        if isinstance(avro, str):
            return self._by_name(avro, namespace, path)
        kind, logical = avro["type"], avro.get("logicalType")
        if isinstance(kind, dict | list):
            return self._type(kind, namespace, path)
        if kind in ("record", "error"):
            record = self.struct(avro, namespace, path)
            supported = {"blob": BLOB, "variant": VARIANT}.get(str(logical))
            if supported is None or record == supported:
                return record if supported is None else supported
            raise SchemaError(
                f"column {path!r} has {logical}s with the fields {record}; only {supported} is supported: use a newer "
                "release of pyhudi"
            )
        if kind == "array":
            item, nullable = self._nullable(avro["items"], namespace, path)
            return pa.list_(pa.field(LIST_ITEM, item, nullable, _decimal_form(avro["items"]) or None))
        if kind == "map":
            value, nullable = self._nullable(avro["values"], namespace, path)
            return pa.map_(pa.string(), pa.field("value", value, nullable, _decimal_form(avro["values"]) or None))
        if logical == "decimal" and kind in ("fixed", "bytes"):
            result: pa.DataType = pa.decimal128(avro["precision"], avro.get("scale", 0))
        elif logical == "vector" and kind == "fixed":
            result = vector_of_avro(avro)
        elif kind == "fixed":
            result = pa.binary()
        elif kind == "enum":
            result = pa.string()
        else:
            supported = _FROM_AVRO.get((kind, logical))
            return self._by_name(kind, namespace, path) if supported is None else supported
        if "name" in avro:
            self._named[self._declare(avro, namespace)[0]] = result
        return result

    def _by_name(self, name: str, namespace: str, path: str) -> pa.DataType:
        primitive = _FROM_AVRO.get((name, None))
        if primitive is not None:
            return primitive
        for full in (name, f"{namespace}.{name}"):
            if full in self._named:
                resolved = self._named[full]
                if resolved is None:
                    raise SchemaError(
                        f"the table schema refers to itself at {path!r}; recursive types are not supported"
                    )
                return resolved
        raise SchemaError(f"the table schema has an unknown type {name!r} at {path!r}")
