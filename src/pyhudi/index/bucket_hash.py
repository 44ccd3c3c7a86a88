"""The hash of the simple bucket index, as Java computes it, and the values of a record key that it is taken of."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.keygen.key_spec import EMPTY_KEY_PART, NULL_KEY_PART
from pyhudi.metadata.records.metadata_keys import java_hashes

_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
# a value ends at the last comma before the colon of the next part
PARTS = re.compile(",(?=[^,:]*:)")


def list_hash(values: Sequence[str]) -> int:
    """Java's ``List<String>.hashCode``, without the sign's bit. A null counts as an empty text does."""
    h = 1
    for code in java_hashes(pa.array(values, pa.string())).view(np.uint32).tolist():
        h = (h * 31 + code) & _MASK
    return h & _POSITIVE


def hash_values(key: str, fields: Sequence[str], *, splits_any: bool = False) -> list[str]:
    """The values of a record key that its bucket is chosen by, those of the ``fields``.

    A key with commas and colons is taken for ``field:value`` parts, any other is one value. ``splits_any``: a colon is
    enough, as in release 0.15.
    """
    if ":" not in key or not (splits_any or "," in key):
        return [key]
    pairs = [part.partition(":") for part in PARTS.split(key)]
    return [value_of(value) for name, _, value in pairs if name in fields]


def value_of(part: str) -> str:
    """The value that a part of a key stands for; nulls are hashed as empty texts are."""
    return "" if part in (NULL_KEY_PART, EMPTY_KEY_PART) else part


def bucket_of(key: str, fields: Sequence[str], buckets: int, *, splits_any: bool = False) -> int:
    """The bucket of a record key, from 0."""
    return list_hash(hash_values(key, fields, splits_any=splits_any)) % buckets


def hashes_of(
    keys: pa.Array, record_fields: Sequence[str], fields: Sequence[str], *, splits_any: bool = False
) -> npt.NDArray[np.int64]:
    """The hashes of record keys that are made of ``record_fields``, by their values of the ``fields``: what `list_hash`
    says of `hash_values`, for whole columns."""
    named = pc.match_substring(keys, ":")
    if not splits_any:
        named = pc.and_(named, pc.match_substring(keys, ","))
    if not pc.any(named).as_py():
        return _combined([keys])
    parts = _parts(keys, record_fields)
    if parts is not None:
        return _combined([_values(part) for part, field in zip(parts, record_fields, strict=True) if field in fields])
    rows, values = values_of(keys, fields, splits_any=splits_any)
    unset = pc.is_in(values, value_set=pa.array([NULL_KEY_PART, EMPTY_KEY_PART]))
    return _folded(rows, java_hashes(pc.if_else(unset, "", values)).view(np.uint32), len(keys))


def _parts(keys: pa.Array, fields: Sequence[str]) -> list[pa.Array] | None:
    """Split keys into one column a field where the separators are nowhere else: ``field:value`` parts in the order of
    ``fields``, without commas and colons in values; None if some key is not like that."""
    count = len(fields)
    if count < 2 or not pc.all(pc.equal(pc.count_substring(keys, ","), count - 1)).as_py():
        return None
    parts = pc.list_flatten(pc.split_pattern(keys, ","))
    if not pc.all(pc.equal(pc.count_substring(parts, ":"), 1)).as_py():
        return None
    columns = [parts.take(pa.array(np.arange(i, len(parts), count))) for i in range(count)]
    ordered = all(pc.all(pc.starts_with(c, f"{f}:")).as_py() for c, f in zip(columns, fields, strict=True))
    return columns if ordered else None


def values_of(
    keys: pa.Array, fields: Collection[str], *, splits_any: bool = False
) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Return for whole columns what `hash_values` gives for each key: the numbers of the keys, ascending, and their
    values as they are in the keys."""
    named = pc.match_substring(keys, ":")
    if not splits_any:
        named = pc.and_(named, pc.match_substring(keys, ","))
    if not pc.any(named).as_py():
        return np.arange(len(keys)), keys
    mark = next(c for c in map(chr, range(1, 0xD800)) if c != "\\" and not pc.any(pc.match_substring(keys, c)).as_py())
    lists = pc.split_pattern(pc.replace_substring_regex(keys, ",([^,:]*:)", mark + r"\1"), mark)
    parts, of = pc.list_flatten(lists), pc.list_parent_indices(lists)
    named = named.take(of)
    pairs = pc.extract_regex(parts, "(?s)^(?P<name>[^:]*):?(?P<value>.*)$")
    wanted = pc.is_in(pc.struct_field(pairs, "name"), value_set=pa.array([*fields], pa.string()))
    kept = pc.or_(pc.invert(named), wanted)
    values = pc.if_else(named, pc.struct_field(pairs, "value"), parts)
    return of.filter(kept).to_numpy(zero_copy_only=False).astype(np.int64), values.filter(kept)


def _folded(rows: npt.NDArray[np.int64], hashes: npt.NDArray[np.uint32], count: int) -> npt.NDArray[np.int64]:
    """Java's ``List.hashCode`` of lists whose entries have these hashes, of the ascending numbers of which ``rows``
    says how long they are; without the sign's bit."""
    lengths = np.bincount(rows, minlength=count)
    places = np.arange(len(rows)) - (np.cumsum(lengths) - lengths)[rows]
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(np.bincount(places)) if len(rows) else np.zeros(0, np.int64)
    found, start = np.ones(count, dtype=np.uint32), 0
    for end in ends:
        at = order[start:end]
        found[rows[at]] = found[rows[at]] * np.uint32(31) + hashes[at]
        start = int(end)
    return (found & np.uint32(_POSITIVE)).astype(np.int64)


def _values(parts: pa.Array) -> pa.Array:
    """The values in parts of a key, all of one field."""
    values = pc.struct_field(pc.extract_regex(parts, "(?s)^[^:]*:(?P<value>.*)$"), "value")
    unset = pc.is_in(values, value_set=pa.array([NULL_KEY_PART, EMPTY_KEY_PART]))
    return pc.if_else(unset, "", values)


def _combined(columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
    """Java's ``List.hashCode`` of texts row by row, without the sign's bit."""
    found = np.ones(len(columns[0]), dtype=np.uint32)
    for column in columns:
        found = found * np.uint32(31) + java_hashes(column).view(np.uint32)
    return (found & np.uint32(_POSITIVE)).astype(np.int64)
