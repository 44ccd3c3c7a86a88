"""Columns as statements declare them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from pyhudi.errors import UnsupportedTableError
from pyhudi.schema.logical_types.blobs import is_blob_text
from pyhudi.schema.logical_types.variants import is_variant_text
from pyhudi.schema.logical_types.vectors import parse_vector
from pyhudi.spark.spark_types import HAS_VARIANTS, spark_schema
from pyhudi.sql.hudi_type_columns import with_string_types, without_hudi_types


def declared_schema(spark: SparkSession, columns: str) -> StructType:
    """Return the schema that a list of columns declares.

    Args:
        spark: The session, which reads the list.
        columns: Names and types as SQL. ``VARCHAR(n)`` and ``CHAR(n)`` are ``STRING``, as in the schema of a table that
            Apache Hudi creates.

    Returns:
        The columns as Spark has them. Vectors are arrays, blobs structs, and variants, too, where Spark has none, with
        metadata that says so.

    Raises:
        UnsupportedTableError: A type is one of Apache Hudi's that this release does not serve.
        SchemaError: The type of a vector is not valid.
    """
    text, types = without_hudi_types(with_string_types(columns), variants=not HAS_VARIANTS)
    try:
        declared = spark.createDataFrame([], text).schema
    except ParseException as e:
        raise _refusal(str((e.getMessageParameters() or {}).get("typeName", "")).strip('"')) or e from e
    return StructType([_marked(field, types[field.name]) if field.name in types else field for field in declared])


def _marked(field: StructField, kind: pa.DataType) -> StructField:
    own = spark_schema(pa.schema([pa.field(field.name, kind)]))[field.name]
    return StructField(field.name, own.dataType, field.nullable, {**field.metadata, **own.metadata})


def _refusal(kind: str) -> Exception | None:
    """Return the error for a type of Apache Hudi; None for others."""
    if is_blob_text(kind) or is_variant_text(kind) or parse_vector(kind) is not None:
        return UnsupportedTableError(
            f"the type {kind} is not supported inside of structs, arrays and maps; declare a column of it"
        )
    return None
