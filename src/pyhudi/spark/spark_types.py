"""Arrow schemas as Spark types, and columns of Spark types by name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import pyarrow as pa
from pyspark.sql import Column, types
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from pyhudi.schema.converters.spark_json import to_spark_json
from pyhudi.schema.name_resolution import resolve_nested

HAS_VARIANTS = hasattr(types, "VariantType")
"""True if Spark has the type VARIANT, from Spark 4 on."""


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the StructType that Spark uses for a table with this schema."""
    return StructType.fromJson(json.loads(to_spark_json(schema, has_variants=HAS_VARIANTS)))


def spark_type(data_type: pa.DataType) -> DataType:
    """Return the type that Spark uses for values of this type."""
    return spark_schema(pa.schema([("value", data_type)])).fields[0].dataType


def null_columns(fields: Iterable[StructField]) -> dict[str, Column]:
    """Return a null of the type of each of these columns, by name. Columns of one type share one expression:
    each cast takes PySpark several calls to the JVM, one of which looks up the session."""
    kinds = {field.name: field.dataType for field in fields}
    nulls = {kind: F.lit(None).cast(kind) for kind in set(kinds.values())}
    return {name: nulls[kind] for name, kind in kinds.items()}


def resolve_spark_path(name: str, schema: StructType) -> list[str] | None:
    """Return the path to a column: its name, which may have dots, or the steps of a dotted path into structs.

    Returns:
        None if the schema has no such column.
    """
    return resolve_nested(name, schema, _struct_fields, case_sensitive=True)


def type_at(path: list[str], schema: StructType) -> DataType:
    """Return the type of a column by its path."""
    data_type: DataType = schema
    for step in path:
        data_type = _struct_fields(data_type)[step]
    return data_type


def _struct_fields(data_type: DataType) -> Mapping[str, DataType]:
    return {field.name: field.dataType for field in data_type.fields} if isinstance(data_type, StructType) else {}


def nullable_type(data_type: DataType) -> DataType:
    """Return a type without required fields, elements and values, at any depth."""
    if isinstance(data_type, StructType):
        return StructType(
            [StructField(f.name, nullable_type(f.dataType), metadata=f.metadata) for f in data_type.fields]
        )
    if isinstance(data_type, ArrayType):
        return ArrayType(nullable_type(data_type.elementType))
    if isinstance(data_type, MapType):
        return MapType(nullable_type(data_type.keyType), nullable_type(data_type.valueType))
    return data_type


def uncollated_type(data_type: DataType) -> DataType:
    """Return a type whose texts, at any depth, are compared by their bytes, as those of files: without the collations
    of Spark 4."""
    if type(data_type) is StringType:
        return StringType()
    if isinstance(data_type, StructType):
        fields = [StructField(f.name, uncollated_type(f.dataType), f.nullable, f.metadata) for f in data_type.fields]
        return StructType(fields)
    if isinstance(data_type, ArrayType):
        return ArrayType(uncollated_type(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, MapType):
        return MapType(
            uncollated_type(data_type.keyType), uncollated_type(data_type.valueType), data_type.valueContainsNull
        )
    return data_type
