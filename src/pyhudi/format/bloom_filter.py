"""Bloom filters of record keys, bit for bit as stored by Apache Hudi in the footers of base files.

There are two kinds: ``SIMPLE`` is one bit vector; ``DYNAMIC_V0`` (the default) is a growing list of vectors ("rows"),
each for a fixed number of keys, up to a limit. The text form is base64 of a big-endian layout::

    int32 -1, int32 hashes, int8 1 (murmur), int32 bits        header of every vector, and of the dynamic filter itself
    dynamic only: int32 keys per row, int32 keys counted in the last row, int32 rows, then the rows as vectors
    vector only:  ceil(bits / 8) bytes, bit i in byte i / 8, lowest bit first
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format.murmur2 import U32, KeyBlock, hash_block, key_blocks

SIMPLE, DYNAMIC = "SIMPLE", "DYNAMIC_V0"
"""Type codes as the footer has them."""

DEFAULT_ENTRIES, DEFAULT_FPP, DEFAULT_MAX_ENTRIES = 60_000, 1e-9, 100_000
"""Apache Hudi's defaults: keys per vector, false-positive probability, limit of a dynamic filter."""

_HEADER = struct.Struct(">iibi")
_DYNAMIC = struct.Struct(">iii")
_VERSION, _MURMUR = -1, 1
_PENDING_KEYS = 65_536
_MAX_FOREIGN = 1.05
"""Maximum number of keys in a filter per key that the file still holds, up to which the filter is continued."""


def bit_size(entries: int, fpp: float) -> int:
    """Return the number of bits for ``entries`` keys at a false-positive probability."""
    return math.ceil(entries * (-math.log(fpp) / (math.log(2) * math.log(2))))


def hash_count(bits: int, entries: int) -> int:
    """Return the optimal number of hash functions for ``bits`` bits and ``entries`` keys."""
    return math.ceil(math.log(2) * bits / entries)


def _positions(hashes: U32, bits: np.uint32) -> U32:
    """Return |h rem bits| in Java's arithmetic: the remainder has the sign of h, which is then dropped."""
    magnitude = np.abs(hashes.view(np.int32)).view(np.uint32)
    quotient = np.floor_divide(magnitude, bits)
    np.multiply(quotient, bits, out=quotient)
    np.subtract(magnitude, quotient, out=magnitude)
    return magnitude


def _chained(block: KeyBlock, hashes: int) -> Iterator[U32]:
    """Yield the hashes of each round; the array is reused."""
    h = np.zeros(len(block), np.uint32)
    scratch = np.empty_like(h)
    for _ in range(hashes):
        hash_block(block, h, scratch)
        yield h


@dataclass(frozen=True, slots=True, eq=False)
class BloomFilter:
    """A finished filter. ``rows`` are packed bit vectors; a simple filter has one row."""

    kind: str
    hashes: int
    bits: int
    rows: tuple[npt.NDArray[np.uint8], ...]
    entries_per_row: int = 0
    last_row_count: int = 0

    @classmethod
    def build(
        cls,
        keys: pa.Array | pa.ChunkedArray,
        num_entries: int = DEFAULT_ENTRIES,
        fpp: float = DEFAULT_FPP,
        dynamic_max: int = DEFAULT_MAX_ENTRIES,
        kind: str = DYNAMIC,
    ) -> BloomFilter:
        """Return the filter of ``keys`` (strings, no nulls, in the order of the file)."""
        builder = BloomBuilder(num_entries, fpp, dynamic_max, kind)
        builder.add(keys)
        return builder.finish()

    @classmethod
    def parse(cls, text: str | bytes, type_code: str) -> BloomFilter:
        """Parse a filter from its base64 text.

        Raises:
            FormatError: The type code is unknown, or the text is not a valid filter.
        """
        if type_code not in (SIMPLE, DYNAMIC):
            raise FormatError(f"unknown bloom filter type {type_code!r}; known: {SIMPLE}, {DYNAMIC}")
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise FormatError(f"the bloom filter is not valid base64: {error}") from error
        try:
            if type_code == SIMPLE:
                hashes, bits, row, end = _read_vector(data, 0)
                result = cls(SIMPLE, hashes, bits, (row,))
            else:
                hashes, bits = _read_header(data, 0)
                per_row, count, row_count = _DYNAMIC.unpack_from(data, _HEADER.size)
                end, rows = _HEADER.size + _DYNAMIC.size, []
                if row_count < 1 or per_row < 1:
                    raise FormatError(f"bloom filter with {row_count} rows for {per_row} keys each")
                for _ in range(row_count):
                    row_hashes, row_bits, row, end = _read_vector(data, end)
                    if (row_hashes, row_bits) != (hashes, bits):
                        raise FormatError("rows of a dynamic bloom filter differ in size")
                    rows.append(row)
                result = cls(DYNAMIC, hashes, bits, tuple(rows), per_row, count)
        except struct.error as error:
            raise FormatError(f"a bloom filter of {len(data)} bytes is truncated") from error
        if end != len(data):
            raise FormatError(f"a bloom filter ends after {end} of {len(data)} bytes")
        return result

    def serialize(self) -> str:
        """Return the base64 text that is stored in footers."""
        header = _HEADER.pack(_VERSION, self.hashes, _MURMUR, self.bits)
        parts: list[bytes] = []
        if self.kind == DYNAMIC:
            parts += [header, _DYNAMIC.pack(self.entries_per_row, self.last_row_count, len(self.rows))]
        for row in self.rows:
            parts += [header, row.tobytes()]
        return base64.b64encode(b"".join(parts)).decode("ascii")

    def might_contain(self, keys: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        """Return for every key whether it may be in the file; False is certain. Null keys return null."""
        if isinstance(keys, pa.ChunkedArray):
            keys = keys.combine_chunks()
        valid = None
        if keys.null_count:
            valid = keys.is_valid()
            keys = pc.fill_null(keys, "" if not pa.types.is_binary(keys.type) else b"")
        found = np.zeros(len(keys), np.bool_)
        for block in key_blocks(keys):
            self._probe(block, found)
        result = pa.array(found)
        return result if valid is None else pc.if_else(valid, result, pa.scalar(None, pa.bool_()))

    def _probe(self, block: KeyBlock, found: npt.NDArray[np.bool_]) -> None:
        """Set ``found`` for the keys of a block; keys that no row can hold are dropped early."""
        bits = np.uint32(self.bits)
        h = np.zeros(len(block), np.uint32)
        scratch = np.empty_like(h)
        hits = np.ones((len(self.rows), len(block)), np.bool_)
        for _ in range(self.hashes):
            hash_block(block, h, scratch)
            position = _positions(h, bits)
            byte = (position >> np.uint32(3)).astype(np.intp)
            mask = np.left_shift(np.uint8(1), (position & np.uint32(7)).astype(np.uint8))
            for row, hit in zip(self.rows, hits, strict=True):
                hit &= (row[byte] & mask) != 0
            alive: npt.NDArray[np.bool_] = np.logical_or.reduce(hits, axis=0)
            count = int(np.count_nonzero(alive))
            if count == 0:
                return
            if count < 0.8 * len(block):
                block, h, hits = block.keep(alive), h[alive], np.compress(alive, hits, axis=1)
                scratch = np.empty_like(h)
        found[block.index[np.logical_or.reduce(hits, axis=0)]] = True


def _read_header(data: bytes, at: int) -> tuple[int, int]:
    version, hashes, hash_type, bits = _HEADER.unpack_from(data, at)
    if version != _VERSION or hash_type != _MURMUR or hashes < 1 or bits < 1:
        raise FormatError(
            f"not a bloom filter of Hudi: version {version}, hash type {hash_type}, {hashes} hashes, {bits} bits"
        )
    return hashes, bits


def _read_vector(data: bytes, at: int) -> tuple[int, int, npt.NDArray[np.uint8], int]:
    hashes, bits = _read_header(data, at)
    start = at + _HEADER.size
    end = start + (bits + 7) // 8
    if end > len(data):
        raise FormatError(f"a bloom filter of {len(data)} bytes is truncated: a row needs {end}")
    return hashes, bits, np.frombuffer(data, np.uint8, end - start, start), end


class BloomBuilder:
    """Builds a filter batch by batch. Memory: one byte per bit of each row, and at most 64 Ki buffered keys."""

    def __init__(
        self,
        num_entries: int,
        fpp: float,
        dynamic_max: int,
        kind: str = DYNAMIC,
    ) -> None:
        if kind not in (SIMPLE, DYNAMIC):
            raise ValueError(f"unknown bloom filter type {kind!r}; known: {SIMPLE}, {DYNAMIC}")
        if num_entries < 1 or not 0 < fpp < 1:
            raise ValueError(f"a bloom filter for {num_entries} keys at probability {fpp} cannot be made")
        self._kind = kind
        self._entries = num_entries
        self._bits = bit_size(num_entries, fpp)
        self._hashes = hash_count(self._bits, num_entries)
        self._max_rows = 1 if kind == SIMPLE else max(1, -(-dynamic_max // num_entries))
        self._rows: list[npt.NDArray[np.bool_]] = [np.zeros(self._bits, np.bool_)]
        self._added = 0
        self._pending: list[pa.Array] = []
        self._pending_keys = 0

    def resume(self, earlier: BloomFilter, keys: int) -> bool:
        """Continue the filter of a file with ``keys`` keys. Return False, without changes, if this is not possible.

        It is not possible for a filter with other parameters, or with many keys that were deleted from the file since.
        A simple filter does not count its keys.
        """
        same = (earlier.kind, earlier.hashes, earlier.bits) == (self._kind, self._hashes, self._bits)
        if self._kind == SIMPLE or not same or earlier.entries_per_row != self._entries:
            return False
        added = self._entries * (len(earlier.rows) - 1) + earlier.last_row_count
        if len(earlier.rows) > self._max_rows or not keys <= added <= keys * _MAX_FOREIGN:
            return False
        self._rows = [np.unpackbits(row, count=self._bits, bitorder="little").view(np.bool_) for row in earlier.rows]
        self._added = added
        return True

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Add keys (strings, no nulls) in the order of the file."""
        if keys.null_count:
            raise ValueError(f"{keys.null_count} of {len(keys)} record keys are null")
        chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
        self._pending += chunks
        self._pending_keys += len(keys)
        if self._pending_keys >= _PENDING_KEYS:
            self._flush()

    def finish(self) -> BloomFilter:
        """Return the filter of all keys so far."""
        self._flush()
        rows = tuple(np.packbits(row, bitorder="little") for row in self._rows)
        if self._kind == SIMPLE:
            return BloomFilter(SIMPLE, self._hashes, self._bits, rows)
        count = self._added - self._entries * (len(self._rows) - 1)
        return BloomFilter(DYNAMIC, self._hashes, self._bits, rows, self._entries, count)

    def _flush(self) -> None:
        if not self._pending_keys:
            return
        keys = pa.concat_arrays(self._pending)
        self._pending, self._pending_keys = [], 0
        if self._kind == SIMPLE:
            self._set(keys, self._rows[0])
            self._added += len(keys)
            return
        while len(keys):
            room = self._entries * len(self._rows) - self._added
            if room <= 0 and len(self._rows) < self._max_rows:
                self._rows.append(np.zeros(self._bits, np.bool_))
                continue
            if room <= 0:
                self._overflow(keys)
                self._added += len(keys)
                return
            part = keys.slice(0, room)
            self._set(part, self._rows[-1])
            self._added += len(part)
            keys = keys.slice(len(part))

    def _overflow(self, keys: pa.Array) -> None:
        """Distribute keys beyond the limit over the rows as Apache Hudi does: row 0 first, then 0, 1, … in turn."""
        rows = len(self._rows)
        if rows == 1:
            self._set(keys, self._rows[0])
            return
        first = self._added - self._entries * rows
        number = np.arange(first, first + len(keys))
        target = np.where(number == 0, 0, (number - 1) % rows)
        for i, row in enumerate(self._rows):
            self._set(keys.filter(pa.array(target == i)), row)

    def _set(self, keys: pa.Array, row: npt.NDArray[np.bool_]) -> None:
        bits = np.uint32(self._bits)
        for block in key_blocks(keys):
            for h in _chained(block, self._hashes):
                row[_positions(h, bits).astype(np.intp)] = True
