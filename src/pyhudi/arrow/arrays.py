"""Conversions between Arrow columns, Arrow arrays and numpy masks that several packages need."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def contiguous(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; copies values only where there are several chunks."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def numpy_mask(mask: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return booleans as a writable numpy array; null counts as false."""
    flags: npt.NDArray[np.bool_] = pc.fill_null(contiguous(mask), False).to_numpy(zero_copy_only=False)
    return flags if flags.flags.writeable else flags.copy()


def list_sums(lists: pa.Array | pa.ChunkedArray) -> pa.Int64Array:
    """Return the sum (int64) of each list of integers; 0 for an empty one."""
    flat = contiguous(lists)
    sums = np.bincount(pc.list_parent_indices(flat), pc.list_flatten(flat), minlength=len(flat))
    return pa.array(sums.astype(np.int64))


def is_text(data_type: pa.DataType) -> bool:
    """Return True for text types."""
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))
