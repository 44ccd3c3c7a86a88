"""The hash of the simple bucket index, as Java computes it, and the values of a record key that it is taken of."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyhudi.keygen.spec import EMPTY_KEY_PART, NULL_KEY_PART

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
