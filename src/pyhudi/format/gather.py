"""Pieces of one buffer put together as an Arrow array, without a Python object a piece."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def gather(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> pa.Array:
    """Return a binary array whose i-th value is ``data[starts[i] : starts[i] + sizes[i]]``."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    total = int(offsets[-1])
    if total > np.iinfo(np.int32).max:
        raise ValueError(f"{total} bytes are too many for one array")
    shift = np.repeat(starts - offsets[:-1], sizes)
    values = data[shift + np.arange(total)] if total else np.empty(0, np.uint8)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)
