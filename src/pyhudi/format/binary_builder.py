"""Builder of binary rows from pieces that are added column by column.

Short pieces are rows of a matrix of which some bytes are used; adjacent ones are combined before unused bytes are
removed. Long pieces are Arrow binary arrays. Arrow's join concatenates the pieces of each row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

_NOTHING = pa.scalar(b"", pa.binary())
_MAX_BYTES = int(np.iinfo(np.int32).max)
PREFIX = 4
"""Bytes of the length prefix of a row."""


class BinaryRowBuilder:
    """Builder of binary rows, to which pieces are appended."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pieces: list[pa.Array | pa.Scalar] = []
        self._sizes = np.zeros(count, np.int64)
        self._short: list[tuple[Bytes, Mask | None]] = []
        self._constant = b""

    def constant(self, data: bytes) -> None:
        """Append the same bytes to all rows."""
        self._flush_short()
        self._constant += data

    def short(self, data: Bytes, used: Mask | None = None) -> None:
        """Append the ``used`` bytes of each row of a matrix."""
        self._flush_constant()
        self._short.append((data, used))

    def long(self, data: pa.Array) -> None:
        """Append a value of a binary array to each row; nulls append nothing."""
        self._flush_constant()
        self._flush_short()
        if len(data) != self._count:
            raise ValueError(f"{len(data)} pieces for {self._count} rows")
        sizes = pc.binary_length(data)
        self._sizes += (sizes if not sizes.null_count else pc.fill_null(sizes, 0)).to_numpy()
        self._pieces.append(data)

    def joined(self, *, prefixed: bool = False) -> pa.BinaryArray:
        """Join the pieces of each row."""
        self._flush_constant()
        self._flush_short()
        pieces = self._pieces
        if prefixed:
            pieces = [binary_array(self._sizes.astype(">i4").view(np.uint8), np.full(self._count, PREFIX)), *pieces]
        if int(self._sizes.sum()) > _MAX_BYTES - PREFIX * self._count:
            raise FormatError(
                f"{self._count} rows of {int(self._sizes.sum())} bytes exceed the size of an array; write fewer at a "
                "time"
            )
        if not any(isinstance(piece, pa.Array) for piece in pieces):
            whole = b"".join(piece.as_py() for piece in pieces)
            return pa.repeat(pa.scalar(whole, pa.binary()), self._count)
        return pc.binary_join_element_wise(*pieces, _NOTHING, null_handling="replace", null_replacement="")

    def _flush_constant(self) -> None:
        if self._constant:
            self._pieces.append(pa.scalar(self._constant, pa.binary()))
            self._sizes += len(self._constant)
            self._constant = b""

    def _flush_short(self) -> None:
        if not self._short:
            return
        parts, self._short = self._short, []
        data = parts[0][0] if len(parts) == 1 else np.concatenate([part for part, _ in parts], axis=1)
        if all(used is None for _, used in parts):
            sizes = np.full(self._count, data.shape[1])
            flat = np.ascontiguousarray(data).reshape(-1)
        else:
            mask = np.concatenate(
                [np.ones(part.shape, np.bool_) if used is None else used for part, used in parts], axis=1
            )
            sizes = mask.sum(axis=1)
            flat = data[mask]
        self._sizes += sizes
        self._pieces.append(binary_array(flat, sizes))


def binary_array(data: Bytes, sizes: npt.NDArray[np.int64]) -> pa.BinaryArray:
    """Return the binary array of consecutive values of these sizes."""
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return pa.Array.from_buffers(pa.binary(), len(sizes), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
