"""The hash of the simple bucket index, as Java computes it, and the values of a record key that it is taken of."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.keygen.spec import EMPTY_KEY_PART, NULL_KEY_PART
from pyhudi.metadata.keys import java_hash as java_hashes

_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
# a value ends at the last comma before the colon of the next part
PARTS = re.compile(",(?=[^,:]*:)")


def java_hash(text: str) -> int:
    """Java's ``String.hashCode`` as an unsigned number: over UTF-16 units, of 32 bits."""
    h = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(data[::2], data[1::2], strict=True):
        h = (h * 31 + (high << 8) + low) & _MASK
    return h


def list_hash(values: Sequence[str]) -> int:
    """Java's ``List<String>.hashCode``, without the sign's bit. A null counts as an empty text does."""
    h = 1
    for value in values:
        h = (h * 31 + java_hash(value)) & _MASK
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
    count = len(record_fields)
    clean = pc.and_(pc.equal(pc.count_substring(keys, ","), count - 1), pc.equal(pc.count_substring(keys, ":"), count))
    if count > 1 and pc.all(clean).as_py():
        # the separators are between and in the parts only
        parts = pc.list_flatten(pc.split_pattern(keys, ","))
        return _combined(
            [
                _values(parts.take(pa.array(np.arange(i, len(parts), count))))
                for i, f in enumerate(record_fields)
                if f in fields
            ]
        )
    values = [list_hash(hash_values(key, fields, splits_any=splits_any)) for key in keys.to_pylist()]
    return np.array(values, dtype=np.int64)


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
