"""Two versions of the statistics of the same columns and files made one, row by row."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.metadata.stats_values import VALUE

_SUMS = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")


def merge_stats(old: pa.StructArray, new: pa.StructArray) -> pa.StructArray:
    """Return the newer statistics where they stand for themselves, and what covers both elsewhere.

    They stand for themselves if either is a deletion or the newer one has tight bounds. Bounds of different types, or
    of decimals as bytes, cannot be put together here; then nothing is known: no bounds, and no count of nulls.
    """
    alone = _flag(new, "isDeleted", True)
    for flag in (_flag(old, "isDeleted", True), _flag(new, "isTightBound", False)):
        alone = pc.or_(alone, flag)
    names = [field.name for field in new.type]
    clash = pa.repeat(pa.scalar(False), len(new))
    children: dict[str, pa.Array] = {name: new.field(name) for name in names}
    for name, least in (("minValue", True), ("maxValue", False)):
        if name in children:
            children[name], bad = _bound(old.field(name), new.field(name), _decimal_rows(old, new), least)
            clash = pc.or_(clash, bad)
    for name in ("minValue", "maxValue"):
        if name in children:
            children[name] = pc.if_else(clash, pa.scalar(None, children[name].type), children[name])
    for name in _SUMS:
        if name in children:
            total = pc.add(pc.fill_null(old.field(name), 0), pc.fill_null(new.field(name), 0))
            children[name] = total if name != "nullCount" else pc.if_else(clash, pa.scalar(None, pa.int64()), total)
    if "valueType" in children:
        none = pc.fill_null(pc.equal(pc.struct_field(new.field("valueType"), "typeOrdinal"), 1), True)
        children["valueType"] = pc.if_else(none, old.field("valueType"), new.field("valueType"))
    both = pa.StructArray.from_arrays(list(children.values()), fields=list(new.type))
    return pc.if_else(alone, new, both)


def _flag(stats: pa.StructArray, name: str, otherwise: bool) -> pa.Array:
    if stats.type.get_field_index(name) < 0:
        return pa.repeat(pa.scalar(otherwise), len(stats))
    return pc.fill_null(stats.field(name), otherwise)


def _decimal_rows(old: pa.StructArray, new: pa.StructArray) -> pa.Array:
    """Rows with decimals as bytes, whose order is not that of bytes."""
    found = pa.repeat(pa.scalar(False), len(new))
    for stats in (old, new):
        if stats.type.get_field_index("valueType") >= 0:
            ordinal = pc.struct_field(stats.field("valueType"), "typeOrdinal")
            found = pc.or_(found, pc.fill_null(pc.equal(ordinal, 10), False))
    return found


def _bound(old: pa.StructArray, new: pa.StructArray, decimal: pa.Array, least: bool) -> tuple[pa.Array, pa.Array]:
    """The lesser or greater of two bounds, and where there is none because they cannot be compared."""
    choose = pc.min_element_wise if least else pc.max_element_wise
    members, held = [], pa.repeat(pa.scalar(0), len(new))
    known = {True: pa.repeat(pa.scalar(False), len(new)), False: pa.repeat(pa.scalar(False), len(new))}
    for i, field in enumerate(new.type):
        mine, other = new.field(i), old.field(i)
        known[True] = pc.or_(known[True], _there(new, mine))
        known[False] = pc.or_(known[False], _there(old, other))
        there = pc.or_(_there(new, mine), _there(old, other))
        held = pc.add(held, there.cast(pa.int64()))
        if not pa.types.is_struct(field.type) or field.type[0].name != VALUE or not pc.any(there).as_py():
            # lists are not compared
            members.append(pa.nulls(len(new), field.type))
            held = pc.add(held, pc.multiply(there.cast(pa.int64()), 1))
            continue
        values = choose(_value(old, other), _value(new, mine))
        inner = pa.StructArray.from_arrays([values], fields=list(field.type), mask=pc.invert(there))
        members.append(inner)
    bad = pc.or_(pc.greater(held, 1), pc.and_(decimal, pc.and_(old.is_valid(), new.is_valid())))
    # a value that is not among the members decoded
    for union, found in ((new, known[True]), (old, known[False])):
        bad = pc.or_(bad, pc.and_(union.is_valid(), pc.invert(found)))
    nothing = pc.and_(old.is_null(), new.is_null())
    return pa.StructArray.from_arrays(members, fields=list(new.type), mask=nothing), bad


def _there(union: pa.StructArray, member: pa.Array) -> pa.Array:
    return pc.and_(union.is_valid(), member.is_valid())


def _value(union: pa.StructArray, member: pa.StructArray) -> pa.Array:
    return pc.if_else(_there(union, member), member.field(0), pa.scalar(None, member.type[0].type))
