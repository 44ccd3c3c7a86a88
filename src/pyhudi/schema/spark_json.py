"""Conversion between Arrow schemas and the JSON of Spark's StructType, without Spark."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from pyhudi.errors import SchemaError
from pyhudi.schema.table_types import COMMENT, LIST_ITEM, is_list, table_schema

_TO_SPARK: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
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
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_TEXT = re.compile(r"(?:var)?char\(\d+\)|string collate \w+", re.IGNORECASE)


def to_spark_json(schema: pa.Schema) -> str:
    """Return the JSON of Spark's StructType for a table with this schema.

    Raises:
        SchemaError: A column has an unsupported type.
    """
    return json.dumps(_struct(list(table_schema(schema))), separators=(",", ":"), ensure_ascii=False)


def _struct(fields: list[pa.Field]) -> dict[str, Any]:
    return {"type": "struct", "fields": [_field(field) for field in fields]}


def _field(field: pa.Field) -> dict[str, Any]:
    comment = (field.metadata or {}).get(COMMENT)
    return {
        "name": field.name,
        "type": _to_spark(field.type),
        "nullable": field.nullable,
        "metadata": {} if comment is None else {"comment": comment.decode()},
    }


def _to_spark(data_type: pa.DataType) -> Any:
    if pa.types.is_struct(data_type):
        return _struct([data_type.field(i) for i in range(data_type.num_fields)])
    if pa.types.is_map(data_type):
        return {
            "type": "map",
            "keyType": _to_spark(data_type.key_type),
            "valueType": _to_spark(data_type.item_type),
            "valueContainsNull": data_type.item_field.nullable,
        }
    if is_list(data_type):
        return {
            "type": "array",
            "elementType": _to_spark(data_type.value_type),
            "containsNull": data_type.value_field.nullable,
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
    except (ValueError, KeyError, TypeError) as e:
        if isinstance(e, SchemaError):
            raise
        raise SchemaError(f"not the JSON of a Spark StructType: {type(e).__name__}: {e}") from e


def _from_struct(spark: dict[str, Any], path: str) -> list[pa.Field]:
    fields = []
    for field in spark["fields"]:
        where = f"{path}.{field['name']}" if path else field["name"]
        comment = field.get("metadata", {}).get("comment")
        metadata = None if comment is None else {COMMENT: comment.encode()}
        data_type = _from_spark(field["type"], where)
        fields.append(pa.field(field["name"], data_type, field["nullable"] or pa.types.is_null(data_type), metadata))
    return fields


def _from_spark(spark: Any, path: str) -> pa.DataType:
    if isinstance(spark, dict):
        kind = spark["type"]
        if kind == "struct":
            return pa.struct(_from_struct(spark, path))
        if kind == "array":
            item = _from_spark(spark["elementType"], f"{path}.{LIST_ITEM}")
            return pa.list_(pa.field(LIST_ITEM, item, spark["containsNull"]))
        if kind == "map":
            value = _from_spark(spark["valueType"], f"{path}.value")
            return pa.map_(
                _from_spark(spark["keyType"], f"{path}.key"), pa.field("value", value, spark["valueContainsNull"])
            )
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
