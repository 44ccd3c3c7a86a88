"""Positions of decoders in the values of one buffer: one position per value, advanced together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.format.binary_gather import gather

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_PAD = 16
"""Bytes after the values that may be read before a value's end is checked."""
_LONGEST = 10
"""Maximum length of a varint in bytes."""


class BufferCursors:
    """Positions in ``data``, each of which stays within its value.

    ``data`` is `_PAD` bytes longer than the values. Methods raise FormatError if a value is too short.
    """

    __slots__ = ("_at", "_data", "_ends")

    def __init__(self, data: Bytes, at: Ints, ends: Ints) -> None:
        self._data, self._at, self._ends = data, at, ends

    @classmethod
    def from_array(cls, values: pa.BinaryArray) -> BufferCursors:
        """Return cursors at the starts of a binary array's values, which must not be null."""
        if values.null_count:
            raise FormatError(f"{values.null_count} of {len(values)} Avro records are null")
        if not len(values):
            return cls(np.zeros(_PAD, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64))
        offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset).astype(np.int64)
        first, last = int(offsets[0]), int(offsets[-1])
        data = np.zeros(last - first + _PAD, np.uint8)
        data[: last - first] = np.frombuffer(values.buffers()[2] or b"", np.uint8)[first:last]
        offsets -= first
        return cls(data, offsets[:-1].copy(), offsets[1:])

    def __len__(self) -> int:
        return len(self._at)

    def positions(self) -> Ints:
        """Current positions."""
        return self._at.copy()

    def left(self, rows: Ints) -> Ints:
        """Return the number of bytes from each position to its end."""
        return self._ends[rows] - self._at[rows]

    def some(self, rows: Ints) -> BufferCursors:
        """Return independent cursors for some rows."""
        return BufferCursors(self._data, self._at[rows], self._ends[rows])

    def at(self, positions: Ints, rows: Ints) -> BufferCursors:
        """Return cursors at other positions in the values of these rows."""
        return BufferCursors(self._data, positions, self._ends[rows])

    def move(self, rows: Ints, other: BufferCursors) -> None:
        """Set the positions of some rows to those of ``other``."""
        self._at[rows] = other._at

    def check_finished(self) -> None:
        """Raise FormatError unless all positions are at their ends."""
        wrong = np.flatnonzero(self._at != self._ends)
        if len(wrong):
            over = int(self._ends[wrong[0]] - self._at[wrong[0]])
            raise FormatError(f"an Avro record has {over} trailing bytes")

    def skip(self, sizes: Ints) -> None:
        """Advance by the given number of bytes."""
        if len(sizes) and int(sizes.min()) < 0:
            raise FormatError(f"invalid size {sizes.min()} of a value in an Avro record")
        self._at += sizes
        self._check()

    def varints(self) -> Ints:
        """Read one varint per row."""
        if not len(self._at):
            return np.empty(0, np.int64)
        part = self._data[self._at]
        if part.max() < 0x80:
            self._at += 1
            self._check()
            small = part.astype(np.int64)
            return (small >> 1) ^ -(small & 1)
        raw = (part & 0x7F).astype(np.uint64)
        self._at += 1
        rows = np.flatnonzero(part >= 0x80)
        shift = 7
        while len(rows):
            if shift >= 7 * _LONGEST:
                raise FormatError("a varint in an Avro record is too long")
            at = np.minimum(self._at[rows], len(self._data) - 1)
            part = self._data[at]
            raw[rows] |= (part & 0x7F).astype(np.uint64) << np.uint64(shift)
            self._at[rows] += 1
            rows = rows[part >= 0x80]
            shift += 7
        self._check()
        result: Ints = (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64)
        return result

    def branches(self, count: int) -> int | Ints:
        """Read the branch of a union of ``count`` types of every row; a single number if it is the same in all."""
        if not len(self._at):
            return 0
        part = self._data[self._at]
        if (part == part[0]).all() and part[0] < 0x80 and not part[0] & 1:
            self._at += 1
            self._check()
            numbers: int | Ints = int(part[0]) >> 1
            largest = smallest = numbers
        else:
            numbers = self.varints()
            largest, smallest = int(numbers.max()), int(numbers.min())
        if smallest < 0 or largest >= count:
            raise FormatError(
                f"an Avro union of {count} types has a value with branch {largest if largest >= count else smallest}"
            )
        return numbers

    def sizes(self) -> Ints:
        """Read the sizes in bytes of the values that follow."""
        sizes = self.varints()
        if len(sizes) and int(sizes.min()) < 0:
            raise FormatError(f"invalid size {sizes.min()} of a value in an Avro record")
        return sizes

    def take_bytes(self, sizes: Ints) -> pa.BinaryArray:
        """Read the given number of bytes of every row."""
        start = self._at.copy()
        self.skip(sizes)
        return gather(self._data, start, sizes)

    def take_plain(self, width: int) -> Bytes:
        """Read the same number of bytes of every row, as a matrix."""
        start = self._at.copy()
        self.skip(np.full(len(start), width, np.int64))
        taken: Bytes = self._data[start[:, None] + np.arange(width)]
        return taken

    def walk(self, row: int, count: int, shape: str) -> Ints:
        """Advance a row over ``count`` items of a shape (``t``: text, ``v``: varint, ``b``: byte). Return their
        starts."""
        first = int(self._at[row])
        end = int(self._ends[row]) - first
        data = self._data[first : first + end + _PAD].tobytes()
        at = 0
        starts = np.empty(count, np.int64)
        for i in range(count):
            starts[i] = at
            for part in shape:
                if part == "b":
                    at += 1
                    continue
                if part == "t":
                    size = shift = 0
                    while True:
                        byte = data[at]
                        at += 1
                        size |= (byte & 0x7F) << shift
                        shift += 7
                        if byte < 0x80:
                            break
                        if at >= end:
                            raise FormatError("an Avro record ends within a list")
                    if size & 1:
                        raise FormatError("a value in an Avro record has a negative size")
                    at += size >> 1
                else:
                    while data[at] >= 0x80:
                        at += 1
                        if at >= end:
                            raise FormatError("an Avro record ends within a list")
                    at += 1
                if at > end:
                    raise FormatError("an Avro record ends within a list")
        if at > end:
            raise FormatError("an Avro record ends within a list")
        self._at[row] = first + at
        return starts + first

    def _check(self) -> None:
        if len(self._at) and bool((self._at > self._ends).any()):
            raise FormatError("an Avro record ends before its last field")
