"""Hash of the base path of a table: the name of its lock in services that several tables share."""

from __future__ import annotations

import xxhash

from pyhudi.metadata.records.metadata_keys import HASH_SEED
from pyhudi.storage import Storage, is_remote


def base_path_hash(storage: Storage) -> str:
    """Return the hash that Apache Hudi's lock providers with implicit names take.

    Apache Hudi hashes the path as its user writes it, local ones with or without ``file:``; here they are without.
    """
    base = storage.uri() if is_remote(storage) else storage.root.removeprefix("file://")
    base = base.replace("s3a://", "s3://", 1).rstrip("/")
    return xxhash.xxh64_hexdigest(base.encode(), HASH_SEED).upper()
