"""32-bit xxHash of columns of texts, with seed 0, vectorised with numpy.

All texts are processed together, one step at a time: stripes of 16 bytes, then words of four, then single bytes. In
each step only texts that are long enough take part.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

U32: TypeAlias = npt.NDArray[np.uint32]
Index: TypeAlias = npt.NDArray[np.int64]

_P1, _P2, _P3, _P4, _P5 = (np.uint32(prime) for prime in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1))
_START = (np.uint32(0x24234428), _P2, np.uint32(0), np.uint32(0x61C8864F))  # P1 + P2, P2, 0, -P1
_STRIPE, _WORD = 16, 4


def xxh32(texts: pa.Array) -> U32:
    """Return the hash of the UTF-8 bytes of each text; none may be null."""
    texts = texts.cast(pa.large_string())
    _, bounds, buffer = texts.buffers()
    offsets = np.frombuffer(bounds, np.int64, len(texts) + 1, 8 * texts.offset) if len(texts) else np.zeros(1, np.int64)
    data = np.frombuffer(buffer or b"", np.uint8)
    starts, lengths = offsets[:-1], np.diff(offsets)
    hashes = _stripes(data, starts, lengths) + lengths.astype(np.uint32)
    at = starts + lengths // _STRIPE * _STRIPE
    words = lengths % _STRIPE // _WORD
    for number in range(3):
        rows = np.flatnonzero(words > number)
        word = _words(data, at[rows] + number * _WORD)
        hashes[rows] = _rotated(hashes[rows] + word * _P3, 17) * _P4
    at += words * _WORD
    for number in range(3):
        rows = np.flatnonzero(lengths % _WORD > number)
        hashes[rows] = _rotated(hashes[rows] + data[at[rows] + number].astype(np.uint32) * _P5, 11) * _P1
    hashes ^= hashes >> np.uint32(15)
    hashes *= _P2
    hashes ^= hashes >> np.uint32(13)
    hashes *= _P3
    return hashes ^ (hashes >> np.uint32(16))


def _stripes(data: npt.NDArray[np.uint8], starts: Index, lengths: Index) -> U32:
    """Return the hashes after all whole stripes."""
    counts = lengths // _STRIPE
    lanes = [np.full(len(starts), start, np.uint32) for start in _START]
    for number in range(int(counts.max(initial=0))):
        rows = np.flatnonzero(counts > number)
        for lane, values in enumerate(lanes):
            word = _words(data, starts[rows] + (number * _STRIPE + lane * _WORD))
            values[rows] = _rotated(values[rows] + word * _P2, 13) * _P1
    one, two, three, four = lanes
    mixed = _rotated(one, 1) + _rotated(two, 7) + _rotated(three, 12) + _rotated(four, 18)
    return np.where(counts > 0, mixed, _P5)


def _words(data: npt.NDArray[np.uint8], at: Index) -> U32:
    """Return the four bytes at each position as a little-endian number."""
    if not len(at):
        return np.zeros(0, np.uint32)
    # Every position of the data as a word, without copying.
    every = np.ndarray((len(data) - _WORD + 1,), "<u4", data, strides=(1,))
    return every[at]


def _rotated(values: U32, bits: int) -> U32:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
