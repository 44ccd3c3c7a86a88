"""Columnar decoder of Avro records in a binary array: each field of all records at once, with numpy.

It is used for records with unions of several types, with many small values, or with mostly empty fields, as those of
the metadata table. All records are decoded together, field by field; each record has its own position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format.avro.buffer_cursors import BufferCursors
from pyhudi.format.avro.skipper import TEXT, Ints, items_of, rows_with, skip, skip_some
from pyhudi.format.avro.type_tree import Array, AvroType, Fixed, Map, Primitive, Record, Union
from pyhudi.format.decimals import decimals_from_bytes
from pyhudi.schema.logical_types.vectors import is_vector, vectors_of_bytes

Projection = Mapping[str, Any] | None
"""Fields to decode by name, with the selection of their nested fields; None selects all.

Members of a union of several types are selected, too: if the value has a branch that is not selected, no member is set.
"""

_CHUNK = 1 << 17
"""Number of records that are decoded together, so that intermediate data fit into the processor's caches."""


def decode_steps(values: pa.BinaryArray, record: Record, projection: Projection = None) -> pa.Table:
    """Return the fields of a projection of the records, in the Arrow types of ``record``.

    Raises:
        FormatError: A value is not such a record, or has trailing bytes.
    """
    fields = [f for f in record.arrow if projection is None or f.name in projection]
    schema = pa.schema([pa.field(f.name, _type_of(record, f.name, projection)) for f in fields])
    tables = [schema.empty_table()]
    for start in range(0, len(values), _CHUNK):
        cursors = BufferCursors.from_array(values.slice(start, _CHUNK))
        columns = _fields(record, cursors, projection)
        cursors.check_finished()
        tables.append(pa.Table.from_arrays([columns[f.name] for f in fields], schema=schema))
    return pa.concat_tables(tables)


def _type_of(record: Record, name: str, projection: Projection) -> pa.DataType:
    inner = next(avro for field, avro in record.fields if field == name)
    return _narrow(inner, None if projection is None else projection[name])


def _narrow(avro: AvroType, projection: Projection) -> pa.DataType:
    """Return the Arrow type of the selected fields."""
    if projection is None:
        return avro.arrow
    if isinstance(avro, Union) and len(avro.values) == 1:
        return _narrow(avro.values[0][1], projection)
    if isinstance(avro, Record):
        return pa.struct(
            [(name, _narrow(member, projection[name])) for name, member in avro.fields if name in projection]
        )
    if isinstance(avro, Union) and avro.is_members:
        return pa.struct([field for field in avro.arrow if field.name in projection])
    return avro.arrow


def _fields(record: Record, cursors: BufferCursors, projection: Projection) -> dict[str, pa.Array]:
    columns = {}
    for name, avro in record.fields:
        if projection is None or name in projection:
            columns[name] = _read(avro, cursors, None if projection is None else projection[name])
        else:
            skip(avro, cursors)
    return columns


def _read(avro: AvroType, cursors: BufferCursors, projection: Projection) -> pa.Array:
    """Read one value of every record."""
    match avro:
        case Primitive():
            return _READERS[avro.name](cursors, avro.arrow)
        case Union():
            return _union(avro, cursors, projection)
        case Record():
            field_columns = _fields(avro, cursors, projection)
            if not field_columns:
                return pa.array([{}] * len(cursors), pa.struct([]))
            return pa.StructArray.from_arrays(list(field_columns.values()), fields=list(_narrow(avro, projection)))
        case Map():
            inside, sizes = items_of((TEXT, avro.values), cursors)
            keys, values = _read(TEXT, inside, None), _read(avro.values, inside, None)
            return pa.MapArray.from_arrays(_offsets(sizes), keys, values, type=avro.arrow)
        case Array():
            inside, sizes = items_of((avro.items,), cursors)
            return pa.ListArray.from_arrays(_offsets(sizes), _read(avro.items, inside, None), type=avro.arrow)
        case Fixed():
            taken = cursors.take_bytes(np.full(len(cursors), avro.size, np.int64))
            if is_vector(avro.arrow):
                return vectors_of_bytes(taken, avro.arrow)
            return decimals_from_bytes(taken, avro.arrow) if pa.types.is_decimal(avro.arrow) else taken.cast(avro.arrow)
    raise FormatError(f"Avro values of type {avro.arrow} are not supported by the columnar decoder")


def _union(avro: Union, cursors: BufferCursors, projection: Projection) -> pa.Array:
    count = len(cursors)
    branches = cursors.branches(len(avro.branches))
    members = []
    chosen = (
        {f.name for f in avro.arrow} & set(projection or ()) if avro.is_members and projection is not None else None
    )
    for place, (number, inner) in enumerate(avro.values):
        rows = rows_with(branches, number, count)
        if chosen is not None:
            projection = None
            if avro.arrow.field(place).name not in chosen:
                skip_some(inner, cursors, rows)
                continue
        if rows is None:
            members.append(_read(inner, cursors, projection))
        elif len(rows):
            some = cursors.some(rows)
            column = _read(inner, some, projection)
            cursors.move(rows, some)
            members.append(_scattered(column, rows, count))
        else:
            members.append(pa.nulls(count, _narrow(inner, projection)))
    if len(avro.values) == 1:
        return members[0]
    if not avro.is_members:
        # The members are numbers of several widths, which are decoded as the widest.
        return pc.coalesce(*(member.cast(avro.arrow) for member in members))
    null = avro.null_branch
    if isinstance(branches, int):
        mask = pa.repeat(pa.scalar(branches == null), count)
    else:
        mask = pa.array(branches == (-1 if null is None else null))
    fields = [field for field in avro.arrow if chosen is None or field.name in chosen]
    return pa.StructArray.from_arrays(members, fields=fields, mask=mask)


def _scattered(column: pa.Array, rows: Ints, count: int) -> pa.Array:
    """Return the values at these rows, null elsewhere."""
    cursors = np.full(count, -1, np.int64)
    cursors[rows] = np.arange(len(rows))
    return column.take(pa.array(cursors, mask=cursors < 0))


def _offsets(sizes: Ints) -> pa.Array:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return pa.array(offsets.astype(np.int32))


def _text(cursors: BufferCursors, arrow: pa.DataType) -> pa.Array:
    taken = cursors.take_bytes(cursors.sizes())
    try:
        return taken.cast(arrow)
    except pa.ArrowInvalid as error:
        raise FormatError(f"text in an Avro record is not valid UTF-8: {error}") from error


def _bytes(cursors: BufferCursors, arrow: pa.DataType) -> pa.Array:
    taken = cursors.take_bytes(cursors.sizes())
    return decimals_from_bytes(taken, arrow) if pa.types.is_decimal(arrow) else taken.cast(arrow)


def _int(cursors: BufferCursors, arrow: pa.DataType) -> pa.Array:
    numbers = cursors.varints()
    if arrow.bit_width == 32:
        if len(numbers) and (int(numbers.min()) < -(1 << 31) or int(numbers.max()) >= 1 << 31):
            raise FormatError("an int in an Avro record exceeds 32 bits")
        return pa.array(numbers.astype(np.int32)).view(arrow)
    return pa.array(numbers).view(arrow)


def _boolean(cursors: BufferCursors, _: pa.DataType) -> pa.Array:
    flags = cursors.take_plain(1)[:, 0]
    if len(flags) and flags.max() > 1:
        raise FormatError(f"invalid boolean {flags.max()} in an Avro record")
    return pa.array(flags.astype(np.bool_))


def _float(width: int) -> Callable[[BufferCursors, pa.DataType], pa.Array]:
    def read(cursors: BufferCursors, arrow: pa.DataType) -> pa.Array:
        raw = np.ascontiguousarray(cursors.take_plain(width))
        return pa.Array.from_buffers(arrow, len(raw), [None, pa.py_buffer(raw.reshape(-1))])

    return read


_READERS: dict[str, Callable[[BufferCursors, pa.DataType], pa.Array]] = {
    "null": lambda cursors, arrow: pa.nulls(len(cursors), arrow),
    "boolean": _boolean,
    "int": _int,
    "long": _int,
    "float": _float(4),
    "double": _float(8),
    "string": _text,
    "bytes": _bytes,
}
