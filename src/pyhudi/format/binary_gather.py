"""Gathering of slices of a buffer into an Arrow array, without a Python object per slice."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_MAX_BYTES = int(np.iinfo(np.int32).max)


def gather(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> pa.Array:
    """Return a binary array whose i-th value is ``data[starts[i] : starts[i] + sizes[i]]``."""
    total = int(sizes.sum())
    if total > _MAX_BYTES:
        raise ValueError(f"{total} bytes exceed the size of an array")
    ends = starts + sizes
    if len(starts) and len(data) <= _MAX_BYTES and bool((starts[1:] >= ends[:-1]).all()):
        return _every_second(data, starts, ends)
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    shift = np.repeat(starts - offsets[:-1], sizes)
    values = data[shift + np.arange(total)] if total else np.empty(0, np.uint8)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)


def _every_second(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> pa.Array:
    """Optimization for consecutive slices: together with the gaps between them they already are an array."""
    count = len(starts)
    offsets = np.empty(2 * count, np.int32)
    offsets[0::2], offsets[1::2] = starts, ends
    whole = pa.Array.from_buffers(
        pa.binary(), 2 * count - 1, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    )
    return whole.take(pa.array(np.arange(0, 2 * count, 2)))
