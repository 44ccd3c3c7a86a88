"""Combination of several versions of file lists, by the rule of docs/format/metadata.md, section 2.2.

A tombstone removes an existing entry completely; later entries begin a new one. A tombstone without an entry is kept,
because the entry may be in an older version that is not part of the input. The maximum size is used.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Index = npt.NDArray[np.int64]


def fold_lists(maps: pa.MapArray, groups: Index) -> pa.MapArray:
    """Fold the versions of each group. ``groups`` are ascending numbers from 0; versions are ordered, oldest first.
    Returns one map per group, of the same type."""
    bounds = maps.offsets.to_numpy().astype(np.int64)
    first, total = int(bounds[0]), int(bounds[-1] - bounds[0])
    names, items = maps.keys.slice(first, total), maps.items.slice(first, total)
    group = np.repeat(groups, np.diff(bounds))
    heads, sizes, deleted = _entries(names, items, group)
    columns = {"size": pa.array(sizes), "isDeleted": pa.array(deleted)}
    data_type = maps.type
    structs = pa.StructArray.from_arrays(
        [columns[f.name] for f in data_type.item_type], fields=list(data_type.item_type)
    )
    counts = np.bincount(group[heads], minlength=int(groups[-1]) + 1 if len(groups) else 0)
    offsets = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
    return pa.MapArray.from_arrays(offsets, names.take(pa.array(heads)), structs, type=data_type)


def _entries(names: pa.Array, items: pa.StructArray, group: Index) -> tuple[Index, Index, npt.NDArray[np.bool_]]:
    """Return the remaining entries: the positions of the first entries of each name in each group, in the order of
    groups, with sizes and tombstone flags."""
    if not len(names):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_)
    size = pc.struct_field(items, "size").to_numpy()
    tomb = pc.struct_field(items, "isDeleted").to_numpy(zero_copy_only=False)
    code = names.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.lexsort((np.arange(len(code)), code, group))
    size, tomb, places = size[order], tomb[order], np.arange(len(order))
    starts = np.flatnonzero(np.append(True, (np.diff(code[order]) != 0) | (np.diff(group[order]) != 0)))
    ends = np.append(starts[1:], len(order)) - 1
    run = np.repeat(np.arange(len(starts)), ends - starts + 1)
    alive = places > np.maximum.reduceat(np.where(tomb, places, -1), starts)[run]
    sizes = np.full(len(starts), -1, np.int64)
    np.maximum.at(sizes, run[alive], size[alive])
    is_live = sizes >= 0
    took_away = (ends > starts) & ~tomb[np.maximum(ends - 1, 0)]
    kept = is_live | ~took_away
    return order[starts][kept], np.where(is_live, sizes, 0)[kept], ~is_live[kept]
