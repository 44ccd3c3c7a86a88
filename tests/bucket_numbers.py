"""Numbers of buckets, one key at a time."""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.index.bucket_hash import hashed_values, java_list_hash


def bucket_of(key: str, fields: Sequence[str], buckets: int, *, legacy_key_split: bool = False) -> int:
    """Return the bucket of a record key, from 0."""
    return java_list_hash(hashed_values(key, fields, legacy_key_split=legacy_key_split)) % buckets
