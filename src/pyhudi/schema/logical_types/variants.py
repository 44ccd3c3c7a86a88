"""The type VARIANT of Apache Hudi 1.2: semi-structured values in the binary encoding that Spark 4 and Parquet define.

In Avro it is a record of a logical type, in Parquet a group; both have two required fields of bytes. The Arrow type has
these, too, so the type alone identifies variants. Other structs with fields of these names and types are read with
nullable fields (`as_plain_struct`). Spark 4 has the type; earlier releases have a struct, marked by metadata of the
field.
"""

from __future__ import annotations

import copy
from typing import Any

import pyarrow as pa

VARIANT_TEXT = "VARIANT"
"""The type in statements, and in the metadata of fields of Spark (`pyhudi.schema.logical_types.vectors.HUDI_TYPE`)."""

METADATA, VALUE, TYPED_VALUE = "metadata", "value", "typed_value"

VARIANT = pa.struct([pa.field(name, pa.binary(), nullable=False) for name in (METADATA, VALUE)])

VARIANT_STRUCT = pa.struct([(VALUE, pa.binary()), (METADATA, pa.binary())])
"""The type of the same values in Spark 3."""
VARIANT_SQL = "STRUCT<value: BINARY, metadata: BINARY>"
"""The same in statements."""
_MARKED = pa.field(METADATA, pa.binary(), nullable=False, metadata={b"variant": b"true"})
VARIANT_IN_SPARK = pa.struct([pa.field(VALUE, pa.binary(), nullable=False), _MARKED])
"""The type in which Spark 4 exchanges variants with Python."""

_AVRO: dict[str, Any] = {
    "type": "record",
    "name": "variant",
    "namespace": "",
    "fields": [
        {"name": METADATA, "type": "bytes", "doc": "Variant metadata component"},
        {"name": VALUE, "type": "bytes", "doc": "Variant value component"},
    ],
    "logicalType": "variant",
}


def is_variant(data_type: pa.DataType) -> bool:
    """Return True for the type of variants."""
    return bool(data_type == VARIANT)


def is_variant_text(text: str) -> bool:
    """Return True for the name of the type, in any case."""
    return text.strip().upper() == VARIANT_TEXT


def variant_avro() -> dict[str, Any]:
    """Return the type in Avro schemas."""
    return copy.deepcopy(_AVRO)


def has_variant_fields(data_type: pa.DataType) -> bool:
    """Return True for structs that have the two fields of variants, in any order, which may be null."""
    return pa.types.is_struct(data_type) and _kinds(data_type) == _kinds(VARIANT)


def as_plain_struct(data_type: pa.StructType) -> pa.StructType:
    """Return the type of a struct that nothing declares a variant: its fields are nullable if they are those of
    variants."""
    return pa.struct([field.with_nullable(True) for field in data_type]) if has_variant_fields(data_type) else data_type


def is_shredded(data_type: pa.DataType) -> bool:
    """Return True for structs of a file that store values of variants as columns besides the binary encoding
    (shredding)."""
    return pa.types.is_struct(data_type) and {METADATA, TYPED_VALUE} <= {field.name for field in data_type}


def _kinds(data_type: pa.DataType) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in data_type}
