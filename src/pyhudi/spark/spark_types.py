"""Arrow schemas as Spark types."""

from __future__ import annotations

import json

import pyarrow as pa
from pyspark.sql.types import StructType

from pyhudi.schema.spark_json import to_spark_json


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the StructType that Spark uses for a table with this schema."""
    return StructType.fromJson(json.loads(to_spark_json(schema)))
