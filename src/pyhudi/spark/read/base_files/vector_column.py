"""Vectors in files as Spark's arrays.

Spark's reader gives their bytes, and has no function for the numbers in them. A function of Arrow arrays does: as a
column of a projection it runs only where a query asks for the vectors, and filters on other columns pass it by.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column

from pyhudi.schema.logical_types.vectors import as_lists, is_vector, vectors_of_bytes
from pyhudi.spark.execution.arrow_udfs import arrow_function
from pyhudi.spark.spark_types import spark_schema


def schema_in_files(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the bytes of vectors in place of vectors."""
    return pa.schema([field.with_type(pa.binary()) if is_vector(field.type) else field for field in schema])


def vector_column(stored: Column, field: pa.Field) -> Column:
    """Return the arrays of a column with the bytes of vectors, with the metadata of the type."""
    kind, path = field.type, field.name

    def decode(values: pa.Array) -> pa.Array:
        return as_lists(vectors_of_bytes(values, kind, path))

    shown = spark_schema(pa.schema([field]))[path]
    return arrow_function(decode, [pa.binary()], shown.dataType)(stored).alias(path, metadata=shown.metadata)
