"""Locations of records in values of the record index: partition, file group and instant; docs/format/metadata.md, 2.8.

There are as few distinct values as file groups and instants, regardless of the number of keys, so each is encoded and
decoded once.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.metadata.records.metadata_keys import paths_of_keys
from pyhudi.metadata.records.metadata_record import RecordType, encode

LOCATION_SCHEMA = pa.schema([("partition", pa.string()), ("file_id", pa.string()), ("millis", pa.int64())])
"""Locations of keys: partition path, file group, and the instant of the write, as epoch milliseconds."""

_UUID_LETTERS = 36
_NO_INDEX = -1
_AS_PARTS, _AS_TEXT = 0, 1


def encode_locations(locations: pa.Table, version: int) -> pa.BinaryArray:
    """Return the values for keys at these locations (LOCATION_SCHEMA), in the form of the given table version."""
    names = LOCATION_SCHEMA.names
    distinct = locations.group_by(names).aggregate([]).select(names)
    values = encode(RecordType.RECORD_INDEX, _payload(distinct), version)
    numbered = distinct.append_column("value", pa.array(range(distinct.num_rows), pa.int32()))
    at = pc.index_in(_composite_keys(locations), value_set=_composite_keys(numbered))
    return values.take(at)


def decode_locations(payload: pa.StructArray | pa.ChunkedArray) -> pa.Table:
    """Return the locations (LOCATION_SCHEMA) in payloads of the record index.

    Raises:
        FormatError: A payload has no location.
    """
    flat = payload.combine_chunks() if isinstance(payload, pa.ChunkedArray) else payload
    if flat.null_count:
        raise FormatError("a record of the record index has no location")
    ids = _file_ids([pc.struct_field(flat, name) for name in _ID_FIELDS])
    columns = [paths_of_keys(pc.struct_field(flat, "partitionName")), ids, pc.struct_field(flat, "instantTime")]
    return pa.Table.from_arrays(columns, schema=LOCATION_SCHEMA)


_ID_FIELDS = ("fileIdHighBits", "fileIdLowBits", "fileIndex", "fileIdEncoding", "fileId")


def _file_ids(columns: list[pa.Array]) -> pa.Array:
    """Return file ids from their parts; each distinct text is created once."""
    defaults = (0, 0, _NO_INDEX, _AS_PARTS)
    numbers = [
        pc.fill_null(column.cast(pa.int64()), default).to_numpy(zero_copy_only=False)
        for column, default in zip(columns, defaults, strict=False)
    ]
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in numbers:
        mixed = (mixed ^ column.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    _, first, code = np.unique(mixed, return_index=True, return_inverse=True)
    texts = columns[4]
    alone = all((column == column[first][code]).all() for column in numbers)
    if not alone or (numbers[3] != _AS_PARTS).any():
        first = code = np.arange(len(mixed))  # Ids that are texts have no parts to distinguish them.
    rows = zip(*(column[first].tolist() for column in numbers), texts.take(pa.array(first)).to_pylist(), strict=True)
    ids = [
        _format_file_id(high, low, number) if encoding == _AS_PARTS else text or ""
        for high, low, number, encoding, text in rows
    ]
    return pa.array(ids, pa.string()).take(pa.array(code))


def _payload(locations: pa.Table) -> pa.Table:
    parts = [_split_file_id(file_id) for file_id in locations["file_id"].to_pylist()]
    highs, lows, numbers, texts, encodings = zip(*parts, strict=True) if parts else ((),) * 5
    return pa.table(
        {
            "partitionName": locations["partition"],
            "fileIdHighBits": pa.array(highs, pa.int64()),
            "fileIdLowBits": pa.array(lows, pa.int64()),
            "fileIndex": pa.array(numbers, pa.int32()),
            "fileId": pa.array(texts, pa.string()),
            "instantTime": locations["millis"],
            "fileIdEncoding": pa.array(encodings, pa.int32()),
        }
    )


def _split_file_id(file_id: str) -> tuple[int, int, int, str, int]:
    """Return a file id as two halves of a UUID and a number, or as a text."""
    prefix, rest = file_id[:_UUID_LETTERS], file_id[_UUID_LETTERS:]
    try:
        number = int(rest[1:]) if rest else _NO_INDEX
        high, low = struct.unpack(">qq", uuid.UUID(prefix).bytes)
        if _format_file_id(high, low, number) == file_id:
            return (high, low, number, "", _AS_PARTS)
    except ValueError:
        pass
    return (-1, -1, _NO_INDEX, file_id, _AS_TEXT)


def _format_file_id(high: int, low: int, number: int) -> str:
    prefix = str(uuid.UUID(bytes=struct.pack(">qq", high, low)))
    return prefix if number == _NO_INDEX else f"{prefix}-{number}"


def _composite_keys(locations: pa.Table) -> pa.Array:
    texts: Sequence[pa.ChunkedArray] = [locations[name].cast(pa.string()) for name in LOCATION_SCHEMA.names]
    return pc.binary_join_element_wise(*texts, "\0").combine_chunks()
