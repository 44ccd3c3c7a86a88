"""Names of the meta columns, where the readers and writers of data files look for them; see `pyhudi.schema.columns`."""

from __future__ import annotations

from pyhudi.schema.columns import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    FILE_NAME,
    META_COLUMNS,
    OPERATION,
    PARTITION_PATH,
    RECORD_KEY,
)

__all__ = [
    "COMMIT_SEQNO",
    "COMMIT_TIME",
    "FILE_NAME",
    "META_COLUMNS",
    "OPERATION",
    "PARTITION_PATH",
    "RECORD_KEY",
]
