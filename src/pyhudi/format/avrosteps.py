"""Avro records of a binary array decoded in step: every field of all records at once, with numpy.

For records that have unions of several types, many small values, or none at all in most fields, as those of the
metadata table. All records are read from their own place on, field after field; what a record has in a field moves its
place only. Only the entries of long maps and lists are found one by one where few records have many of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format.avrotypes import Array, AvroType, Fixed, Map, Primitive, Record, Union, is_null
from pyhudi.format.decimals import decimals_from_bytes
from pyhudi.format.places import Places

Ints = npt.NDArray[np.int64]

Wanted = Mapping[str, Any] | None
"""Which fields are decoded, by name, with what is wanted inside of them; None: all of it. So are chosen, too, members
of a union of several types: where it has another one, none is set."""

_CHUNK = 1 << 17
"""Records that are decoded together: what is worked on stays in the processor's caches."""


def decode_steps(values: pa.BinaryArray, record: Record, wanted: Wanted = None) -> pa.Table:
    """Return the ``wanted`` fields of the records, in the Arrow types that ``record`` has for them.

    Raises:
        FormatError: a value is no such record, or has bytes after it.
    """
    fields = [f for f in record.arrow if wanted is None or f.name in wanted]
    schema = pa.schema([pa.field(f.name, _type_of(record, f.name, wanted)) for f in fields])
    tables = [schema.empty_table()]
    for start in range(0, len(values), _CHUNK):
        places = Places.of(values.slice(start, _CHUNK))
        columns = _fields(record, places, wanted)
        places.check_finished()
        tables.append(pa.Table.from_arrays([columns[f.name] for f in fields], schema=schema))
    return pa.concat_tables(tables)


def _type_of(record: Record, name: str, wanted: Wanted) -> pa.DataType:
    inner = next(avro for field, avro in record.fields if field == name)
    return _narrow(inner, None if wanted is None else wanted[name])


def _narrow(avro: AvroType, wanted: Wanted) -> pa.DataType:
    """The Arrow type of what is wanted."""
    if wanted is None:
        return avro.arrow
    if isinstance(avro, Union) and len(avro.values) == 1:
        return _narrow(avro.values[0][1], wanted)
    if isinstance(avro, Record):
        return pa.struct([(name, _narrow(member, wanted[name])) for name, member in avro.fields if name in wanted])
    if isinstance(avro, Union) and avro.is_members:
        return pa.struct([field for field in avro.arrow if field.name in wanted])
    return avro.arrow


def _fields(record: Record, places: Places, wanted: Wanted) -> dict[str, pa.Array]:
    found = {}
    for name, avro in record.fields:
        if wanted is None or name in wanted:
            found[name] = _read(avro, places, None if wanted is None else wanted[name])
        else:
            _skip(avro, places)
    return found


def _read(avro: AvroType, places: Places, wanted: Wanted) -> pa.Array:
    """A value of every record."""
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
            inside, sizes = _items((_TEXT, avro.values), places)
            keys, values = _read(_TEXT, inside, None), _read(avro.values, inside, None)
            return pa.MapArray.from_arrays(_offsets(sizes), keys, values, type=avro.arrow)
        case Array():
            inside, sizes = _items((avro.items,), places)
            return pa.ListArray.from_arrays(_offsets(sizes), _read(avro.items, inside, None), type=avro.arrow)
        case Fixed():
            taken = places.take_bytes(np.full(len(places), avro.size, np.int64))
            return decimals_from_bytes(taken, avro.arrow) if pa.types.is_decimal(avro.arrow) else taken.cast(avro.arrow)
    raise FormatError(f"Avro values of type {avro.arrow} are not decoded in step")


def _skip(avro: AvroType, places: Places) -> None:
    match avro:
        case Primitive("string" | "bytes"):
            places.skip(places.sizes())
        case Primitive("int" | "long"):
            places.varints()
        case Primitive():
            places.skip(np.full(len(places), _SIZES[avro.name], np.int64))
        case Fixed():
            places.skip(np.full(len(places), avro.size, np.int64))
        case Record():
            for _, member in avro.fields:
                _skip(member, places)
        case Union():
            branches = places.branches(len(avro.branches))
            for number, inner in avro.values:
                _pass_over(inner, places, _rows(branches, number, len(places)))
        case Map():
            _items((_TEXT, avro.values), places)
        case Array():
            _items((avro.items,), places)
        case _:
            raise FormatError(f"Avro values of type {avro.arrow} are not decoded in step")


def _rows(branches: int | Ints, number: int, count: int) -> Ints | None:
    """The rows that have that branch; None: all."""
    if isinstance(branches, int):
        return None if branches == number or not count else np.empty(0, np.int64)
    return np.flatnonzero(branches == number)


def _union(avro: Union, places: Places, wanted: Wanted) -> pa.Array:
    count = len(places)
    branches = places.branches(len(avro.branches))
    members = []
    chosen = {f.name for f in avro.arrow} & set(wanted or ()) if avro.is_members and wanted is not None else None
    for k, (number, inner) in enumerate(avro.values):
        rows = _rows(branches, number, count)
        if chosen is not None:
            wanted = None
            if avro.arrow.field(k).name not in chosen:
                _pass_over(inner, places, rows)
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


def _pass_over(avro: AvroType, places: Places, rows: Ints | None) -> None:
    """Skip a value of some rows (None: of all)."""
    if rows is None:
        _skip(avro, places)
    elif len(rows):
        some = places.some(rows)
        _skip(avro, some)
        places.move(rows, some)


def _scattered(column: pa.Array, rows: Ints, count: int) -> pa.Array:
    """The values at these rows, null elsewhere."""
    places = np.full(count, -1, np.int64)
    places[rows] = np.arange(len(rows))
    return column.take(pa.array(places, mask=places < 0))


def _offsets(sizes: Ints) -> pa.Array:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return pa.array(offsets.astype(np.int32))


def _text(places: Places, arrow: pa.DataType) -> pa.Array:
    taken = places.take_bytes(places.sizes())
    try:
        return taken.cast(arrow)
    except pa.ArrowInvalid as e:
        raise FormatError(f"a text in an Avro record is not UTF-8: {e}") from e


def _bytes(places: Places, arrow: pa.DataType) -> pa.Array:
    taken = places.take_bytes(places.sizes())
    return decimals_from_bytes(taken, arrow) if pa.types.is_decimal(arrow) else taken.cast(arrow)


def _int(places: Places, arrow: pa.DataType) -> pa.Array:
    numbers = places.varints()
    if arrow.bit_width == 32:
        if len(numbers) and (int(numbers.min()) < -(1 << 31) or int(numbers.max()) >= 1 << 31):
            raise FormatError("an int in an Avro record has more than 32 bits")
        return pa.array(numbers.astype(np.int32)).view(arrow)
    return pa.array(numbers).view(arrow)


def _boolean(places: Places, _: pa.DataType) -> pa.Array:
    flags = places.take_plain(1)[:, 0]
    if len(flags) and flags.max() > 1:
        raise FormatError(f"a boolean in an Avro record is {flags.max()}")
    return pa.array(flags.astype(np.bool_))


def _float(width: int) -> Callable[[Places, pa.DataType], pa.Array]:
    def read(places: Places, arrow: pa.DataType) -> pa.Array:
        raw = np.ascontiguousarray(places.take_plain(width))
        return pa.Array.from_buffers(arrow, len(raw), [None, pa.py_buffer(raw.reshape(-1))])

    return read


_READERS: dict[str, Callable[[Places, pa.DataType], pa.Array]] = {
    "null": lambda places, arrow: pa.nulls(len(places), arrow),
    "boolean": _boolean,
    "int": _int,
    "long": _int,
    "float": _float(4),
    "double": _float(8),
    "string": _text,
    "bytes": _bytes,
}
_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_TEXT = Primitive("string", pa.string())

# --- maps and lists --------------------------------------------------------------------------------------------------

_FEW = 64
"""With fewer records than this, their items are found one by one."""


def _items(item: tuple[AvroType, ...], places: Places) -> tuple[Places, Ints]:
    """Where the items of every record's list or map begin, in order; and how many each record has.

    ``item`` are the types of an item, one after another.
    """
    sizes = np.zeros(len(places), np.int64)
    found: list[Ints] = []
    owners: list[Ints] = []
    active = np.arange(len(places))
    while len(active):
        some = places.some(active)
        counts = some.varints()
        with_size = np.flatnonzero(counts < 0)
        if len(with_size):
            # such a block says its bytes, too
            sized = some.some(with_size)
            sized.varints()
            some.move(with_size, sized)
            counts = np.abs(counts)
        places.move(active, some)
        going = counts > 0
        active, counts = active[going], counts[going]
        sizes[active] += counts
        _check_counts(places, active, counts)
        _walk(item, places, active, counts, found, owners)
    if not found:
        return places.some(np.empty(0, np.int64)), sizes
    owner, start = np.concatenate(owners), np.concatenate(found)
    order = np.argsort(owner, kind="stable")
    return places.at(start[order], owner[order]), sizes


def _check_counts(places: Places, active: Ints, counts: Ints) -> None:
    if len(active) and (counts > places.left(active)).any():
        raise FormatError("a list in an Avro record has more items than the record has bytes")


def _walk(
    item: tuple[AvroType, ...], places: Places, active: Ints, counts: Ints, found: list[Ints], owners: list[Ints]
) -> None:
    """Go over one block of items of the ``active`` records; note where each item begins, and whose it is."""
    shape = _shape(item)
    while len(active):
        if shape is not None and len(active) < _FEW:
            for row, count in zip(active.tolist(), counts.tolist(), strict=True):
                starts = places.walk(row, count, shape)
                found.append(starts)
                owners.append(np.full(count, row))
            return
        some = places.some(active)
        found.append(some.positions())
        owners.append(active)
        for avro in item:
            _skip(avro, some)
        places.move(active, some)
        counts = counts - 1
        going = counts > 0
        active, counts = active[going], counts[going]


def _shape(item: tuple[AvroType, ...]) -> str | None:
    """What to pass over: ``t`` a text, ``v`` a number, ``b`` a byte. None for anything else."""
    shape = ""
    for avro in item:
        match avro:
            case Record():
                inner = _shape(tuple(member for _, member in avro.fields))
            case Primitive("string" | "bytes"):
                inner = "t"
            case Primitive("int" | "long"):
                inner = "v"
            case Primitive("boolean"):
                inner = "b"
            case Primitive() if not is_null(avro):
                inner = "b" * _SIZES[avro.name]
            case _:
                return None
        if inner is None:
            return None
        shape += inner
    return shape
