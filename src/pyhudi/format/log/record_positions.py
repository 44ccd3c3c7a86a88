"""Record positions in block headers: base64 of a 64-bit Roaring bitmap in its portable form.

They are parsed here, because libraries trust the counts in the bytes. A container holds up to 65,536 positions, so the
loop over containers is short.
"""

from __future__ import annotations

import array
import base64
import binascii
import struct

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from pyhudi.errors import FormatError

_WITH_RUNS = 12347
_WITHOUT_RUNS = 12346
_OFFSETS_FROM = 4
"""Number of containers from which a bitmap with runs has their offsets, too."""
_ARRAY_MAX = 4096
"""Maximum number of values in an array container; more are stored as a bitset."""
_BITSET_BYTES = 8192
_CONTAINER_SPAN = 65_536

Positions = npt.NDArray[np.int64]


def decode_positions(text: str) -> Positions:
    """Return the row positions in a header's text, ascending.

    Raises:
        FormatError: The text is not a valid bitmap.
    """
    try:
        raw = base64.b64decode(text, validate=True)
        result = _Reader(raw).bitmap64()
    except (binascii.Error, ValueError, struct.error) as error:
        raise FormatError(f"cannot decode record positions of {len(text)} characters: {error}") from error
    if len(result) and (result[0] < 0 or not bool((result[1:] > result[:-1]).all())):
        raise FormatError(f"record positions of {len(text)} characters are not in ascending order")
    return result


def encode_positions(positions: Positions) -> str:
    """Return the header text for distinct row positions."""
    bitmap = BitMap64(array.array("Q", np.ascontiguousarray(positions, dtype=np.uint64).tobytes()))
    bitmap.run_optimize()
    return base64.b64encode(bitmap.serialize()).decode()


class _Reader:
    """Reader of a bitmap; raises ValueError or struct.error if the bytes are invalid."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def bitmap64(self) -> Positions:
        (buckets,) = struct.unpack("<q", self._take(8))
        parts: list[Positions] = []
        if not 0 <= buckets <= len(self._raw) // 12:
            raise ValueError(f"a bitmap of {buckets} buckets")
        for _ in range(buckets):
            (high,) = struct.unpack("<I", self._take(4))
            parts += self._bitmap32(high << 32)
        if self._at != len(self._raw):
            raise ValueError(f"the bitmap ends after {self._at} of {len(self._raw)} bytes")
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _bitmap32(self, base: int) -> list[Positions]:
        if base >= 1 << 63:
            raise ValueError("positions beyond 63 bits")
        (cookie,) = struct.unpack("<I", self._take(4))
        if cookie == _WITHOUT_RUNS:
            (count,) = struct.unpack("<I", self._take(4))
            runs = np.zeros(count if count <= _CONTAINER_SPAN else 0, bool)
            has_offsets = True
        elif cookie & 0xFFFF == _WITH_RUNS:
            count = (cookie >> 16) + 1
            flags = np.frombuffer(self._take((count + 7) // 8), np.uint8)
            runs = np.unpackbits(flags, bitorder="little")[:count].astype(bool)
            has_offsets = count >= _OFFSETS_FROM
        else:
            raise ValueError(f"a bitmap with cookie {cookie}")
        if count > _CONTAINER_SPAN:
            raise ValueError(f"a bitmap of {count} containers")
        heads = np.frombuffer(self._take(4 * count), "<u2").reshape(count, 2).astype(np.int64)
        if has_offsets:
            self._take(4 * count)
        return [
            base + (int(key) << 16) + (self._runs(int(less) + 1) if run else self._values(int(less) + 1))
            for (key, less), run in zip(heads, runs, strict=True)
        ]

    def _values(self, cardinality: int) -> Positions:
        if cardinality <= _ARRAY_MAX:
            return np.frombuffer(self._take(2 * cardinality), "<u2").astype(np.int64)
        bits = np.unpackbits(np.frombuffer(self._take(_BITSET_BYTES), np.uint8), bitorder="little")
        values = np.flatnonzero(bits).astype(np.int64)
        if len(values) != cardinality:
            raise ValueError(f"a container of {len(values)} values that claims {cardinality}")
        return values

    def _runs(self, cardinality: int) -> Positions:
        (count,) = struct.unpack("<H", self._take(2))
        runs = np.frombuffer(self._take(4 * count), "<u2").reshape(count, 2).astype(np.int64)
        lengths = runs[:, 1] + 1
        total = int(lengths.sum())
        if total != cardinality or (count and int((runs[:, 0] + runs[:, 1]).max()) >= _CONTAINER_SPAN):
            raise ValueError(f"a container whose runs have {total} values and that claims {cardinality}")
        starts = np.repeat(runs[:, 0] - np.cumsum(lengths) + lengths, lengths)
        return starts + np.arange(total)

    def _take(self, length: int) -> bytes:
        part = self._raw[self._at : self._at + length]
        if len(part) != length:
            raise ValueError(f"the bitmap needs {length} bytes at {self._at} and has {len(part)}")
        self._at += length
        return part
