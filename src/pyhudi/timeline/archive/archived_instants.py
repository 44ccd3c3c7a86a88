"""Rows of the archived timeline, as read from both layouts, and the cache of those without metadata."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.storage.byte_bounded_cache import ByteBoundedCache

ARCHIVED_INSTANTS_SCHEMA = pa.schema(
    [
        ("requested", pa.string()),
        ("completion", pa.string()),
        ("action", pa.string()),
        ("metadata", pa.binary()),
        ("plan", pa.binary()),
    ]
)
"""``completion`` is null in layout 1. ``action`` is the completed one (commit for a compaction). ``metadata`` is the
content of the completed file (in layout 1 reconstructed from the archived record), ``plan`` that of the requested file
if the archive has it; both are null if not requested."""

CACHE = ByteBoundedCache(32 * 1024 * 1024)
"""Instants of archive files, without metadata, by root of the storage, path and length, and in layout 1 by modification
time."""


def sort_rows(table: pa.Table, *columns: str) -> pa.Table:
    """Sort by columns. Rows are not copied: `pyarrow.Table.sort_by` combines chunks, and a chunk of a binary column
    cannot have more than 2 GiB."""
    order = pc.sort_indices(table.select(columns), [(column, "ascending") for column in columns]).to_numpy()
    ends_of_runs = np.flatnonzero(np.diff(order) != 1) + 1
    runs = [run for run in np.split(order, ends_of_runs) if len(run)]
    return pa.concat_tables([table.schema.empty_table(), *(table.slice(int(run[0]), len(run)) for run in runs)])
