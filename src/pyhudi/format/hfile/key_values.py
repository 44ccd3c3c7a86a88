"""Entries of HFile data blocks: consecutive keys and values, decoded to Arrow arrays.

Decompressed blocks have no header or footer, so several adjacent blocks are decoded like one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format.binary_gather import gather
from pyhudi.format.hfile import hfile_blocks as blocks

ENTRY_SCHEMA = pa.schema([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)])
"""Entries in key order."""

_ENTRY_HEAD = 8
"""Length of the key and of the value, four bytes each."""
_KEY_EXTRA = 2 + len(blocks.KEY_TAIL)

_LOCKSTEP_BLOCKS = 16
"""Number of blocks from which on it is faster to find one entry of each at a time."""

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_Index = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Entries:
    """Parsed entries of blocks: the keys, and the positions of the values. ``bounds``: the first row of each block, and
    the number of all rows."""

    keys: pa.BinaryArray
    bounds: Sequence[int]
    raw: npt.NDArray[np.uint8]
    starts: _Index
    sizes: _Index

    @classmethod
    def parse(cls, parts: Sequence[bytes], *, has_sequence: bool) -> Entries:
        """Parse the entries of one or several blocks in their order. ``has_sequence``: a number follows each value.

        Raises:
            FormatError: The bytes are not valid entries, or are not in order.
        """
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        begins = np.cumsum([0, *(len(part) for part in parts)])
        starts, key_sizes, value_sizes = _layout(data, begins, has_sequence=has_sequence)
        bounds = np.searchsorted(starts, begins)
        if not bool((np.append(starts, len(data))[bounds] == begins).all()):
            raise FormatError("an HFile block ends within an entry")
        raw = np.frombuffer(data, np.uint8)
        keys_at = starts + _ENTRY_HEAD
        row_sizes = raw[keys_at].astype(np.int64) << 8 | raw[keys_at + 1]
        if not bool(((row_sizes + 2 == key_sizes) | (row_sizes + _KEY_EXTRA == key_sizes)).all()):
            raise FormatError("an HFile block has a key that is not a row key")
        keys = gather(raw, keys_at + 2, row_sizes)
        if len(keys) > 1 and not pc.all(pc.less_equal(keys[:-1], keys[1:])).as_py():
            raise FormatError("an HFile block has keys that are not in order")
        return cls(keys, bounds.tolist(), raw, keys_at + key_sizes, value_sizes)

    def batch(self) -> pa.RecordBatch:
        """Return all entries (`ENTRY_SCHEMA`)."""
        return pa.RecordBatch.from_arrays([self.keys, gather(self.raw, self.starts, self.sizes)], schema=ENTRY_SCHEMA)

    def having(self, keys: pa.BinaryArray) -> pa.RecordBatch:
        """Return the entries with any of these keys (`ENTRY_SCHEMA`)."""
        rows = np.flatnonzero(pc.is_in(self.keys, value_set=keys).to_numpy(zero_copy_only=False))
        values = gather(self.raw, self.starts[rows], self.sizes[rows])
        return pa.RecordBatch.from_arrays([self.keys.take(pa.array(rows)), values], schema=ENTRY_SCHEMA)


_Layout = tuple[_Index, _Index, _Index]


def _layout(data: bytes, begins: _Index, *, has_sequence: bool) -> _Layout:
    """Offsets of entries, and the lengths of their keys and values. ``begins``: offsets of the blocks, and the end."""
    same = _same_sizes(data, has_sequence=has_sequence)
    if same is not None:
        return same
    padding = int(has_sequence)
    plain = (
        _parse_blocks_in_parallel(data, begins, padding)
        if len(begins) > _LOCKSTEP_BLOCKS
        else _one_by_one(data, padding)
    )
    if plain is not None:
        return plain
    starts, key_sizes, value_sizes = [], [], []
    at, size = 0, len(data)
    lengths = struct.Struct(">ii")
    while at < size:
        if at + _ENTRY_HEAD > size:
            raise FormatError("an HFile block ends within an entry")
        key_size, value_size = lengths.unpack_from(data, at)
        end = at + _ENTRY_HEAD + key_size + value_size
        if key_size < 2 or value_size < 0 or end > size:
            raise FormatError(f"an HFile block has a key of {key_size} and a value of {value_size} bytes")
        starts.append(at)
        key_sizes.append(key_size)
        value_sizes.append(value_size)
        at = blocks.hadoop_varint(data, end)[1] if has_sequence else end
    return np.array(starts, np.int64), np.array(key_sizes, np.int64), np.array(value_sizes, np.int64)


def _parse_blocks_in_parallel(data: bytes, begins: _Index, padding: int) -> _Layout | None:
    """Return the layout of many blocks, advancing one entry in every block per step; None unless all entries are
    followed by ``padding`` zero bytes and end in their block."""
    # Heads of entries by offset. Zeros follow the data, so that a head can start at its end.
    padded = data + bytes(_ENTRY_HEAD)
    heads = np.ndarray((len(data) + 1,), ">u8", padded, strides=(1,))
    blocks_left = np.flatnonzero(begins[:-1] < begins[1:])
    at, ends = begins[blocks_left], begins[blocks_left + 1]
    found: list[tuple[_Index, _Index, npt.NDArray[np.uint64]]] = []
    while len(at):
        sizes = heads[at].astype(np.uint64)
        found.append((blocks_left, at, sizes))
        at = at + ((sizes >> _HALF) + (sizes & _LOW)).astype(np.int64) + (_ENTRY_HEAD + padding)
        left = at < ends
        if not left.all():
            if bool((at > ends).any()):
                return None
            blocks_left, at, ends = blocks_left[left], at[left], ends[left]
    if not found:
        return None
    # The entries are ordered by their numbers within blocks, and must be ordered by block.
    order = np.argsort(np.concatenate([part[0] for part in found]), kind="stable")
    starts = np.concatenate([part[1] for part in found])[order]
    lengths = np.concatenate([part[2] for part in found])[order]
    key_sizes, value_sizes = (lengths >> _HALF).astype(np.int64), (lengths & _LOW).astype(np.int64)
    if bool((key_sizes < 2).any()):
        return None
    if padding and np.frombuffer(data, np.uint8)[starts + (_ENTRY_HEAD + key_sizes + value_sizes)].any():
        return None
    return starts, key_sizes, value_sizes


def _one_by_one(data: bytes, padding: int) -> _Layout | None:
    """Return the layout of a block whose entries are followed by ``padding`` zero bytes; None for any other."""
    starts: list[int] = []
    add, lengths = starts.append, struct.Struct(">ii").unpack_from
    at, size, more = 0, len(data), _ENTRY_HEAD + padding
    try:
        while at < size:
            key_size, value_size = lengths(data, at)
            if key_size < 2 or value_size < 0:
                return None
            add(at)
            at += key_size + value_size + more
    except struct.error:
        return None
    if at != size:
        return None
    offsets = np.array(starts, np.int64)
    raw = np.frombuffer(data, np.uint8)
    heads = raw[offsets[:, None] + np.arange(_ENTRY_HEAD)].view(">i4").astype(np.int64).reshape(-1, 2)
    key_sizes, value_sizes = np.ascontiguousarray(heads[:, 0]), np.ascontiguousarray(heads[:, 1])
    if padding and raw[offsets + _ENTRY_HEAD + key_sizes + value_sizes].any():
        return None
    return offsets, key_sizes, value_sizes


def _same_sizes(data: bytes, *, has_sequence: bool) -> _Layout | None:
    """The layout of a block whose entries are all of the same sizes, as in most record indexes."""
    if len(data) < _ENTRY_HEAD:
        return None
    key_size, value_size = struct.unpack_from(">ii", data)
    stride = _ENTRY_HEAD + key_size + value_size + has_sequence
    if key_size < 2 or value_size < 0 or len(data) % stride:
        return None
    rows = np.frombuffer(data, np.uint8).reshape(-1, stride)
    if not bool((rows[:, :_ENTRY_HEAD] == rows[0, :_ENTRY_HEAD]).all()) or (has_sequence and rows[:, -1].any()):
        return None
    count = len(rows)
    return np.arange(count, dtype=np.int64) * stride, np.full(count, key_size), np.full(count, value_size)
