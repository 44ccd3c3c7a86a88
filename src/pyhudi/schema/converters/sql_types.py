"""Names of column types in SQL, as Spark's DESCRIBE has them, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from pyhudi.schema.logical_types.blobs import BLOB_TEXT, is_blob
from pyhudi.schema.logical_types.variants import VARIANT_TEXT, is_variant
from pyhudi.schema.logical_types.vectors import is_vector, vector_text
from pyhudi.schema.table_types import is_list

_NAMES: Mapping[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",  # elements of vectors
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.null(): "void",
    pa.date32(): "date",
    pa.time32("ms"): "int",  # Spark has no type for times of day, and reads their numbers
    pa.time64("us"): "bigint",
}


def sql_type(data_type: pa.DataType) -> str:
    """Return the name of a table's type in SQL.

    Vectors, blobs and variants have their names in Apache Hudi, also where Spark reads them as arrays and structs.

    Args:
        data_type: Type of a column of a table (`pyhudi.schema.table_types.table_type`).

    >>> sql_type(pa.struct([("at", pa.timestamp("us", "UTC")), ("prices", pa.list_(pa.decimal128(10, 2)))]))
    'struct<at:timestamp,prices:array<decimal(10,2)>>'
    """
    if is_blob(data_type):
        return BLOB_TEXT
    if is_variant(data_type):
        return VARIANT_TEXT
    if is_vector(data_type):
        return vector_text(data_type)
    if pa.types.is_timestamp(data_type):
        return "timestamp_ntz" if data_type.tz is None else "timestamp"
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    return nested_sql_type(data_type, sql_type) or _NAMES[data_type]


def nested_sql_type(
    data_type: pa.DataType, inner: Callable[[pa.DataType], str], field_name: Callable[[str], str] = str
) -> str | None:
    """Return the name of a struct, map or list in SQL; None for other types.

    Args:
        data_type: The type.
        inner: Returns the names of the types in it.
        field_name: Returns the names that fields of structs have in SQL.
    """
    if pa.types.is_struct(data_type):
        fields = (data_type.field(i) for i in range(data_type.num_fields))
        return f"struct<{','.join(f'{field_name(field.name)}:{inner(field.type)}' for field in fields)}>"
    if pa.types.is_map(data_type):
        return f"map<{inner(data_type.key_type)},{inner(data_type.item_type)}>"
    return f"array<{inner(data_type.value_type)}>" if is_list(data_type) else None
