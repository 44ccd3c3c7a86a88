"""Thrift's compact protocol as plain values: structs are parsed and serialized without knowledge of their meaning.

Fields that are not changed keep their bytes. Source: the compact protocol specification of Apache Thrift.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

from pyhudi.errors import FormatError


class ThriftType(IntEnum):
    """Wire types of values."""

    TRUE = 1
    FALSE = 2
    BYTE = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    MAP = 11
    STRUCT = 12


class Value(NamedTuple):
    """A value with its type: integers as on the wire (zigzag), doubles and texts as bytes, lists as `ThriftList`, maps
    as `ThriftMap`, structs as `Struct` (or, for writing, as the bytes of `write_struct`)."""

    kind: ThriftType
    data: Any


@dataclass(frozen=True, slots=True)
class ThriftList:
    """A list or set."""

    kind: int
    values: list[Any]


@dataclass(frozen=True, slots=True)
class ThriftMap:
    """A map; without entries it has no types."""

    kinds: int
    entries: list[tuple[Any, Any]]


_KINDS = (0, *ThriftType)
_INTEGERS = frozenset((ThriftType.I16, ThriftType.I32, ThriftType.I64))

Struct: TypeAlias = dict[int, Value]
"""Fields by number, in the order of the wire."""


def read_struct(data: bytes) -> Struct:
    """Parse the struct at the start of the bytes.

    Raises:
        FormatError: The bytes are not such a struct.
    """
    try:
        return _read_struct(data, 0)[0]
    except (IndexError, ValueError, RecursionError) as error:
        raise FormatError(f"not a struct of Thrift's compact protocol: {error}") from error


def write_struct(fields: Struct) -> bytes:
    """Serialize a struct."""
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


def to_int(value: Value) -> int:
    """Return the value as an integer."""
    return _signed(value.data)


def from_int(kind: ThriftType, integer: int) -> Value:
    """Return an integer as a value."""
    return Value(kind, integer << 1 if integer >= 0 else ~(integer << 1))


def _read_struct(data: bytes, at: int) -> tuple[Struct, int]:
    """Return the struct at a position, and the position after it."""
    fields: Struct = {}
    number = 0
    while header := data[at]:
        at += 1
        kind = _KINDS[header & 15]
        if header >> 4:
            number += header >> 4
        else:
            zigzag, at = _varint(data, at)
            number = _signed(zigzag)
        if not kind:
            raise ValueError("type 0")
        if kind <= ThriftType.FALSE:
            fields[number] = Value(kind, None)
        else:
            value, at = _read(data, at, kind)
            fields[number] = Value(kind, value)
    return fields, at + 1


def _read(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    """Return the value at a position, and the position after it."""
    if kind in _INTEGERS:
        return _varint(data, at)
    if kind == ThriftType.BINARY:
        size, at = _varint(data, at)
        return _exactly(data, at, size), at + size
    if kind == ThriftType.STRUCT:
        return _read_struct(data, at)
    if kind in (ThriftType.LIST, ThriftType.SET):
        header = data[at]
        size, at = (header >> 4, at + 1) if header >> 4 < 15 else _varint(data, at + 1)
        values = []
        for _ in range(size):
            value, at = _read(data, at, header & 15)
            values.append(value)
        return ThriftList(header & 15, values), at
    if kind == ThriftType.MAP:
        return _read_map(data, at)
    if kind == ThriftType.DOUBLE:
        return _exactly(data, at, 8), at + 8
    if kind in (ThriftType.TRUE, ThriftType.FALSE, ThriftType.BYTE):  # booleans are bytes in lists and maps
        return data[at], at + 1
    raise ValueError(f"type {kind}")


def _read_map(data: bytes, at: int) -> tuple[ThriftMap, int]:
    size, at = _varint(data, at)
    entries: list[tuple[Any, Any]] = []
    kinds = 0
    if size:
        kinds, at = data[at], at + 1
    for _ in range(size):
        key, at = _read(data, at, kinds >> 4)
        value, at = _read(data, at, kinds & 15)
        entries.append((key, value))
    return ThriftMap(kinds, entries), at


def _write_struct(out: bytearray, fields: Struct) -> None:
    last = 0
    for number, value in fields.items():
        if 0 < number - last < 16:
            out.append((number - last) << 4 | value.kind)
        else:
            out.append(value.kind)
            _write_varint(out, number << 1 if number >= 0 else ~(number << 1))
        last = number
        if value.kind not in (ThriftType.TRUE, ThriftType.FALSE):
            _write(out, value.kind, value.data)
    out.append(0)


def _write(out: bytearray, kind: int, data: Any) -> None:
    if kind in _INTEGERS:
        _write_varint(out, data)
    elif kind == ThriftType.BINARY:
        _write_varint(out, len(data))
        out += data
    elif kind == ThriftType.STRUCT:
        if isinstance(data, bytes):
            out += data
        else:
            _write_struct(out, data)
    elif kind in (ThriftType.LIST, ThriftType.SET):
        size = len(data.values)
        out.append(min(size, 15) << 4 | data.kind)
        if size >= 15:
            _write_varint(out, size)
        for item in data.values:
            _write(out, data.kind, item)
    elif kind == ThriftType.MAP:
        _write_varint(out, len(data.entries))
        if data.entries:
            out.append(data.kinds)
        for key, value in data.entries:
            _write(out, data.kinds >> 4, key)
            _write(out, data.kinds & 15, value)
    elif kind == ThriftType.DOUBLE:
        out += data
    else:
        out.append(data)


def _exactly(data: bytes, at: int, size: int) -> bytes:
    content = data[at : at + size]
    if len(content) < size:
        raise ValueError("cut off")
    return content


def _varint(data: bytes, at: int) -> tuple[int, int]:
    part = data[at]
    at += 1
    number, shift = part & 127, 7
    while part > 127:
        part = data[at]
        at += 1
        number |= (part & 127) << shift
        shift += 7
    return number, at


def _write_varint(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def _signed(zigzag: int) -> int:
    return (zigzag >> 1) ^ -(zigzag & 1)
