"""Statements passed to Spark unchanged, SQL text for them, and small results of statements of pyhudi."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, TimestampType

from pyhudi.schema.logical_types.blobs import BLOB_TEXT
from pyhudi.schema.logical_types.vectors import HUDI_TYPE
from pyhudi.spark.column_names import quoted
from pyhudi.spark.execution.local_relations import empty_frame
from pyhudi.spark.session import spark_sql
from pyhudi.spark.session_settings import session_setting
from pyhudi.sql.string_literals import string_literal

REDACTED = "*********(redacted)"
"""Text that Spark shows in place of values that may be secrets."""


def empty_result(spark: SparkSession) -> DataFrame:
    """Return the result of a statement without one: no rows, no columns."""
    # createDataFrame would make the session the active one of the process.
    return spark_sql(spark, "SELECT 1 AS _ LIMIT 0").drop("_")


def result_frame(spark: SparkSession, columns: str | StructType, rows: Iterable[Sequence[Any]]) -> DataFrame:
    """Return a small result as a local relation of Spark: collecting it starts no job, where a list of rows starts one
    with Python workers. NaN becomes null."""
    values = [tuple(row) for row in rows]
    if not values:
        return empty_frame(spark, columns)
    with session_setting(spark, "spark.sql.execution.arrow.pyspark.enabled", "true"):
        return spark.createDataFrame(pd.DataFrame(values, dtype=object), columns)


def type_text(data_type: DataType, timestamp: str = "TIMESTAMP_LTZ") -> str:
    """Return a type as SQL, with quoted field names.

    Args:
        data_type: The type.
        timestamp: Name of the type of timestamps with time zone. ``TIMESTAMP`` is a type without one where
            ``spark.sql.timestampType`` says so.
    """
    if isinstance(data_type, TimestampType):
        return timestamp
    if isinstance(data_type, StructType):
        fields = (f"{quoted([f.name])}: {type_text(f.dataType, timestamp)}" for f in data_type.fields)
        return f"STRUCT<{', '.join(fields)}>"
    if isinstance(data_type, ArrayType):
        return f"ARRAY<{type_text(data_type.elementType, timestamp)}>"
    if isinstance(data_type, MapType):
        return f"MAP<{type_text(data_type.keyType, timestamp)}, {type_text(data_type.valueType, timestamp)}>"
    text: str = data_type.simpleString()
    return text.upper()


def column_type_text(field: StructField, timestamp: str = "TIMESTAMP_LTZ") -> str:
    """Return the type of a column as in CREATE TABLE, including types that Spark does not have, such as vectors.

    Args:
        field: The column.
        timestamp: As of `type_text`.
    """
    mark = (field.metadata or {}).get(HUDI_TYPE)
    return _declared_text(field.dataType, timestamp) if mark is None else str(mark)


def columns_text(schema: StructType) -> str:
    """Return columns as in CREATE TABLE."""
    return ", ".join(map(_column_text, schema.fields))


def _column_text(field: StructField) -> str:
    comment = comment_of(field)
    return " ".join(
        [
            quoted([field.name]),
            column_type_text(field),
            *([] if field.nullable else ["NOT NULL"]),
            *([] if comment is None else [f"COMMENT {string_literal(comment)}"]),
        ]
    )


def _declared_text(data_type: DataType, timestamp: str) -> str:
    """Return a type as SQL, with blobs as fields of structs."""
    if not isinstance(data_type, StructType):
        return type_text(data_type, timestamp)
    fields = [
        (f.name, BLOB_TEXT if (f.metadata or {}).get(HUDI_TYPE) == BLOB_TEXT else _declared_text(f.dataType, timestamp))
        for f in data_type.fields
    ]
    return f"STRUCT<{', '.join(f'{quoted([name])}: {text}' for name, text in fields)}>"


def comment_of(field: StructField) -> str | None:
    """Return the comment of a column."""
    return (field.metadata or {}).get("comment")


def collect_statement(spark: SparkSession, text: str, args: Any = None) -> list[tuple[Any, ...]]:
    """Run a statement with a small result and return its rows. ``args``: values of its parameters."""
    parameters = {"args": args} if args else {}
    return [tuple(row) for row in spark_sql(spark, text, **parameters).collect()]
