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

Wanted = Mapping[str, Any] | None
"""Fields to decode by name, with the selection of their nested fields; None selects all.

Members of a union of several types are selected, too: if the value has a branch that is not selected, no member is set.
"""

_CHUNK = 1 << 17
"""Number of records that are decoded together, so that intermediate data fit into the processor's caches."""


def decode_steps(values: pa.BinaryArray, record: Record, wanted: Wanted = None) -> pa.Table:
    """Return the ``wanted`` fields of the records, in the Arrow types of ``record``.

    Raises:
        FormatError: A value is not such a record, or has trailing bytes.
    """
    fields = [f for f in record.arrow if wanted is None or f.name in wanted]
    schema = pa.schema([pa.field(f.name, _type_of(record, f.name, wanted)) for f in fields])
    tables = [schema.empty_table()]
    for start in range(0, len(values), _CHUNK):
        places = BufferCursors.of(values.slice(start, _CHUNK))
        columns = _fields(record, places, wanted)
        places.check_finished()
        tables.append(pa.Table.from_arrays([columns[f.name] for f in fields], schema=schema))
    return pa.concat_tables(tables)


def _type_of(record: Record, name: str, wanted: Wanted) -> pa.DataType:
    inner = next(avro for field, avro in record.fields if field == name)
    return _narrow(inner, None if wanted is None else wanted[name])


def _narrow(avro: AvroType, wanted: Wanted) -> pa.DataType:
    """Return the Arrow type of the selected fields."""
    if wanted is None:
        return avro.arrow
    if isinstance(avro, Union) and len(avro.values) == 1:
        return _narrow(avro.values[0][1], wanted)
    if isinstance(avro, Record):
        return pa.struct([(name, _narrow(member, wanted[name])) for name, member in avro.fields if name in wanted])
    if isinstance(avro, Union) and avro.is_members:
        return pa.struct([field for field in avro.arrow if field.name in wanted])
    return avro.arrow


def _fields(record: Record, places: BufferCursors, wanted: Wanted) -> dict[str, pa.Array]:
    columns = {}
    for name, avro in record.fields:
        if wanted is None or name in wanted:
            columns[name] = _read(avro, places, None if wanted is None else wanted[name])
        else:
            skip(avro, places)
    return columns


def _read(avro: AvroType, places: BufferCursors, wanted: Wanted) -> pa.Array:
    """Read one value of every record."""
    match avro:
        case Primitive():
            return _READERS[avro.name](places, avro.arrow)
        case Union():
            return _union(avro, places, wanted)
        case Record():
            found = _fields(avro, places, wanted)
            if not found:
                return pa.array([{}] * len(places), pa.struct([]))
            return pa.StructArray.from_arrays(list(found.values()), fields=list(_narrow(avro, wanted)))
        case Map():
            inside, sizes = items_of((TEXT, avro.values), places)
            keys, values = _read(TEXT, inside, None), _read(avro.values, inside, None)
            return pa.MapArray.from_arrays(_offsets(sizes), keys, values, type=avro.arrow)
        case Array():
            inside, sizes = items_of((avro.items,), places)
            return pa.ListArray.from_arrays(_offsets(sizes), _read(avro.items, inside, None), type=avro.arrow)
        case Fixed():
            taken = places.take_bytes(np.full(len(places), avro.size, np.int64))
            return decimals_from_bytes(taken, avro.arrow) if pa.types.is_decimal(avro.arrow) else taken.cast(avro.arrow)
    raise FormatError(f"Avro values of type {avro.arrow} are not supported by the columnar decoder")


def _union(avro: Union, places: BufferCursors, wanted: Wanted) -> pa.Array:
    count = len(places)
    branches = places.branches(len(avro.branches))
    members = []
    chosen = {f.name for f in avro.arrow} & set(wanted or ()) if avro.is_members and wanted is not None else None
    for k, (number, inner) in enumerate(avro.values):
        rows = rows_with(branches, number, count)
        if chosen is not None:
            wanted = None
            if avro.arrow.field(k).name not in chosen:
                skip_some(inner, places, rows)
                continue
        if rows is None:
            members.append(_read(inner, places, wanted))
        elif len(rows):
            some = places.some(rows)
            column = _read(inner, some, wanted)
            places.move(rows, some)
            members.append(_scattered(column, rows, count))
        else:
            members.append(pa.nulls(count, _narrow(inner, wanted)))
    if len(avro.values) == 1:
        return members[0]
    if not avro.is_members:
        # numbers of several widths, as the widest
        columns = [member.cast(avro.arrow) for member in members]
        return pc.coalesce(*columns)
    null = avro.null_branch
    if isinstance(branches, int):
        mask = pa.repeat(pa.scalar(branches == null), count)
    else:
        mask = pa.array(branches == (-1 if null is None else null))
    fields = [field for field in avro.arrow if chosen is None or field.name in chosen]
    return pa.StructArray.from_arrays(members, fields=fields, mask=mask)


def _scattered(column: pa.Array, rows: Ints, count: int) -> pa.Array:
    """Return the values at these rows, null elsewhere."""
    places = np.full(count, -1, np.int64)
    places[rows] = np.arange(len(rows))
    return column.take(pa.array(places, mask=places < 0))


def _offsets(sizes: Ints) -> pa.Array:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return pa.array(offsets.astype(np.int32))


def _text(places: BufferCursors, arrow: pa.DataType) -> pa.Array:
    taken = places.take_bytes(places.sizes())
    try:
        return taken.cast(arrow)
    except pa.ArrowInvalid as e:
        raise FormatError(f"text in an Avro record is not valid UTF-8: {e}") from e


def _bytes(places: BufferCursors, arrow: pa.DataType) -> pa.Array:
    taken = places.take_bytes(places.sizes())
    return decimals_from_bytes(taken, arrow) if pa.types.is_decimal(arrow) else taken.cast(arrow)


def _int(places: BufferCursors, arrow: pa.DataType) -> pa.Array:
    numbers = places.varints()
    if arrow.bit_width == 32:
        if len(numbers) and (int(numbers.min()) < -(1 << 31) or int(numbers.max()) >= 1 << 31):
            raise FormatError("an int in an Avro record exceeds 32 bits")
        return pa.array(numbers.astype(np.int32)).view(arrow)
    return pa.array(numbers).view(arrow)


def _boolean(places: BufferCursors, _: pa.DataType) -> pa.Array:
    flags = places.take_plain(1)[:, 0]
    if len(flags) and flags.max() > 1:
        raise FormatError(f"invalid boolean {flags.max()} in an Avro record")
    return pa.array(flags.astype(np.bool_))


def _float(width: int) -> Callable[[BufferCursors, pa.DataType], pa.Array]:
    def read(places: BufferCursors, arrow: pa.DataType) -> pa.Array:
        raw = np.ascontiguousarray(places.take_plain(width))
        return pa.Array.from_buffers(arrow, len(raw), [None, pa.py_buffer(raw.reshape(-1))])

    return read


_READERS: dict[str, Callable[[BufferCursors, pa.DataType], pa.Array]] = {
    "null": lambda places, arrow: pa.nulls(len(places), arrow),
    "boolean": _boolean,
    "int": _int,
    "long": _int,
    "float": _float(4),
    "double": _float(8),
    "string": _text,
    "bytes": _bytes,
}
