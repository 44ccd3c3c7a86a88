"""Hash of the simple bucket index, as computed by Java, and the hashed values of a record key."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.java_hash import java_hashes
from pyhudi.keygen.key_spec import EMPTY_KEY_PART, NULL_KEY_PART

_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
# A value ends at the last comma before the colon of the next part.
PARTS = re.compile(",(?=[^,:]*:)")


def java_list_hash(values: Sequence[str]) -> int:
    """Return Java's ``List<String>.hashCode`` without the sign bit. A null is hashed like an empty text."""
    h = 1
    for code in java_hashes(pa.array(values, pa.string())).view(np.uint32).tolist():
        h = (h * 31 + code) & _MASK
    return h & _POSITIVE


def hashed_values(key: str, fields: Sequence[str], *, legacy_key_split: bool = False) -> list[str]:
    """Return the texts that are hashed for a record key: its values of the ``fields``.

    A key with commas and colons is split into ``field:value`` parts, any other is one value. ``legacy_key_split``: a
    colon suffices, as in release 0.15.
    """
    if ":" not in key or not (legacy_key_split or "," in key):
        return [key]
    pairs = [part.partition(":") for part in PARTS.split(key)]
    return [hashed_value(value) for name, _, value in pairs if name in fields]


def hashed_value(part: str) -> str:
    """Return the value of a part of a key; nulls are hashed like empty texts."""
    return "" if part in (NULL_KEY_PART, EMPTY_KEY_PART) else part


def bucket_hashes(
    keys: pa.Array, record_fields: Sequence[str], fields: Sequence[str], *, legacy_key_split: bool = False
) -> npt.NDArray[np.int64]:
    """Return the hashes of record keys that consist of ``record_fields``, by their values of the ``fields``: vectorised
    `java_list_hash` of `hashed_values`."""
    named = _have_names(keys, legacy_key_split=legacy_key_split)
    if not pc.any(named).as_py():
        return _list_hashes_of_columns([keys])
    parts = _split_keys(keys, record_fields)
    if parts is not None:
        return _list_hashes_of_columns(
            [_part_values(part) for part, field in zip(parts, record_fields, strict=True) if field in fields]
        )
    rows, values = hashed_values_of_keys(keys, fields, legacy_key_split=legacy_key_split)
    unset = pc.is_in(values, value_set=pa.array([NULL_KEY_PART, EMPTY_KEY_PART]))
    return _list_hashes_of_entries(rows, java_hashes(pc.if_else(unset, "", values)).view(np.uint32), len(keys))


def _have_names(keys: pa.Array, *, legacy_key_split: bool) -> pa.BooleanArray:
    """Return a mask of the keys in which values have the names of their fields (``field:value``)."""
    named = pc.match_substring(keys, ":")
    return named if legacy_key_split else pc.and_(named, pc.match_substring(keys, ","))


def _split_keys(keys: pa.Array, fields: Sequence[str]) -> list[pa.Array] | None:
    """Split keys into one column per field if separators occur nowhere else: ``field:value`` parts in the order of
    ``fields``, without commas and colons in values. None if some key does not have this form."""
    count = len(fields)
    if count < 2 or not pc.all(pc.equal(pc.count_substring(keys, ","), count - 1)).as_py():
        return None
    parts = pc.list_flatten(pc.split_pattern(keys, ","))
    if not pc.all(pc.equal(pc.count_substring(parts, ":"), 1)).as_py():
        return None
    columns = [parts.take(pa.array(np.arange(i, len(parts), count))) for i in range(count)]
    ordered = all(pc.all(pc.starts_with(c, f"{f}:")).as_py() for c, f in zip(columns, fields, strict=True))
    return columns if ordered else None


def hashed_values_of_keys(
    keys: pa.Array, fields: Collection[str], *, legacy_key_split: bool
) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Vectorised `hashed_values`: return the row numbers of the keys, ascending, and the values in the keys."""
    named = _have_names(keys, legacy_key_split=legacy_key_split)
    if not pc.any(named).as_py():
        return np.arange(len(keys)), keys
    mark = next(c for c in map(chr, range(1, 0xD800)) if c != "\\" and not pc.any(pc.match_substring(keys, c)).as_py())
    lists = pc.split_pattern(pc.replace_substring_regex(keys, ",([^,:]*:)", mark + r"\1"), mark)
    parts, of = pc.list_flatten(lists), pc.list_parent_indices(lists)
    named = named.take(of)
    pairs = pc.extract_regex(parts, "(?s)^(?P<name>[^:]*):?(?P<value>.*)$")
    is_selected = pc.is_in(pc.struct_field(pairs, "name"), value_set=pa.array([*fields], pa.string()))
    kept = pc.or_(pc.invert(named), is_selected)
    values = pc.if_else(named, pc.struct_field(pairs, "value"), parts)
    return of.filter(kept).to_numpy(zero_copy_only=False).astype(np.int64), values.filter(kept)


def _list_hashes_of_entries(
    rows: npt.NDArray[np.int64], hashes: npt.NDArray[np.uint32], count: int
) -> npt.NDArray[np.int64]:
    """Return Java's ``List.hashCode``, without the sign bit, of lists whose entries have these hashes. ``rows`` are the
    ascending list numbers of the entries."""
    lengths = np.bincount(rows, minlength=count)
    places = np.arange(len(rows)) - (np.cumsum(lengths) - lengths)[rows]
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(np.bincount(places)) if len(rows) else np.zeros(0, np.int64)
    result, start = np.ones(count, dtype=np.uint32), 0
    for end in ends:
        at = order[start:end]
        result[rows[at]] = result[rows[at]] * np.uint32(31) + hashes[at]
        start = int(end)
    return (result & np.uint32(_POSITIVE)).astype(np.int64)


def _part_values(parts: pa.Array) -> pa.Array:
    """Return the values in parts of a key, all of one field."""
    values = pc.struct_field(pc.extract_regex(parts, "(?s)^[^:]*:(?P<value>.*)$"), "value")
    unset = pc.is_in(values, value_set=pa.array([NULL_KEY_PART, EMPTY_KEY_PART]))
    return pc.if_else(unset, "", values)


def _list_hashes_of_columns(columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
    """Return Java's ``List.hashCode`` of texts row by row, without the sign bit."""
    result = np.ones(len(columns[0]), dtype=np.uint32)
    for column in columns:
        result = result * np.uint32(31) + java_hashes(column).view(np.uint32)
    return (result & np.uint32(_POSITIVE)).astype(np.int64)
