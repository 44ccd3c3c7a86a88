"""Cache of looked-up records of the metadata table, by their files, which do not change.

Every plan requests the same lists of files, and plans of similar queries the statistics of the same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import pyarrow as pa

from pyhudi.metadata.file_groups.hfile_sources import CACHE, MetadataSlice

_KEPT_BYTES = 8 * 1024 * 1024
"""Bytes of records up to which they are kept: more would evict file blocks, which are in the same cache."""


def cached_records(
    root: str, version: int, groups: Sequence[MetadataSlice], request: Hashable, look_up: Callable[[], pa.Table]
) -> pa.Table:
    """Return records from the cache, or look them up.

    Args:
        root: Root of the table.
        version: Version of the table, which decides on the columns.
        groups: The file groups that are read.
        request: What is looked up in them.
        look_up: Looks the records up.
    """
    files = tuple(file for group in groups for file in group.files)
    name = (root, version, files, request)
    table: pa.Table | None = CACHE.find(name)
    if table is None:
        table = look_up()
        if table.nbytes <= _KEPT_BYTES:
            CACHE.put(name, table, table.nbytes)
    return table
