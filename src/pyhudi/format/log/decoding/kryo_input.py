"""Kryo's primitive values: numbers and texts, read from bytes in order.

Methods raise FormatError, IndexError, struct.error or ValueError if the bytes end or are invalid.
"""

from __future__ import annotations

import struct
from datetime import date

from pyhudi.errors import FormatError


class KryoInput:
    """A position in the bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._at

    def take(self, length: int) -> bytes:
        """Return the next bytes unchanged."""
        part = self._data[self._at : self._at + length]
        if len(part) != length:
            raise FormatError(f"{length} bytes requested, but {len(part)} are left")
        self._at += length
        return part

    def varint(self) -> int:
        """Read a number of seven bits per byte, low ones first; the ninth byte of a long has eight."""
        result = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            if shift == 56:
                return result | byte << shift
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7

    def long(self) -> int:
        """Read a signed long that is written as an unsigned one."""
        value = self.varint()
        return value - (1 << 64) if value >> 63 else value

    def zigzag(self) -> int:
        """Read a number whose lowest bit is its sign."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def counted(self) -> bytes:
        """Read bytes after their number plus one."""
        length = self.varint() - 1
        if length < 0:
            raise FormatError("null instead of bytes")
        return self.take(length)

    def local_date(self) -> date:
        """Read year, month, day."""
        year = self.varint()
        month, day = self.take(2)
        return date(year, month, day)

    def text(self) -> str:
        """Read a text: ASCII with the last byte marked, or its number of UTF-16 units plus one and each of them."""
        first = self._data[self._at]
        if first & 0x80 == 0:
            end = self._at
            while self._data[end] & 0x80 == 0:
                end += 1
            raw = self.take(end + 1 - self._at)
            return (raw[:-1] + bytes((raw[-1] & 0x7F,))).decode("ascii")
        self._at += 1
        count = first & 0x3F
        if first & 0x40:
            count |= self.varint() << 6
        if not 0 < count <= self.left + 1:
            raise FormatError(f"a text of {count - 1} characters")
        return self._units(count - 1)

    def _units(self, count: int) -> str:
        """Read UTF-16 units of one to three bytes each; characters outside the basic plane are two of them."""
        units = []
        for _ in range(count):
            first = self.take(1)[0]
            if first < 0x80:
                unit = first
            elif first >> 5 == 0b110:
                unit = (first & 0x1F) << 6 | self.take(1)[0] & 0x3F
            elif first >> 4 == 0b1110:
                second, third = self.take(2)
                unit = (first & 0x0F) << 12 | (second & 0x3F) << 6 | third & 0x3F
            else:
                raise FormatError("text that is not in Kryo's form of UTF-8")
            units.append(unit)
        return struct.pack(f">{count}H", *units).decode("utf-16-be")
