"""Row-by-row equality of two columns of any type."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge.ordering_values import Mask, as_mask
from pyhudi.schema.table_types import is_list


def equal_rows(left: pa.RecordBatch, right: pa.RecordBatch, columns: Iterable[str]) -> Mask:
    """Return a mask of the aligned rows that are equal in the columns."""
    same = np.ones(left.num_rows, dtype=np.bool_)
    for name in columns:
        same &= same_values(left.column(name), right.column(name))
    return same


def same_values(left: pa.Array, right: pa.Array) -> Mask:
    """Return a mask of the aligned values of one type that are equal: null equals null, NaN equals NaN.

    Lists and maps are equal if their items are, in order.
    """
    data_type = left.type
    left_there, right_there = as_mask(pc.is_valid(left)), as_mask(pc.is_valid(right))
    both_valid = left_there & right_there
    if pa.types.is_struct(data_type):
        inside = np.ones(len(left), dtype=np.bool_)
        for left_child, right_child in zip(left.flatten(), right.flatten(), strict=True):
            inside &= same_values(left_child, right_child)
    elif is_list(data_type) or pa.types.is_map(data_type):
        inside = _same_lists(left, right, both_valid)
    else:
        inside = as_mask(pc.equal(left, right))
        if pa.types.is_floating(data_type):
            inside |= as_mask(pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return (both_valid & inside) | ~(left_there | right_there)


def _same_lists(left: pa.Array, right: pa.Array, both_valid: Mask) -> Mask:
    sizes = pc.fill_null(_length(left), 0).to_numpy(zero_copy_only=False)
    others = pc.fill_null(_length(right), 0).to_numpy(zero_copy_only=False)
    same: Mask = both_valid & (sizes == others)
    filled = np.flatnonzero(same & (sizes > 0))
    if len(filled):
        rows = pa.array(filled)
        items = same_values(_items(left.take(rows)), _items(right.take(rows)))
        starts = np.concatenate(([0], np.cumsum(sizes[filled])[:-1]))
        same[filled] = np.logical_and.reduceat(items, starts)
    return same


def _length(array: pa.Array) -> pa.Array:
    return pc.list_value_length(_as_list(array))


def _items(array: pa.Array) -> pa.Array:
    return _as_list(array).flatten()


def _as_list(array: pa.Array) -> pa.Array:
    if not pa.types.is_map(array.type):
        return array
    entries = pa.struct([array.type.key_field, array.type.item_field])
    return array.cast(pa.list_(pa.field("entries", entries, nullable=False)))
