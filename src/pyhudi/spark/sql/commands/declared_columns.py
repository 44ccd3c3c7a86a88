"""Columns as statements declare them."""

from __future__ import annotations

from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyhudi.errors import UnsupportedTableError

_INSTEAD = {
    "VECTOR": "ARRAY<FLOAT>, ARRAY<DOUBLE> or ARRAY<TINYINT>",
    "BLOB": "BINARY for bytes in the table, or a STRUCT of path, offset and length",
    "VARIANT": "STRING for JSON, or a STRUCT",
}
"""Types of Apache Hudi 1.2 that Spark does not know, with what to declare in their place."""


def declared_schema(spark: SparkSession, columns: str) -> StructType:
    """Return the schema that a list of columns declares.

    Args:
        spark: The session, which reads the list.
        columns: Names and types as SQL.

    Returns:
        The columns as Spark has them.

    Raises:
        UnsupportedTableError: A type is one of Apache Hudi's that this release does not serve.
    """
    try:
        return spark.createDataFrame([], columns).schema
    except ParseException as e:
        kind = str((e.getMessageParameters() or {}).get("typeName", "")).strip('"')
        instead = _INSTEAD.get(kind.partition("(")[0].upper())
        if instead is None:
            raise
        raise UnsupportedTableError(f"columns of the type {kind} are not supported here; declare {instead}") from e
