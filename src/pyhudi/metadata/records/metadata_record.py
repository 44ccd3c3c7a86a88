"""Records of the metadata table: conversion between HFile values and Arrow columns; docs/format/metadata.md, section 2.

A value is an Avro record ``HoodieMetadataRecord``: a type number that determines its *payload*, and that payload as a
struct (a map of file names, in the partition ``files``). The record's own key is stored empty, because the HFile has
it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, TypeAlias

import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.format.avro.columnar_decoder import Projection, decode_steps
from pyhudi.format.avro.container import AvroSchema, load_schema, schema_json
from pyhudi.format.avro.encoder import encode_records
from pyhudi.format.avro.type_tree import Record, record_type
from pyhudi.format.hfile.hfile_reader import KEY_FIELD
from pyhudi.schema.meta_fields import FILE_NAME, META_COLUMNS

Frozen: TypeAlias = tuple[tuple[str, Any], ...]
"""Names of payloads or fields, each with the selected nested fields (None: all)."""

TYPE_FIELD = "type"
FILES_PAYLOAD = "filesystemMetadata"
BLOOM_FILTER_PAYLOAD = "BloomFilterMetadata"
COLUMN_STATS_PAYLOAD = "ColumnStatsMetadata"
RECORD_INDEX_PAYLOAD = "recordIndexMetadata"
SECONDARY_INDEX_PAYLOAD = "SecondaryIndexMetadata"

PAYLOADS = (FILES_PAYLOAD, BLOOM_FILTER_PAYLOAD, COLUMN_STATS_PAYLOAD, RECORD_INDEX_PAYLOAD, SECONDARY_INDEX_PAYLOAD)
"""Names of the payloads; columns of `decode`."""

_AVSC = {
    5: "HoodieMetadataRecord.0.15.0",
    6: "HoodieMetadataRecord.0.15.0",
    8: "HoodieMetadataRecord.1.0.2",
    9: "HoodieMetadataRecord.1.2.0",
}
"""Table version → schema of the release that writes it. Version 5, which is only read, has fewer fields than 6."""


_TOGETHER_ROWS = 1 << 17
_TOGETHER_BYTES = 64 * 1024 * 1024
"""Approximate bytes that are decoded at once."""


class RecordType(IntEnum):
    """Values of the field ``type``."""

    PARTITIONS = 1
    FILES = 2
    COLUMN_STATS = 3
    BLOOM_FILTER = 4
    RECORD_INDEX = 5
    PARTITION_STATS = 6
    SECONDARY_INDEX = 7

    @property
    def payload(self) -> str:
        """Payload of records of this type."""
        return _PAYLOAD_OF[self]


_PAYLOAD_OF = {
    RecordType.PARTITIONS: FILES_PAYLOAD,
    RecordType.FILES: FILES_PAYLOAD,
    RecordType.COLUMN_STATS: COLUMN_STATS_PAYLOAD,
    RecordType.BLOOM_FILTER: BLOOM_FILTER_PAYLOAD,
    RecordType.RECORD_INDEX: RECORD_INDEX_PAYLOAD,
    RecordType.PARTITION_STATS: COLUMN_STATS_PAYLOAD,
    RecordType.SECONDARY_INDEX: SECONDARY_INDEX_PAYLOAD,
}


@functools.cache
def record_schema(table_version: int, *, meta_columns: bool = True) -> str:
    """Return the Avro schema (JSON) of HFiles and log blocks of a table version.

    In commit metadata it has no ``meta_columns``.
    """
    schema = _own_schema(table_version)
    if meta_columns:
        meta = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in META_COLUMNS]
        schema["fields"] = [*meta, *schema["fields"]]
    return schema_json(schema)


def payload_type(kind: RecordType, table_version: int) -> pa.DataType:
    """Return the Arrow type of the payloads of a record type: a struct, or a map from file names to sizes."""
    return _field(record_type(record_schema(table_version)), kind.payload).type


def encode(
    kind: RecordType,
    payload: pa.Array | pa.ChunkedArray | pa.Table,
    table_version: int,
    *,
    file_name: str | None = None,
) -> pa.BinaryArray:
    """Return the encoded values of records of one type.

    Args:
        kind: Type of the records.
        payload: Maps, or structs (also as the columns of a table). Fields of structs may be in any order; missing ones
            become null, false or 0, and those unknown to the version are dropped.
        table_version: Version of the table.
        file_name: Name of the base file, which values of compacted files contain.

    Raises:
        FormatError: The payload does not match the type.
    """
    if isinstance(payload, pa.Table):
        payload = payload.combine_chunks().to_struct_array()
    if isinstance(payload, pa.ChunkedArray):
        payload = payload.combine_chunks()
    text = record_schema(table_version)
    record = record_type(text)
    columns = {
        kind.payload: _conformed(payload, _field(record, kind.payload).type, kind.payload),
        TYPE_FIELD: pa.repeat(pa.scalar(int(kind), pa.int32()), len(payload)),
    }
    absent: dict[str, str | None] = {name: None for name, _ in record.fields if name not in columns}
    constants = {**absent, FILE_NAME: file_name, KEY_FIELD: ""}
    return encode_records(record, columns, len(payload), constants)


def decode(
    values: pa.BinaryArray | pa.ChunkedArray,
    writer_schema: str,
    payloads: Iterable[str] | Mapping[str, Projection] = PAYLOADS,
) -> pa.Table:
    """Return ``type`` and the payloads of values, null for records with another payload. Payloads that the writer's
    schema lacks are omitted.

    ``payloads`` are those to decode; a mapping also selects their fields.

    Raises:
        FormatError: A value is not such a record.
    """
    record = record_type(writer_schema)
    names = {name for name, _ in record.fields}
    if TYPE_FIELD not in names or KEY_FIELD not in names:
        raise FormatError("values of an HFile are not records of a metadata table: their schema has no key and type")
    parts: Mapping[str, Projection] = payloads if isinstance(payloads, Mapping) else dict.fromkeys(payloads)
    projection = {TYPE_FIELD: None, **{name: inner for name, inner in parts.items() if name in names}}
    chunks = _combine_small_chunks(values.chunks) if isinstance(values, pa.ChunkedArray) else [values]
    tables = [decode_steps(chunk, record, projection) for chunk in chunks]
    return pa.concat_tables(tables) if tables else decode_steps(pa.array([], pa.binary()), record, projection)


def _combine_small_chunks(chunks: list[pa.Array]) -> list[pa.Array]:
    """Return the same values in fewer arrays, because blocks of HFiles are small and each array has a fixed cost."""
    result: list[pa.Array] = []
    waiting: list[pa.Array] = []
    rows = size = 0
    for chunk in chunks:
        waiting.append(chunk)
        rows, size = rows + len(chunk), size + chunk.nbytes
        if rows >= _TOGETHER_ROWS or size >= _TOGETHER_BYTES:
            result.append(pa.concat_arrays(waiting))
            waiting, rows, size = [], 0, 0
    return [*result, pa.concat_arrays(waiting)] if waiting else result


def decoded_schema(table_version: int, payloads: Iterable[str] | Mapping[str, Projection]) -> pa.Schema:
    """Return the schema of the result of `decode` for records of a table version."""
    return _schema_of(table_version, frozen(payloads))


def frozen(payloads: Iterable[str] | Mapping[str, Projection]) -> Frozen:
    """Return the selection of fields to decode as a hashable value."""
    if not isinstance(payloads, Mapping):
        return tuple((name, None) for name in payloads)
    return tuple((name, None if inner is None else frozen(inner)) for name, inner in payloads.items())


@functools.lru_cache(maxsize=256)
def _schema_of(table_version: int, payloads: Frozen) -> pa.Schema:
    return decode(pa.array([], pa.binary()), record_schema(table_version), _projection(payloads)).schema


def _projection(payloads: Frozen) -> dict[str, Projection]:
    return {name: None if inner is None else _projection(inner) for name, inner in payloads}


def with_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return decoded records of another table version with this schema; other fields are dropped."""
    if table.schema == schema:
        return table
    table = table.combine_chunks()
    columns = []
    for field in schema:
        if field.name in table.column_names:
            column = table[field.name]
            array = column.chunk(0) if column.num_chunks else pa.array([], column.type)
            columns.append(_conformed(array, field.type, field.name))
        else:
            columns.append(pa.nulls(table.num_rows, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _own_schema(table_version: int) -> AvroSchema:
    if table_version not in _AVSC:
        raise FormatError(f"unsupported table version {table_version} of a metadata table; supported are 5, 6, 8 and 9")
    return load_schema(_AVSC[table_version])


def _field(record: Record, name: str) -> pa.Field:
    index = record.arrow.get_field_index(name)
    if index < 0:
        raise FormatError(f"records of this table version have no field {name}")
    return record.arrow.field(index)


def _conformed(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    """Return the array with the fields of ``target``, on every level."""
    if array.type == target:
        return array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_struct(target) and pa.types.is_struct(array.type):
        children = []
        for field in target:
            at = array.type.get_field_index(field.name)
            if at < 0:
                children.append(_nothing(field, len(array)))
            else:
                children.append(_conformed(array.field(at), field.type, f"{path}.{field.name}"))
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
    if pa.types.is_map(target) and pa.types.is_map(array.type):
        items = _conformed(array.items, target.item_type, path)
        mask = array.is_null() if array.null_count else None
        return pa.MapArray.from_arrays(array.offsets, array.keys.cast(pa.string()), items, type=target, mask=mask)
    try:
        return array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FormatError(f"{path} of a metadata record is {array.type}, which cannot be stored as {target}") from error


def _nothing(field: pa.Field, count: int) -> pa.Array:
    if field.nullable:
        return pa.nulls(count, field.type)
    if pa.types.is_boolean(field.type) or pa.types.is_integer(field.type):
        return pa.repeat(pa.scalar(0).cast(field.type), count)
    raise FormatError(f"metadata records lack the required field {field.name!r}")
