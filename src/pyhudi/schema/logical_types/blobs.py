"""The type BLOB of Apache Hudi 1.2: bytes in the table, or a reference to a range of a file elsewhere.

In Avro it is a record of a logical type, in Parquet a group whose required fields distinguish it from a struct with the
same names. The Arrow type has these required fields as well, so the type alone identifies blobs: structs of DataFrames
have none. In Spark it is a struct of optional fields, marked by metadata of the field.
"""

from __future__ import annotations

import copy
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatchError

BLOB_TEXT = "BLOB"
"""The type in statements, and in the metadata of fields of Spark (`pyhudi.schema.logical_types.vectors.HUDI_TYPE`)."""

INLINE, OUT_OF_LINE = "INLINE", "OUT_OF_LINE"
STORAGE_TYPES = (INLINE, OUT_OF_LINE)
"""Values of the field ``type``: the field ``data`` has the bytes, or ``reference`` says where they are."""

TYPE, DATA, REFERENCE = "type", "data", "reference"
PATH, OFFSET, LENGTH, MANAGED = "external_path", "offset", "length", "managed"


BLOB_SQL = (
    "STRUCT<type: STRING, data: BINARY, "
    "reference: STRUCT<external_path: STRING, `offset`: BIGINT, length: BIGINT, managed: BOOLEAN>>"
)
"""The type of the same values in statements of Spark."""


def _blob(storage_type: pa.DataType, *, required: bool) -> pa.DataType:
    fields = [
        pa.field(PATH, pa.string(), not required),
        pa.field(OFFSET, pa.int64()),
        pa.field(LENGTH, pa.int64()),
        pa.field(MANAGED, pa.bool_(), not required),
    ]
    return pa.struct(
        [
            pa.field(TYPE, storage_type, not required),
            pa.field(DATA, pa.binary()),
            pa.field(REFERENCE, pa.struct(fields)),
        ]
    )


BLOB = _blob(pa.string(), required=True)
BLOB_STRUCT = _blob(pa.string(), required=False)
"""The type of the same values in Spark."""
BLOB_IN_FILES = _blob(pa.binary(), required=True)
"""The type that Arrow gives to blobs in Parquet files: it takes values of enums for bytes."""

_AVRO: dict[str, Any] = {
    "type": "record",
    "name": "blob",
    "namespace": "",
    "fields": [
        {"name": TYPE, "type": {"type": "enum", "name": "blob_storage_type", "symbols": list(STORAGE_TYPES)}},
        {"name": DATA, "type": ["null", "bytes"], "default": None},
        {
            "name": REFERENCE,
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "reference",
                    "fields": [
                        {"name": PATH, "type": "string"},
                        {"name": OFFSET, "type": ["null", "long"]},
                        {"name": LENGTH, "type": ["null", "long"]},
                        {"name": MANAGED, "type": "boolean"},
                    ],
                },
            ],
            "default": None,
        },
    ],
    "logicalType": "blob",
}


def is_blob(data_type: pa.DataType) -> bool:
    """Return True for the type of blobs."""
    return bool(data_type == BLOB)


def is_blob_text(text: str) -> bool:
    """Return True for the name of the type, in any case."""
    return text.strip().upper() == BLOB_TEXT


def blob_avro() -> dict[str, Any]:
    """Return the type in Avro schemas."""
    return copy.deepcopy(_AVRO)


def has_blob_fields(data_type: pa.DataType) -> bool:
    """Return True if structs of a type can become blobs. Fields that are absent are null; that of the storage type is
    needed."""
    return pa.types.is_struct(data_type) and data_type.get_field_index(TYPE) >= 0 and _can_convert(data_type, BLOB)


def _can_convert(data_type: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_null(data_type) or data_type == expected:
        return True
    if pa.types.is_struct(expected):
        named = pa.types.is_struct(data_type) and all(expected.get_field_index(f.name) >= 0 for f in data_type)
        return named and all(_can_convert(field.type, expected.field(field.name).type) for field in data_type)
    return bool(pa.types.is_int32(data_type) and pa.types.is_int64(expected))


def check_blobs(blobs: pa.StructArray, path: str) -> None:
    """Check that all values are blobs that tables can have.

    Raises:
        SchemaMismatchError: A required field is null, or the type of a storage is unknown.
    """
    kinds, _, references = blobs.flatten()
    is_known = pc.is_in(kinds, pa.array(STORAGE_TYPES))
    wrong = kinds.filter(pc.and_(blobs.is_valid(), pc.invert(is_known)))
    if len(wrong):
        shown = wrong[0].as_py()
        raise SchemaMismatchError(
            f"column {path!r} is a BLOB, but the field {TYPE!r} of a value is "
            f"{'null' if shown is None else repr(shown)}; write {' or '.join(map(repr, STORAGE_TYPES))}"
        )
    members = dict(zip((PATH, OFFSET, LENGTH, MANAGED), references.flatten(), strict=True))
    for name in (PATH, MANAGED):
        if pc.any(pc.and_(references.is_valid(), members[name].is_null())).as_py():
            raise SchemaMismatchError(
                f"column {path!r} is a BLOB, but the field {f'{REFERENCE}.{name}'!r} of a value is null; write "
                f"{'the path of a file' if name == PATH else 'true or false'}"
            )
