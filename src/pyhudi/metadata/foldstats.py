"""Statistics of one column, several versions of them, put together: the rule of docs/format/metadata.md, section 2.2.

A version that is exact, or says that there is nothing any more, stands for all before it; others widen what was there.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.decimals import decimals_from_bytes
from pyhudi.metadata.stats_values import DOUBLE, FLOAT, INT, LONG

Index = npt.NDArray[np.int64]
_SUMS = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
_ENDS = (("minValue", False), ("maxValue", True))
_DECIMAL_TYPE = 10
_PROMOTIONS = ((INT, LONG), (INT, FLOAT), (INT, DOUBLE), (LONG, FLOAT), (LONG, DOUBLE), (FLOAT, DOUBLE))
_WIDEST = pa.decimal128(38, 0)


def fold_statistics(payload: pa.StructArray, groups: Index) -> pa.StructArray:
    """Fold the versions of each group: ``groups`` are numbers from 0, ascending; versions are the oldest first. One row
    for each group comes back."""
    starts = np.flatnonzero(np.append(True, np.diff(groups) != 0))
    ends = np.append(starts[1:], len(groups))
    state = payload.take(pa.array(starts))
    for step in range(1, int((ends - starts).max(initial=0))):
        some = np.flatnonzero(ends - starts > step)
        merged = _merged(state.take(pa.array(some)), payload.take(pa.array(starts[some] + step)))
        places = np.arange(len(state))
        places[some] = len(state) + np.arange(len(some))
        state = pa.concat_arrays([state, merged]).take(pa.array(places))
    return state


def _merged(old: pa.StructArray, new: pa.StructArray) -> pa.StructArray:
    old = _promoted(old, new)
    names = new.type.names
    replaces = pc.or_(_flag(old, "isDeleted"), _flag(new, "isDeleted"))
    if "isTightBound" in names:
        replaces = pc.or_(replaces, _flag(new, "isTightBound"))
    columns = {name: pc.struct_field(new, name) for name in names}
    for name in _SUMS:
        before = pc.fill_null(pc.struct_field(old, name), 0)
        columns[name] = pc.if_else(replaces, columns[name], pc.add(pc.fill_null(columns[name], 0), before))
    for name, greatest in _ENDS:
        earlier = _taken_from_old(old, new, name, greatest=greatest)
        mine = np.where(earlier & ~replaces.to_numpy(zero_copy_only=False), 0, len(new)) + np.arange(len(new))
        both = pa.concat_arrays([pc.struct_field(old, name), columns[name]])
        columns[name] = both.take(pa.array(mine))
    if "valueType" in names:
        # of versions without values the type is that of nothing
        empty = pc.is_null(pc.struct_field(new, "minValue"))
        use_old = pc.and_(empty, pc.invert(replaces)).to_numpy(zero_copy_only=False)
        both = pa.concat_arrays([pc.struct_field(old, "valueType"), columns["valueType"]])
        columns["valueType"] = both.take(pa.array(np.where(use_old, 0, len(new)) + np.arange(len(new))))
    return pa.StructArray.from_arrays([columns[name] for name in names], fields=list(new.type))


def _promoted(old: pa.StructArray, new: pa.StructArray) -> pa.StructArray:
    """The older versions with numbers in the wrappers of the newer ones: the column may have got a wider type since."""
    columns = {name: pc.struct_field(old, name) for name in old.type.names}
    for name, _ in _ENDS:
        before, after = columns[name], pc.struct_field(new, name)
        members = [before.field(i) for i in range(before.type.num_fields)]
        for i, j in _PROMOTIONS:
            at = pc.and_(members[i].is_valid(), after.field(j).is_valid())
            if not pc.any(at).as_py():
                continue
            wider = pc.struct_field(members[i], [0]).cast(members[j].type.field(0).type, safe=False)
            moved = pa.StructArray.from_arrays([wider], fields=list(members[j].type), mask=pc.invert(at))
            members[j] = pc.if_else(at, moved, members[j])
            members[i] = pc.if_else(at, pa.scalar(None, members[i].type), members[i])
        columns[name] = pa.StructArray.from_arrays(members, fields=list(before.type), mask=before.is_null())
    return pa.StructArray.from_arrays(list(columns.values()), fields=list(old.type))


def _taken_from_old(old: pa.StructArray, new: pa.StructArray, name: str, *, greatest: bool) -> npt.NDArray[np.bool_]:
    """Where the older version's value is the one to be kept."""
    before, after = pc.struct_field(old, name), pc.struct_field(new, name)
    kept: npt.NDArray[np.bool_] = after.is_null().to_numpy(zero_copy_only=False).copy()
    decimals = _decimals(new) & _decimals(old)
    for i in range(before.type.num_fields):
        left, right = before.field(i), after.field(i)
        both = pc.and_(pc.and_(left.is_valid(), right.is_valid()), pc.and_(before.is_valid(), after.is_valid()))
        at = np.flatnonzero(both.to_numpy(zero_copy_only=False))
        if not len(at) or left.type.num_fields != 1 or pa.types.is_list(left.type.field(0).type):
            continue
        a, b = (pc.struct_field(side, [0]).take(pa.array(at)) for side in (left, right))
        wins = _goes_further(a, b, greatest=greatest)
        as_numbers = np.flatnonzero(decimals[at])
        if pa.types.is_binary(a.type) and len(as_numbers):
            numbers = (decimals_from_bytes(side.take(pa.array(as_numbers)), _WIDEST) for side in (a, b))
            wins = wins.copy()
            wins[as_numbers] = _goes_further(*numbers, greatest=greatest)
        kept[at] = wins
    return kept


def _goes_further(a: pa.Array, b: pa.Array, *, greatest: bool) -> npt.NDArray[np.bool_]:
    """Where ``a`` is less (or greater) than ``b``; NaN is the greatest of all."""
    found = (pc.greater if greatest else pc.less)(a, b)
    if pa.types.is_floating(a.type):
        found = pc.or_(found, pc.is_nan(a) if greatest else pc.and_not(pc.is_nan(b), pc.is_nan(a)))
    result: npt.NDArray[np.bool_] = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
    return result


def _decimals(payload: pa.StructArray) -> npt.NDArray[np.bool_]:
    """Which rows have decimals as bytes."""
    if "valueType" not in payload.type.names:
        return np.zeros(len(payload), np.bool_)
    kinds = pc.struct_field(payload, ["valueType", "typeOrdinal"])
    found: npt.NDArray[np.bool_] = pc.fill_null(pc.equal(kinds, _DECIMAL_TYPE), False).to_numpy(zero_copy_only=False)
    return found


def _flag(payload: pa.StructArray, name: str) -> pa.Array:
    return pc.fill_null(pc.struct_field(payload, name), False)
