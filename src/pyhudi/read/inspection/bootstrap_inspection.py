"""Source files of a table that was bootstrapped by metadata only."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from pyhudi.storage import Storage
from pyhudi.table.bootstrap_index import BootstrapIndex

BOOTSTRAP_MAPPING_SCHEMA = pa.schema(
    [
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("source_base_path", pa.string()),
        ("source_partition", pa.string()),
        ("source_file", pa.string()),
        ("source_size", pa.int64()),
    ]
)
"""One row per skeleton file that the bootstrap has written, ordered by partition and file id. ``source_file`` is the
URI of the file with the other columns, ``source_size`` its bytes at the time of the bootstrap (null if unknown)."""
BOOTSTRAP_PARTITIONS_SCHEMA = pa.schema([("partition", pa.string())])
"""One row per partition with skeleton files, sorted."""


def bootstrap_mapping(
    storage: Storage, partition: str | None = None, file_ids: Collection[str] | None = None
) -> pa.Table:
    """Return the source files of skeleton files (`BOOTSTRAP_MAPPING_SCHEMA`); none without a bootstrap index.

    Args:
        storage: Storage of the table.
        partition: Partition of the skeleton files; None: all.
        file_ids: Their file groups; None: all.

    Raises:
        FormatError: The index is corrupt.
    """
    index = BootstrapIndex(storage)
    if not index.exists():
        return BOOTSTRAP_MAPPING_SCHEMA.empty_table()
    base = index.source_base_path()
    rows = [
        (source.partition, source.file_id, base, source.source_partition, source.uri, source.size)
        for source in index.sources()
        if partition in (None, source.partition) and (file_ids is None or source.file_id in file_ids)
    ]
    columns = zip(*rows, strict=True) if rows else [()] * len(BOOTSTRAP_MAPPING_SCHEMA)
    return pa.table(list(columns), schema=BOOTSTRAP_MAPPING_SCHEMA)


def bootstrap_partitions(storage: Storage) -> pa.Table:
    """Return the partitions with skeleton files (`BOOTSTRAP_PARTITIONS_SCHEMA`); none without a bootstrap index.

    Raises:
        FormatError: The index is corrupt.
    """
    index = BootstrapIndex(storage)
    found = index.partitions() if index.exists() else []
    return pa.table([found], schema=BOOTSTRAP_PARTITIONS_SCHEMA)
