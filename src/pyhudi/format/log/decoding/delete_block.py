"""Delete blocks::

    int32 content version, 1 to 3
    int32 length, then that many bytes: the deletes

Versions 1 and 2 (releases up to 0.13) are Kryo's; version 3 is Avro binary of HoodieDeleteRecordList without container.
"""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format.avro.container import decode_datum, encode_datum, load_schema, schema_json
from pyhudi.format.log.decoding.kryo_delete_list import DeletedKey, parse_deletes
from pyhudi.format.log.decoding.uniform_delete_list import UniformDeletes, decode_uniform
from pyhudi.format.log.delete_ordering import NATURAL_COLUMN, RAW_TYPES, Ordering, OrderingKind, to_column
from pyhudi.format.log.log_block import BlockType, LogBlock
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY

DELETE_LIST = "HoodieDeleteRecordList.v9"
"""Widest schema of version 3; that of earlier releases lacks the last branch of the union."""

_HEAD = struct.Struct(">ii")


def delete_schema(ordering: pa.Schema) -> pa.Schema:
    """Return the schema of `decode_deletes` for a table's ordering fields."""
    fields = [pa.field(field.name, field.type) for field in ordering]
    keys = [pa.field(RECORD_KEY, pa.string()), pa.field(PARTITION_PATH, pa.string())]
    return pa.schema([*keys, *fields, pa.field(NATURAL_COLUMN, pa.bool_(), nullable=False)])


def decode_deletes(block: LogBlock, ordering: pa.Schema) -> pa.Table:
    """Return the deletes of a block in its order: record key, partition path, ordering fields, `NATURAL_COLUMN`.

    Ordering fields have the types of ``ordering``, and are null for deletes without ordering value.

    Raises:
        FormatError: The block holds no deletes, its content is corrupt, or ordering values do not match the fields'
            types.
    """
    if block.type is not BlockType.DELETE:
        raise FormatError(f"a block of type {block.type.name} holds no deletes")
    content = block.content()
    if len(content) < _HEAD.size:
        raise FormatError(f"delete block of {len(content)} bytes is too short")
    version, length = _HEAD.unpack_from(content)
    if length != len(content) - _HEAD.size:
        raise FormatError(f"a delete block of {len(content)} bytes claims a content of {length}")
    body = content[_HEAD.size :]
    if version == 3:
        uniform = decode_uniform(body)
        return _assemble(_general(body), ordering) if uniform is None else _columns(uniform, ordering)
    if version in (1, 2):
        return _assemble(parse_deletes(body, version), ordering)
    raise FormatError(f"a delete block has content version {version}; versions 1 to 3 are supported")


def _general(body: memoryview) -> Iterable[DeletedKey]:
    """Decode deletes one by one, with any ordering values."""
    schema = _plain_delete_list()
    record = decode_datum(schema, bytes(body), named_unions=True)
    if encode_datum(schema, record) != body:
        raise FormatError(f"a delete block of {len(body)} bytes is not in canonical Avro encoding")
    rows = record["deleteRecordList"]
    return (DeletedKey(row["recordKey"], row["partitionPath"], _unwrap(row["orderingVal"])) for row in rows)


@functools.cache
def _plain_delete_list() -> str:
    """Return the schema without logical types, so that values are returned as stored."""

    def without(part: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in part.items() if key != "logicalType"}

    return schema_json(json.loads(schema_json(load_schema(DELETE_LIST)), object_hook=without))


def _unwrap(wrapped: Any) -> Ordering:
    if wrapped is None:
        return Ordering(OrderingKind.NONE, None)
    name, record = wrapped
    kind = _KINDS[name.rpartition(".")[2]]
    if kind is OrderingKind.ARRAY:
        return Ordering(kind, tuple(_unwrap(part) for part in record["wrappedValues"] or ()))
    return Ordering(kind, record["value"])


_KINDS = {
    "BooleanWrapper": OrderingKind.BOOLEAN,
    "IntWrapper": OrderingKind.INT,
    "LongWrapper": OrderingKind.LONG,
    "FloatWrapper": OrderingKind.FLOAT,
    "DoubleWrapper": OrderingKind.DOUBLE,
    "BytesWrapper": OrderingKind.BYTES,
    "StringWrapper": OrderingKind.STRING,
    "DateWrapper": OrderingKind.DATE,
    "DecimalWrapper": OrderingKind.DECIMAL,
    "TimeMicrosWrapper": OrderingKind.TIME_MICROS,
    "TimestampMicrosWrapper": OrderingKind.TIMESTAMP_MICROS,
    "ArrayWrapper": OrderingKind.ARRAY,
    "LocalDateWrapper": OrderingKind.LOCAL_DATE,
}


def _assemble(deletes: Iterable[DeletedKey], ordering: pa.Schema) -> pa.Table:
    """Combine deletes with ordering values of different kinds, kind by kind, in their original order."""
    groups: dict[tuple[OrderingKind, ...], list[tuple[int, DeletedKey, tuple[Any, ...]]]] = {}
    for place, delete in enumerate(deletes):
        kinds, values = _kinds_and_values(delete.ordering)
        groups.setdefault(kinds, []).append((place, delete, values))
    tables = [delete_schema(ordering).empty_table()]
    places: list[int] = []
    for kinds, members in groups.items():
        keys = pa.array([delete.record_key for _, delete, _ in members], pa.string())
        partitions = pa.array([delete.partition_path for _, delete, _ in members], pa.string())
        stored = [pa.array([v[i] for _, _, v in members], RAW_TYPES[kind]) for i, kind in enumerate(kinds)]
        tables.append(_columns(UniformDeletes(keys, partitions, kinds, stored), ordering))
        places += [place for place, _, _ in members]
    return pa.concat_tables(tables).take(pc.sort_indices(pa.array(places, pa.int64())))


def _kinds_and_values(ordering: Ordering) -> tuple[tuple[OrderingKind, ...], tuple[Any, ...]]:
    """Return kinds and values per field; nothing for the default."""
    if ordering.is_natural:
        return (), ()
    parts: tuple[Ordering, ...] = ordering.value if ordering.kind is OrderingKind.ARRAY else (ordering,)
    if any(part.kind is OrderingKind.ARRAY for part in parts):
        raise FormatError("a delete has an ordering value with nested arrays")
    return tuple(part.kind for part in parts), tuple(part.value for part in parts)


def _columns(deletes: UniformDeletes, ordering: pa.Schema) -> pa.Table:
    """Decode deletes whose ordering values have the same kinds; the default may occur among those of kind INT."""
    count = len(deletes.keys)
    if deletes.kinds == (OrderingKind.INT,):
        natural = pc.equal(deletes.values[0], 0)
    else:
        natural = pa.repeat(pa.scalar(deletes.kinds in ((), (OrderingKind.NONE,))), count)
    if natural.true_count == count:
        columns = [pa.nulls(count, field.type) for field in ordering]
    elif len(ordering) not in (0, len(deletes.kinds)):
        raise FormatError(
            f"a delete has {len(deletes.kinds)} ordering values; the table has {len(ordering)} such fields"
        )
    else:
        columns = [
            to_column(pc.if_else(natural, pa.scalar(None, values.type), values), kind, field)
            for values, kind, field in zip(deletes.values, deletes.kinds, ordering, strict=False)
        ]
    return pa.Table.from_arrays([deletes.keys, deletes.partitions, *columns, natural], schema=delete_schema(ordering))
