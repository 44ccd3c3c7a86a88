"""Record keys and partition paths.

Takes table properties and options and returns an engine-independent specification. Decodes partition paths to values.
"""

from __future__ import annotations

from pyhudi.config.enums import TimestampType
from pyhudi.keygen.key_spec import DEFAULT_PARTITION, EMPTY_KEY_PART, NULL_KEY_PART, KeyConfig, KeySpec
from pyhudi.keygen.partition_value_extractor import decode_partition_paths, partition_fields, partition_texts
from pyhudi.keygen.timestamp_settings import TimestampSpec

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
