"""Protobuf messages."""

from __future__ import annotations

import pytest

from pyhudi.errors import FormatError
from pyhudi.format.protobuf import Field, bytes_of, number_of, read_fields, read_varint, write_fields

FIELDS: list[Field] = [(1, 0, 1 << 63), (2, 2, b"text"), (3, 1, bytes(8)), (2, 2, b""), (100, 5, b"abcd")]


def test_messages() -> None:
    message = write_fields(FIELDS)
    assert read_fields(message) == read_fields(memoryview(message)) == FIELDS
    assert number_of(FIELDS, 1) == 1 << 63
    assert number_of(FIELDS, 2, 7) == 7
    assert bytes_of(FIELDS, 2) == [b"text", b""]


@pytest.mark.parametrize("message", [b"\x0a\x05ab", b"\x08", b"\x08" + b"\xff" * 10, b"\x0b", b"\x0d123", b"\x80"])
def test_damaged_messages(message: bytes) -> None:
    with pytest.raises(FormatError, match="protobuf"):
        read_fields(message)


def test_numbers() -> None:
    assert read_varint(b"\x00\xac\x02\x01", 1) == (300, 3)
