"""Arrow types in which Spark takes rows from Python: those of a table, but for milliseconds and times of day.

Spark has timestamps of microseconds only, and no times of day: `pyhudi.schema.converters.spark_json` makes them
numbers.
"""

from __future__ import annotations

import pyarrow as pa

from pyhudi.schema.logical_types.blobs import BLOB_STRUCT, is_blob
from pyhudi.schema.logical_types.variants import VARIANT_IN_SPARK, is_variant
from pyhudi.schema.logical_types.vectors import is_vector, list_type
from pyhudi.schema.table_types import with_changed_children
from pyhudi.schema.type_conversion import convert


def spark_arrow_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type for values of a table type: timestamps have microseconds, and times are their numbers of
    milliseconds (int32) or microseconds (int64), also inside structs, lists and maps; vectors are lists, and blobs
    structs of optional fields."""
    if is_vector(data_type):
        return list_type(data_type)
    if is_blob(data_type):
        return BLOB_STRUCT
    if is_variant(data_type):
        return VARIANT_IN_SPARK
    if pa.types.is_timestamp(data_type) and data_type.unit == "ms":
        return pa.timestamp("us", data_type.tz)
    if pa.types.is_time(data_type):
        return pa.int32() if pa.types.is_time32(data_type) else pa.int64()
    return with_changed_children(data_type, lambda child: child.with_type(spark_arrow_type(child.type)))


def spark_arrow_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of `as_spark_arrow` for batches of a schema of table types."""
    return pa.schema([field.with_type(spark_arrow_type(field.type)) for field in schema], schema.metadata)


def as_spark_arrow(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in the types that Spark takes: the batch itself if it has them.

    Raises:
        SchemaMismatchError: A timestamp of milliseconds is out of the range of microseconds.
    """
    schema = spark_arrow_schema(batch.schema)
    if schema.equals(batch.schema):
        return batch
    columns = zip(batch.columns, schema, strict=True)
    return pa.RecordBatch.from_arrays([convert(column, f.type, f.name) for column, f in columns], schema=schema)
