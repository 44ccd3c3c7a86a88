"""Estimated numbers of rows of a table, by which the file groups of an index are planned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge.base_file_readers import row_counts

if TYPE_CHECKING:
    from pyhudi.storage import Storage

_SAMPLE = 256
"""Number of footers that are read, while others wait for the lock of the table."""


def estimated_rows(storage: Storage, slices: pa.Table) -> list[int]:
    """Return the estimated number of rows of the base file of each slice (0: it has none): exact for some files, by
    size for the others.

    Args:
        storage: Storage of the table.
        slices: The slices (SLICE_SCHEMA).
    """
    files = slices.filter(pc.is_valid(slices["base_path"]))
    step = max(1, -(-files.num_rows // _SAMPLE))
    some = files.take(pa.array(range(0, files.num_rows, step), pa.int64()))  # none without base files
    rows = row_counts(storage, some["base_path"])
    if step == 1:
        counts = iter(rows)
        return [0 if path is None else next(counts) for path in slices["base_path"].to_pylist()]
    by_byte = sum(rows) / max(1, pc.sum(some["base_size"]).as_py() or 0)
    return [round((size or 0) * by_byte) for size in slices["base_size"].to_pylist()]
