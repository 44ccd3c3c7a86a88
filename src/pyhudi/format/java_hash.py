"""Java's ``String.hashCode`` of texts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_CHUNK_BYTES = 1 << 22
"""Bytes of texts that are hashed at once."""


def java_hashes(texts: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int32]:
    """Return Java's ``String.hashCode`` of each text, computed on UTF-16 units."""
    array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    array = array if array.type == pa.string() else array.cast(pa.string())
    result = np.zeros(len(array), np.uint32)
    if not len(array):
        return result.view(np.int32)
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset).astype(np.int64)
    data = memoryview(array.buffers()[2] or b"").cast("B")
    start = 0
    while start < len(array):
        end = max(start + 1, int(np.searchsorted(offsets, offsets[start] + _CHUNK_BYTES, side="right")) - 1)
        _hash_chunk(data, offsets[start : end + 1], result[start:end])
        start = end
    return result.view(np.int32)


def _hash_chunk(data: memoryview, offsets: npt.NDArray[np.int64], result: npt.NDArray[np.uint32]) -> None:
    """Hash the texts at these offsets into ``result``, which must be zero."""
    part = data[offsets[0] : offsets[-1]]
    raw = np.frombuffer(part, np.uint8)
    bounds = offsets - offsets[0]
    if len(raw) and raw.max() >= 0x80:
        # The first byte of a character is one unit, that of a four-byte character two.
        units = (((raw & 0xC0) != 0x80).astype(np.int64) + (raw >= 0xF0)).cumsum()
        bounds = np.concatenate([[0], units])[bounds]
        letters: npt.NDArray[np.uint32] = np.frombuffer(bytes(part).decode().encode("utf-16-le"), "<u2").astype(
            np.uint32
        )
    else:
        letters = raw.astype(np.uint32)
    sizes = np.diff(bounds)
    if not len(letters):
        return
    behind = np.repeat(bounds[1:] - 1, sizes) - np.arange(len(letters))
    letters *= _powers(int(sizes.max()))[behind]
    some = np.flatnonzero(sizes)
    result[some] = np.add.reduceat(letters, bounds[:-1][some])


def _powers(count: int) -> npt.NDArray[np.uint32]:
    """Return the powers of 31 in ascending order, modulo the word size."""
    powers = np.full(count, 31, np.uint32)
    powers[:1] = 1
    return np.multiply.accumulate(powers, dtype=np.uint32)
