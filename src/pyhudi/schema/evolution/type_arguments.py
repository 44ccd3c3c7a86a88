"""Types of columns as users give them: of Arrow, of PySpark, or as text."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from pyhudi.errors import SchemaError
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.schema.evolution.internal_types import primitive_to_arrow
from pyhudi.schema.logical_types.blobs import BLOB, is_blob_text
from pyhudi.schema.logical_types.variants import VARIANT, is_variant_text
from pyhudi.schema.logical_types.vectors import parse_vector
from pyhudi.schema.table_types import nullable_type, table_type

_SQL_NAMES = {
    "bool": "boolean",
    "integer": "int",
    "bigint": "long",
    "real": "float",
    "text": "string",
    "bytes": "binary",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "local-timestamp-micros",
}


def as_table_type(data_type: object) -> pa.DataType:
    """Return the type of a column from an Arrow type, a PySpark type or a text such as ``bigint``.

    Raises:
        SchemaError: The type is not supported in tables.
    """
    if isinstance(data_type, pa.DataType):
        return nullable_type(table_type(data_type))
    if isinstance(data_type, str):
        text = data_type.strip().lower()
        decimal = re.fullmatch(r"(?:decimal|numeric|dec)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", text)
        if decimal is not None:
            return table_type(pa.decimal128(int(decimal[1]), int(decimal[2] or 0)))
        if is_blob_text(text):
            return BLOB
        if is_variant_text(text):
            return VARIANT
        vector = parse_vector(text)
        if vector is not None:
            return vector
        try:
            return primitive_to_arrow(_SQL_NAMES.get(text, text))
        except SchemaError:
            raise SchemaError(
                f"unknown type {data_type!r}; pass one of pyarrow or of pyspark.sql.types, or a text such as 'int', "
                "'bigint', 'string' or 'decimal(10, 2)'"
            ) from None
    if hasattr(data_type, "jsonValue"):
        return from_spark_json(_one_column(data_type)).field(0).type
    raise SchemaError(
        f"{data_type!r} is not a type: pass one of pyarrow or of pyspark.sql.types, or a text such as 'bigint'"
    )


def _one_column(spark_type: Any) -> str:
    field = {"name": "c", "type": spark_type.jsonValue(), "nullable": True, "metadata": {}}
    return json.dumps({"type": "struct", "fields": [field]})
