"""Estimated numbers of rows of a table, by which the file groups of an index are planned."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import numpy_mask
from pyhudi.merge.base_file_readers import row_counts
from pyhudi.storage import Storage

_SAMPLE = 256
"""Number of footers that are read, while others wait for the lock of the table."""


def estimated_rows(storage: Storage, slices: pa.Table) -> npt.NDArray[np.int64]:
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
        counts = np.zeros(slices.num_rows, np.int64)
        counts[numpy_mask(pc.is_valid(slices["base_path"]))] = rows
        return counts
    by_byte = sum(rows) / max(1, pc.sum(some["base_size"]).as_py() or 0)
    estimated: npt.NDArray[np.int64] = np.rint(pc.fill_null(slices["base_size"], 0).to_numpy() * by_byte).astype(
        np.int64
    )
    return estimated
