"""Comparison and ranking of ordering values on whole Arrow columns.

Several ordering fields are compared as a tuple, left to right. A missing value counts as 0 for numbers and as the
minimum for other types. Text is compared by its UTF-8 bytes, floats like Java's ``Double.compare``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import UnsupportedTableError

Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.int64]

SEQUENCE_DIGITS = 19
"""Digits to which the numbers of a sequence are padded: those of the maximum 64-bit number."""

_PLAIN = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_temporal,
)


def newer_wins(older: Sequence[pa.Array], newer: Sequence[pa.Array]) -> Mask:
    """Return a mask of the aligned rows whose newer version wins by its ordering value: all unless it is less.

    ``older`` and ``newer`` are the ordering columns, with equal types. Without columns the newer rows win.
    """
    if not newer:
        raise ValueError("ordering columns are required for a comparison")
    rows = len(newer[0])
    decided, wins = np.zeros(rows, dtype=np.bool_), np.zeros(rows, dtype=np.bool_)
    for old, new in zip(older, newer, strict=True):
        greater, less = _compare(new, old)
        wins |= ~decided & greater
        decided |= greater | less
    return wins | ~decided


def without_ordering(ordering: Sequence[pa.Array], rows: int) -> Mask:
    """Return a mask of the rows without an ordering value, as in a delete by key.

    Apache Hudi stores "none" as the integer 0, so a 32-bit ordering field of 0 means none, too.
    """
    if len(ordering) == 1 and pa.types.is_int32(ordering[0].type):
        return as_mask(pc.equal(pc.fill_null(ordering[0], 0), 0))
    result = np.ones(rows, dtype=np.bool_)
    for column in ordering:
        result &= as_mask(pc.is_null(column))
    return result


def ordering_ranks(ordering: Sequence[pa.Array], rows: int) -> Index:
    """Return integers, from 0, with the order of the rows' ordering values; equal values have equal ranks."""
    if not ordering:
        return np.zeros(rows, dtype=np.int64)
    return reduce(_combined, (_column_ranks(column) for column in ordering))


def ranks_of_rows(ordering: Sequence[pa.Array], rows: Index) -> Index:
    """Return the ranks of the ordering values of some rows, given by number."""
    picked = pa.array(rows)
    return ordering_ranks([column.take(picked) for column in ordering], len(rows))


def as_mask(array: Any) -> Mask:
    """Return a boolean array (null is false) as a numpy array."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    result: Mask = pc.fill_null(array, False).to_numpy(zero_copy_only=False).astype(np.bool_, copy=False)
    return result


def check_orderable(data_type: pa.DataType, name: str) -> None:
    """Check that a type has an order.

    Raises:
        UnsupportedTableError: The type is a list, map or struct.
    """
    if not any(fits(data_type) for fits in _PLAIN):
        raise UnsupportedTableError(
            f"the ordering field {name!r} has type {data_type}, whose values have no order; use a primitive type"
        )


def padded(sequences: pa.Array) -> pa.Array:
    """Return dotted numbers such as ``12.345`` as texts with the same order."""
    parts = pc.split_pattern(sequences, ".")
    numbers = pa.ListArray.from_arrays(parts.offsets, pc.utf8_lpad(parts.values, SEQUENCE_DIGITS, "0"))
    return pc.if_else(pc.is_valid(sequences), pc.binary_join(numbers, "."), None)


def field_of(rows: pa.RecordBatch | pa.Table, path: str) -> pa.Array | pa.ChunkedArray:
    """Return a column, or a field within structs by its dotted path."""
    if path in rows.schema.names:
        return rows.column(path)
    first, *rest = path.split(".")
    return pc.struct_field(rows.column(first), rest)


def _compare(left: pa.Array, right: pa.Array) -> tuple[Mask, Mask]:
    """Return two masks of the rows: left is greater than right, and left is less than right."""
    data_type = left.type
    if pa.types.is_floating(data_type):
        a, b = _float_order(left), _float_order(right)
        return a > b, a < b
    if pa.types.is_boolean(data_type):
        left, right = left.cast(pa.int8()), right.cast(pa.int8())
        data_type = pa.int8()
    if pa.types.is_integer(data_type) or pa.types.is_decimal(data_type):
        left, right = _zero_filled(left), _zero_filled(right)
        return as_mask(pc.greater(left, right)), as_mask(pc.less(left, right))
    left_there, right_there = as_mask(pc.is_valid(left)), as_mask(pc.is_valid(right))
    greater, less = as_mask(pc.greater(left, right)), as_mask(pc.less(left, right))
    return greater | (left_there & ~right_there), less | (~left_there & right_there)


def _column_ranks(column: pa.Array) -> Index:
    data_type = column.type
    if pa.types.is_floating(data_type):
        values = _float_order(column)
    elif pa.types.is_integer(data_type) or pa.types.is_boolean(data_type):
        values = _zero_filled(column.cast(pa.int64())).to_numpy(zero_copy_only=False)
    else:
        if pa.types.is_decimal(data_type):
            column = _zero_filled(column)
        encoded = column.dictionary_encode()
        order = np.empty(len(encoded.dictionary) + 1, dtype=np.int64)
        order[0] = 0  # null
        order[1 + pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(1, len(order))
        rank: Index = order[1 + pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)]
        return rank
    dense: Index = np.unique(values, return_inverse=True)[1].astype(np.int64, copy=False)
    return dense


def _combined(first: Index, second: Index) -> Index:
    """Return ranks of pairs."""
    pairs = first * (int(second.max(initial=0)) + 1) + second
    dense: Index = np.unique(pairs, return_inverse=True)[1].astype(np.int64, copy=False)
    return dense


def _zero_filled(column: pa.Array) -> pa.Array:
    # a cast of an integer 0 needs room for every integer of its type, which decimal(5, 4) does not have
    return pc.fill_null(column, pa.scalar(0, column.type)) if column.null_count else column


def _float_order(column: pa.Array) -> Index:
    """Return integers with the order of Java's ``Double.compare``: -0.0 before 0.0, NaN greater than all."""
    values = pc.fill_null(column, 0.0).cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
    values[np.isnan(values)] = np.nan
    bits = values.view(np.int64)
    result: Index = np.where(bits < 0, bits ^ np.int64(np.iinfo(np.int64).max), bits)
    return result


def distinct(numbers: Index) -> Index:
    """Return the distinct numbers, ascending. Faster than numpy's function, which hashes and takes twenty times as
    long."""
    ascending = np.sort(numbers)
    values: Index = ascending[np.diff(ascending, prepend=ascending[:1] - 1) != 0]
    return values
