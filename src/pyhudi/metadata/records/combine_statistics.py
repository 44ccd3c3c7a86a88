"""Combination of several versions of a column's statistics, by the rule of docs/format/metadata.md, section 2.2.

An exact version, or one that is deleted, replaces all earlier ones; others widen the existing bounds. If bounds cannot
be compared, or are unknown in one version although there are values, the result is unknown: no bounds and no null
count, so that nothing is pruned.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import numpy_mask
from pyhudi.format.decimals import decimals_from_bytes
from pyhudi.metadata.records.stats_values import DECIMAL_TYPE, DOUBLE, FLOAT, INT, LONG
from pyhudi.schema.type_conversion import convert

Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_SUMS = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
_ENDS = (("minValue", False), ("maxValue", True))
_PROMOTIONS = ((INT, LONG), (INT, FLOAT), (INT, DOUBLE), (LONG, FLOAT), (LONG, DOUBLE), (FLOAT, DOUBLE))
_NUMBER_TYPES = pa.array([3, 4, 5, 6], pa.int32())
"""Type numbers in ``valueType`` whose values are comparable with each other."""
_WIDEST = pa.decimal128(38, 0)


def fold_statistics(payload: pa.StructArray, groups: Index) -> pa.StructArray:
    """Fold the versions of each group. ``groups`` are ascending numbers from 0; versions are ordered, oldest first.
    Returns one row per group."""
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
    replaces = _flag(old, "isDeleted") | _flag(new, "isDeleted") | _flag(new, "isTightBound")
    columns = {name: pc.struct_field(new, name) for name in names}
    from_old, is_unknown = {}, _unknown(old) | _unknown(new)
    for name, greatest in _ENDS:
        from_old[name], clash = _older_exceeds(old, new, name, greatest=greatest)
        is_unknown |= clash
    is_unknown &= ~replaces
    for name, mask in from_old.items():
        columns[name] = _select(old, new, name, mask & ~replaces, is_unknown)
    for name in _SUMS:
        total = pc.add(pc.fill_null(columns[name], 0), pc.fill_null(pc.struct_field(old, name), 0))
        columns[name] = pc.if_else(pa.array(replaces), columns[name], total)
    columns["nullCount"] = pc.if_else(pa.array(is_unknown), pa.scalar(None, pa.int64()), columns["nullCount"])
    if "valueType" in names:
        # Versions without values have no type.
        empty = numpy_mask(pc.struct_field(new, "minValue").is_null())
        columns["valueType"] = _select(old, new, "valueType", empty & ~replaces, np.zeros(len(new), np.bool_))
    return pa.StructArray.from_arrays([columns[name] for name in names], fields=list(new.type))


def _select(old: pa.StructArray, new: pa.StructArray, name: str, from_old: Mask, is_unknown: Mask) -> pa.Array:
    """Return a field of the older or the newer version, or null."""
    old_and_new = pa.concat_arrays([pc.struct_field(old, name), pc.struct_field(new, name)])
    return old_and_new.take(pa.array(np.where(from_old, 0, len(new)) + np.arange(len(new)), mask=is_unknown))


def _promoted(old: pa.StructArray, new: pa.StructArray) -> pa.StructArray:
    """Return the older versions with numbers in the wrappers of the newer ones, because the column may have a wider
    type since."""
    columns = {name: pc.struct_field(old, name) for name in old.type.names}
    for name, _ in _ENDS:
        before, after = columns[name], pc.struct_field(new, name)
        members = [before.field(i) for i in range(before.type.num_fields)]
        for i, j in _PROMOTIONS:
            at = pc.and_(members[i].is_valid(), after.field(j).is_valid())
            if not pc.any(at).as_py():
                continue
            wider = convert(pc.struct_field(members[i], [0]), members[j].type.field(0).type)
            moved = pa.StructArray.from_arrays([wider], fields=list(members[j].type), mask=pc.invert(at))
            members[j] = pc.if_else(at, moved, members[j])
            members[i] = pc.if_else(at, pa.scalar(None, members[i].type), members[i])
        columns[name] = pa.StructArray.from_arrays(members, fields=list(before.type), mask=before.is_null())
    return pa.StructArray.from_arrays(list(columns.values()), fields=list(old.type))


def _older_exceeds(old: pa.StructArray, new: pa.StructArray, name: str, *, greatest: bool) -> tuple[Mask, Mask]:
    """Return a mask of the rows whose older value is kept, and a mask of those where the two are not comparable."""
    before, after = pc.struct_field(old, name), pc.struct_field(new, name)
    kept = numpy_mask(after.is_null()).copy()
    both_valid = numpy_mask(pc.and_(before.is_valid(), after.is_valid()))
    compared = np.zeros(len(new), np.bool_)
    same, decimals = _same_types(old, new), _decimals(new) & _decimals(old)
    for i in range(before.type.num_fields):
        left, right = before.field(i), after.field(i)
        at = np.flatnonzero(both_valid & same & numpy_mask(pc.and_(left.is_valid(), right.is_valid())))
        if not len(at) or left.type.num_fields != 1 or pa.types.is_list(left.type.field(0).type):
            continue
        a, b = (pc.struct_field(side, [0]).take(pa.array(at)) for side in (left, right))
        wins = _exceeds(a, b, greatest=greatest)
        as_numbers = np.flatnonzero(decimals[at])
        if pa.types.is_binary(a.type) and len(as_numbers):
            numbers = (decimals_from_bytes(side.take(pa.array(as_numbers)), _WIDEST) for side in (a, b))
            wins = wins.copy()
            wins[as_numbers] = _exceeds(*numbers, greatest=greatest)
        kept[at] = wins
        compared[at] = True
    return kept, both_valid & ~compared


def _exceeds(a: pa.Array, b: pa.Array, *, greatest: bool) -> Mask:
    """Return a mask of the rows where ``a`` is less (or greater) than ``b``; NaN is the greatest."""
    further = (pc.greater if greatest else pc.less)(a, b)
    if pa.types.is_floating(a.type):
        further = pc.or_(further, pc.is_nan(a) if greatest else pc.and_not(pc.is_nan(b), pc.is_nan(a)))
    return numpy_mask(further)


def _unknown(payload: pa.StructArray) -> Mask:
    """Return a mask of the rows that have values but no bounds."""
    bounded = pc.and_(*(pc.struct_field(payload, name).is_valid() for name, _ in _ENDS))
    values = pc.struct_field(payload, "valueCount")
    # In expression indexes nulls are not counted among the values.
    nothing = pc.or_(pc.equal(values, pc.struct_field(payload, "nullCount")), pc.equal(values, 0))
    return ~(numpy_mask(bounded) | numpy_mask(nothing))


def _same_types(old: pa.StructArray, new: pa.StructArray) -> Mask:
    """Return a mask of the rows whose types are comparable, if both are known."""
    if "valueType" not in new.type.names:
        return np.ones(len(new), np.bool_)
    numbers = [pc.struct_field(side, ["valueType", "typeOrdinal"]) for side in (old, new)]
    remarks = [pc.fill_null(pc.struct_field(side, ["valueType", "additionalInfo"]), "") for side in (old, new)]
    plain = pc.and_(*(pc.is_in(side, value_set=_NUMBER_TYPES) for side in numbers))
    same = pc.or_(plain, pc.and_(pc.equal(*numbers), pc.equal(*remarks)))
    unnamed = pc.or_(*(side.is_null() for side in numbers))
    return numpy_mask(pc.or_(unnamed, pc.fill_null(same, False)))


def _decimals(payload: pa.StructArray) -> Mask:
    """Return a mask of the rows that hold decimals as bytes."""
    if "valueType" not in payload.type.names:
        return np.zeros(len(payload), np.bool_)
    return numpy_mask(pc.equal(pc.struct_field(payload, ["valueType", "typeOrdinal"]), DECIMAL_TYPE))


def _flag(payload: pa.StructArray, name: str) -> Mask:
    if name not in payload.type.names:
        return np.zeros(len(payload), np.bool_)
    return numpy_mask(pc.struct_field(payload, name))
