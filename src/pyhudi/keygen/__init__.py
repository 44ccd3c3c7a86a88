"""Record keys and partition paths: what they are made of, and paths read back."""

from __future__ import annotations

from pyhudi.config.values import TimestampType
from pyhudi.keygen.paths import decode_partition_paths, partition_fields, partition_texts
from pyhudi.keygen.spec import DEFAULT_PARTITION, EMPTY_KEY_PART, NULL_KEY_PART, KeyConfig, KeySpec
from pyhudi.keygen.timestamps import TimestampSpec

__all__ = [
    "DEFAULT_PARTITION",
    "EMPTY_KEY_PART",
    "NULL_KEY_PART",
    "KeyConfig",
    "KeySpec",
    "TimestampSpec",
    "TimestampType",
    "decode_partition_paths",
    "partition_fields",
    "partition_texts",
]
