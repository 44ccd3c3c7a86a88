"""Hash of Hudi's bloom filters: Hadoop's variant of 32-bit MurmurHash2, vectorised with numpy.

A filter with k hash functions calls it k times in a chain (each result is the seed of the next call). Mixing a
four-byte block does not depend on the seed, so every block is mixed once per key and reused in all k rounds; a round is
then two vector operations per block. Keys are laid out as one column per key, grouped by length so that columns are
nearly full.

Hadoop's variant sign-extends the bytes after the last whole block before they are shifted into the hash, which differs
from standard MurmurHash2 for bytes of 0x80 or more.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

U32: TypeAlias = npt.NDArray[np.uint32]

CHUNK = 8192
"""Number of keys hashed together: a few hundred kB of mixed blocks, which fit into the L2 cache."""

_M = np.uint32(0x5BD1E995)
_S13, _S15, _S24 = np.uint32(13), np.uint32(15), np.uint32(24)
_ONE = np.uint32(1)


@dataclass(slots=True)
class KeyBlock:
    """Block of up to `CHUNK` keys, prepared for hashing with any seed."""

    index: npt.NDArray[np.intp]
    """Positions of the keys in their array."""
    lengths: U32
    words: U32
    """Mixed four-byte blocks, shape (blocks, keys)."""
    factors: U32 | None
    """Factors of the hash before each of ``words`` is mixed in, same shape: M, or 1 to pad shorter keys. None if no key
    is padded."""
    tail: U32
    """Remaining bytes after the last whole block, as they are mixed in; 0 if there are none."""
    tail_factors: U32
    """M if there is a tail, otherwise 1."""

    def __len__(self) -> int:
        return len(self.lengths)

    def keep(self, mask: npt.NDArray[np.bool_]) -> KeyBlock:
        """Return only the keys where ``mask`` is true."""
        return KeyBlock(
            index=self.index[mask],
            lengths=self.lengths[mask],
            words=np.compress(mask, self.words, axis=1),
            factors=None if self.factors is None else np.compress(mask, self.factors, axis=1),
            tail=self.tail[mask],
            tail_factors=self.tail_factors[mask],
        )


def hash_block(block: KeyBlock, seeds: U32, scratch: U32) -> None:
    """Replace the seeds (one per key) by the hashes of the keys, in place; ``scratch`` has the same length and is
    overwritten."""
    h, multiply, xor = seeds, np.multiply, np.bitwise_xor
    xor(h, block.lengths, out=h)
    if block.factors is None:
        for word in block.words:
            multiply(h, _M, out=h)
            xor(h, word, out=h)
    else:
        for word, factor in zip(block.words, block.factors, strict=True):
            multiply(h, factor, out=h)
            xor(h, word, out=h)
    xor(h, block.tail, out=h)
    multiply(h, block.tail_factors, out=h)
    np.right_shift(h, _S13, out=scratch)
    xor(h, scratch, out=h)
    multiply(h, _M, out=h)
    np.right_shift(h, _S15, out=scratch)
    xor(h, scratch, out=h)


def key_blocks(keys: pa.Array | pa.ChunkedArray) -> Iterator[KeyBlock]:
    """Lay out keys (strings or binary, no nulls) for hashing; every key is in exactly one block."""
    array = _as_binary(keys)
    if len(array) == 0:
        return
    lengths = _lengths(array)
    order = np.arange(len(array), dtype=np.intp)
    if lengths[0] != lengths[-1] or (lengths != lengths[0]).any():
        narrow = lengths.astype(np.uint16) if lengths.max() < 1 << 16 else lengths  # radix sort for 16 bits
        order = np.argsort(narrow, kind="stable")
        array, lengths = array.take(pa.array(order)), lengths[order]
    for start in range(0, len(array), CHUNK):
        part = slice(start, min(start + CHUNK, len(array)))
        yield _lay_out(array.slice(start, part.stop - start), lengths[part], order[part])


def _as_binary(keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks() if keys.num_chunks != 1 else keys.chunk(0)
    if keys.null_count:
        raise ValueError(f"{keys.null_count} of {len(keys)} keys are null")
    if not (pa.types.is_binary(keys.type) or pa.types.is_string(keys.type)):
        keys = keys.cast(pa.binary())
    return keys


def _lengths(array: pa.Array) -> npt.NDArray[np.int32]:
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)
    return np.diff(offsets)


def _lay_out(array: pa.Array, lengths: npt.NDArray[np.int32], index: npt.NDArray[np.intp]) -> KeyBlock:
    """Lay out keys sorted by length; shorter ones are padded in front with blocks without effect."""
    n = len(array)
    _, offsets_buffer, data_buffer = array.buffers()
    first = int(np.frombuffer(offsets_buffer, np.int32, 1, array.offset * 4)[0])
    total = int(lengths.sum(dtype=np.int64))
    data = np.frombuffer(data_buffer, np.uint8, total, first) if total else np.empty(0, np.uint8)
    blocks = int(lengths[-1]) // 4
    ragged = int(lengths[0]) // 4 != blocks
    words = np.zeros((blocks, n), np.uint32)
    factors = np.ones((blocks, n), np.uint32) if ragged else None
    tail = np.zeros(n, np.uint32)
    at = 0
    edges = [0, *(np.flatnonzero(np.diff(lengths)) + 1).tolist(), n]
    for begin, end in itertools.pairwise(edges):
        length, count = int(lengths[begin]), end - begin
        rows = data[at : at + length * count].reshape(count, length)
        at += length * count
        whole, left = divmod(length, 4)
        if whole:
            raw = np.ascontiguousarray(rows[:, : whole * 4]).view("<u4")
            words[blocks - whole :, begin:end] = raw.T
            if factors is not None:
                factors[blocks - whole :, begin:end] = _M
        signed = rows.view(np.int8)
        for back in range(1, left + 1):
            byte = signed[:, length - back].astype(np.int32).view(np.uint32)
            tail[begin:end] ^= byte << np.uint32(8 * (back - 1))
    # Mix every block once; padding blocks are 0 and remain so.
    words *= _M
    words ^= words >> _S24
    words *= _M
    unsigned = lengths.astype(np.uint32)
    tail_factors = np.where((unsigned & np.uint32(3)) != 0, _M, _ONE)
    return KeyBlock(index, unsigned, words, factors, tail, tail_factors)
