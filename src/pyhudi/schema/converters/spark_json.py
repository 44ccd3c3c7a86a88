"""Conversion between Arrow schemas and the JSON of Spark's StructType, without Spark."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.errors import SchemaError
from pyhudi.schema.logical_types.blobs import BLOB, BLOB_SQL, BLOB_STRUCT, BLOB_TEXT, is_blob, is_blob_text
from pyhudi.schema.logical_types.variants import (
    VARIANT,
    VARIANT_SQL,
    VARIANT_STRUCT,
    VARIANT_TEXT,
    as_plain_struct,
    has_variant_fields,
    is_variant,
    is_variant_text,
)
from pyhudi.schema.logical_types.vectors import HUDI_TYPE, is_vector, parse_vector, vector_text
from pyhudi.schema.table_types import COMMENT, LIST_ITEM, is_list, nullable_type, to_table_types

_TO_SPARK: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",  # elements of vectors
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.null(): "void",
    pa.date32(): "date",
    pa.time32("ms"): "integer",
    pa.time64("us"): "long",
    pa.timestamp("ms", "UTC"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("ms"): "timestamp_ntz",
    pa.timestamp("us"): "timestamp_ntz",
}
_FROM_SPARK: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "void": pa.null(),
    "null": pa.null(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "variant": VARIANT,
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_TEXT = re.compile(r"(?:var)?char\(\d+\)|string collate \w+", re.IGNORECASE)


def to_spark_json(schema: pa.Schema, *, has_variants: bool = False) -> str:
    """Return the JSON of Spark's StructType for a table with this schema.

    Args:
        schema: The table's columns.
        has_variants: Spark has the type VARIANT; without it, variants are structs.

    Raises:
        SchemaError: A column has an unsupported type.
    """
    struct = _ToSpark(has_variants).struct(list(to_table_types(schema)))
    return json.dumps(struct, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _ToSpark:
    """Conversion of Arrow types to JSON."""

    has_variants: bool

    def struct(self, fields: list[pa.Field]) -> dict[str, Any]:
        return {"type": "struct", "fields": [self._field(field) for field in fields]}

    def _field(self, field: pa.Field) -> dict[str, Any]:
        comment = (field.metadata or {}).get(COMMENT)
        metadata = {} if comment is None else {"comment": comment.decode()}
        if is_vector(field.type):
            metadata[HUDI_TYPE] = vector_text(field.type)
        if is_blob(field.type):
            metadata[HUDI_TYPE] = BLOB_TEXT
        if is_variant(field.type) and not self.has_variants:
            metadata[HUDI_TYPE] = VARIANT_TEXT
        return {
            "name": field.name,
            "type": self._type(field.type),
            "nullable": field.nullable,
            "metadata": metadata,
        }

    def _type(self, data_type: pa.DataType) -> Any:
        if is_blob(data_type):
            return self._type(BLOB_STRUCT)
        if is_variant(data_type):
            return "variant" if self.has_variants else self._type(VARIANT_STRUCT)
        if pa.types.is_struct(data_type):
            return self.struct([data_type.field(i) for i in range(data_type.num_fields)])
        if pa.types.is_map(data_type):
            return {
                "type": "map",
                "keyType": self._type(data_type.key_type),
                "valueType": self._type(data_type.item_type),
                "valueContainsNull": data_type.item_field.nullable,
            }
        if is_list(data_type):
            return {
                "type": "array",
                "elementType": self._type(data_type.value_type),
                "containsNull": data_type.value_field.nullable and not is_vector(data_type),
            }
        if pa.types.is_decimal(data_type):
            return f"decimal({data_type.precision},{data_type.scale})"
        return _TO_SPARK[data_type]


def from_spark_json(text: str) -> pa.Schema:
    """Return the Arrow schema of a StructType's rows (small integers are not widened).

    Raises:
        SchemaError: The text is not a StructType or has a type that tables do not support (intervals, user-defined
            types).
    """
    try:
        spark = json.loads(text)
        if not isinstance(spark, dict) or spark.get("type") != "struct":
            raise SchemaError("not the JSON of a Spark StructType")
        return pa.schema(_from_struct(spark, ""))
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, SchemaError):
            raise
        raise SchemaError(f"not the JSON of a Spark StructType: {type(error).__name__}: {error}") from error


def _from_struct(spark: dict[str, Any], path: str) -> list[pa.Field]:
    fields = []
    for field in spark["fields"]:
        where = f"{path}.{field['name']}" if path else field["name"]
        comment = field.get("metadata", {}).get("comment")
        metadata = None if comment is None else {COMMENT: comment.encode()}
        data_type = _as_marked(_from_spark(field["type"], where), field.get("metadata", {}).get(HUDI_TYPE), where)
        fields.append(pa.field(field["name"], data_type, field["nullable"] or pa.types.is_null(data_type), metadata))
    return fields


def _as_marked(data_type: pa.DataType, mark: Any, path: str) -> pa.DataType:
    """Return the type that the metadata of a field names; the type itself without such.

    Raises:
        SchemaError: It is a type that is not supported, or not one of such values, or inside of a column.
    """
    if mark is None:
        return data_type
    if is_blob_text(str(mark)):
        return _as_blob(data_type, path)
    if is_variant_text(str(mark)):
        return _as_variant(data_type, path)
    vector = parse_vector(str(mark))
    if vector is None:
        raise SchemaError(
            f"column {path!r} has the metadata {HUDI_TYPE}={mark!r}, a type that pyhudi does not write; remove the "
            "metadata to store the column as it is"
        )
    if "." in path:
        raise SchemaError(f"column {path!r} is a {mark} inside of another column, where tables have no vectors")
    if not is_list(data_type) or data_type.value_type != vector.value_type:
        element_type = _TO_SPARK[vector.value_type]
        raise SchemaError(
            f"column {path!r} is a {mark}, whose type is array<{element_type}>; cast it, keeping the metadata"
        )
    return vector


def _as_blob(data_type: pa.DataType, path: str) -> pa.DataType:
    if nullable_type(data_type) != BLOB_STRUCT:
        raise SchemaError(
            f"column {path!r} is a BLOB, whose type is {BLOB_SQL}, but it is {data_type}; cast it, keeping the metadata"
        )
    return BLOB


def _as_variant(data_type: pa.DataType, path: str) -> pa.DataType:
    if not has_variant_fields(data_type):
        raise SchemaError(
            f"column {path!r} is a VARIANT, whose type is {VARIANT_SQL}, but it is {data_type}; cast it, keeping the "
            "metadata"
        )
    return VARIANT


def _item(name: str, data_type: pa.DataType, *, nullable: bool) -> pa.Field:
    """Return the field of items; those without a type, as of ``array()``, are nulls."""
    return pa.field(name, data_type, nullable or pa.types.is_null(data_type))


def _from_spark(spark: Any, path: str) -> pa.DataType:
    if isinstance(spark, dict):
        kind = spark["type"]
        if kind == "struct":
            return as_plain_struct(pa.struct(_from_struct(spark, path)))
        if kind == "array":
            item = _from_spark(spark["elementType"], f"{path}.{LIST_ITEM}")
            return pa.list_(_item(LIST_ITEM, item, nullable=spark["containsNull"]))
        if kind == "map":
            value = _from_spark(spark["valueType"], f"{path}.value")
            key = _from_spark(spark["keyType"], f"{path}.key")
            if pa.types.is_null(key):
                raise SchemaError(
                    f"column {path!r} is a map whose keys have no type, as of map(); cast it, for example to "
                    "map<string, string>"
                )
            return pa.map_(key, _item("value", value, nullable=spark["valueContainsNull"]))
        if kind == "udt" and "sqlType" in spark:
            return _from_spark(spark["sqlType"], path)
    elif spark in _FROM_SPARK:
        return _FROM_SPARK[spark]
    elif spark == "decimal":
        return pa.decimal128(10, 0)
    elif match := _DECIMAL.fullmatch(spark):
        return pa.decimal128(int(match[1]), int(match[2]))
    elif _TEXT.fullmatch(spark):
        return pa.string()
    raise SchemaError(
        f"column {path!r} has the Spark type {spark!r}, which Hudi tables do not support; convert it first"
    )
