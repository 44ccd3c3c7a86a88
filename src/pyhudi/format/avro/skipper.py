"""Traversal of Avro records in a binary array: skips values, and locates the items of maps and lists, for all records
at once.

Only if few records have long maps or lists are items located one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.format.avro.buffer_cursors import BufferCursors
from pyhudi.format.avro.type_tree import Array, AvroType, Fixed, Map, Primitive, Record, Union, is_null

Ints = npt.NDArray[np.int64]

TEXT = Primitive("string", pa.string())
"""Type of map keys."""
_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_FEW = 64
"""Number of records below which their items are located one by one."""


def skip(avro: AvroType, cursors: BufferCursors) -> None:
    """Skip one value of every record."""
    match avro:
        case Primitive("string" | "bytes"):
            cursors.skip(cursors.sizes())
        case Primitive("int" | "long"):
            cursors.varints()
        case Primitive():
            cursors.skip(np.full(len(cursors), _SIZES[avro.name], np.int64))
        case Fixed():
            cursors.skip(np.full(len(cursors), avro.size, np.int64))
        case Record():
            for _, member in avro.fields:
                skip(member, cursors)
        case Union():
            branches = cursors.branches(len(avro.branches))
            for number, inner in avro.values:
                skip_some(inner, cursors, rows_with(branches, number, len(cursors)))
        case Map():
            items_of((TEXT, avro.values), cursors)
        case Array():
            items_of((avro.items,), cursors)
        case _:
            raise FormatError(f"Avro values of type {avro.arrow} are not supported by the columnar decoder")


def skip_some(avro: AvroType, cursors: BufferCursors, rows: Ints | None) -> None:
    """Skip one value of some rows (None: of all)."""
    if rows is None:
        skip(avro, cursors)
    elif len(rows):
        some = cursors.some(rows)
        skip(avro, some)
        cursors.move(rows, some)


def rows_with(branches: int | Ints, number: int, count: int) -> Ints | None:
    """Return the rows with that branch; None: all."""
    if isinstance(branches, int):
        return None if branches == number or not count else np.empty(0, np.int64)
    return np.flatnonzero(branches == number)


def items_of(item: tuple[AvroType, ...], cursors: BufferCursors) -> tuple[BufferCursors, Ints]:
    """Return the start offsets of the items of each record's list or map, in order, and the numbers of items.

    ``item`` are the consecutive types of an item.
    """
    sizes = np.zeros(len(cursors), np.int64)
    parts: list[tuple[Ints, Ints]] = []
    active = np.arange(len(cursors))
    while len(active):
        some = cursors.some(active)
        counts = some.varints()
        with_size = np.flatnonzero(counts < 0)
        if len(with_size):
            # Such a block also has its size in bytes.
            sized = some.some(with_size)
            sized.varints()
            some.move(with_size, sized)
            counts = np.abs(counts)
        cursors.move(active, some)
        has_items = counts > 0
        active, counts = active[has_items], counts[has_items]
        sizes[active] += counts
        _check_counts(cursors, active, counts)
        parts += _walk(item, cursors, active, counts)
    if not parts:
        return cursors.some(np.empty(0, np.int64)), sizes
    start, owner = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(owner, kind="stable")
    return cursors.at(start[order], owner[order]), sizes


def _check_counts(cursors: BufferCursors, active: Ints, counts: Ints) -> None:
    if len(active) and (counts > cursors.left(active)).any():
        raise FormatError("a list in an Avro record has more items than the record has bytes")


def _walk(
    item: tuple[AvroType, ...], cursors: BufferCursors, active: Ints, counts: Ints
) -> Iterator[tuple[Ints, Ints]]:
    """Traverse one block of items of the ``active`` records. Yield the starts of items with their records."""
    shape = _shape(item)
    while len(active):
        if shape is not None and len(active) < _FEW:
            for row, count in zip(active.tolist(), counts.tolist(), strict=True):
                yield cursors.walk(row, count, shape), np.full(count, row)
            return
        some = cursors.some(active)
        yield some.positions(), active
        for avro in item:
            skip(avro, some)
        cursors.move(active, some)
        counts = counts - 1
        has_items = counts > 0
        active, counts = active[has_items], counts[has_items]


def _shape(item: tuple[AvroType, ...]) -> str | None:
    """Return the kinds of the values to skip: ``t`` text, ``v`` varint, ``b`` byte. None for other types."""
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
