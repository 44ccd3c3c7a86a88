"""Protobuf messages, parsed one level at a time: those in HFiles and ORC files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from pyhudi.errors import FormatError
from pyhudi.format.varint import unsigned

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5
"""Wire types."""

Field: TypeAlias = tuple[int, int, "int | bytes"]
"""Number, wire type, value: an int for varints, else bytes."""


def read_varint(data: memoryview | bytes, at: int) -> tuple[int, int]:
    """Return the varint at a position, and the position after it.

    Raises:
        FormatError: The varint is cut off or too long.
    """
    result = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
    raise FormatError("a protobuf message has a number that is cut off or too long")


def read_fields(data: memoryview | bytes) -> list[Field]:
    """Return the fields of a message, in order.

    Raises:
        FormatError: The message is cut off, or has a field of an unknown wire type.
    """
    fields: list[Field] = []
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            value, at = read_varint(data, at)
            fields.append((number, wire, value))
            continue
        if wire == BYTES:
            size, at = read_varint(data, at)
        elif wire in (FIXED_64, FIXED_32):
            size = 8 if wire == FIXED_64 else 4
        else:
            raise FormatError(f"field {number} of a protobuf message has the unknown wire type {wire}")
        if at + size > len(data):
            raise FormatError(f"field {number} of a protobuf message is cut off")
        fields.append((number, wire, bytes(data[at : at + size])))
        at += size
    return fields


def write_fields(fields: Iterable[Field]) -> bytes:
    """Return the message with these fields."""
    out = bytearray()
    for number, wire, value in fields:
        out += unsigned(number << 3 | wire)
        if isinstance(value, int):
            out += unsigned(value)
        else:
            out += (unsigned(len(value)) if wire == BYTES else b"") + value
    return bytes(out)


def number_of(fields: Iterable[Field], number: int, default: int = 0) -> int:
    """Return the value of the first varint with a field number; ``default`` if there is none."""
    return next(
        (value for field_number, _, value in fields if field_number == number and isinstance(value, int)), default
    )


def bytes_of(fields: Iterable[Field], number: int) -> list[bytes]:
    """Return the values of all other fields with a field number."""
    return [value for field_number, _, value in fields if field_number == number and isinstance(value, bytes)]
