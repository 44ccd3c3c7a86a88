"""Thrift's compact protocol as plain values: structs are taken apart and put together without knowing what they mean.

What is not touched comes out as it went in. Source: the compact protocol specification of Apache Thrift.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

from pyhudi.errors import FormatError


class Kind(IntEnum):
    """Types of values, by their code on the wire."""

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


@dataclass(frozen=True, slots=True)
class Value:
    """A value with its type: integers as on the wire (zigzag), doubles and texts as bytes, lists as `Items`, maps as
    `Pairs`, structs as `Struct`."""

    kind: Kind
    data: Any


@dataclass(frozen=True, slots=True)
class Items:
    """A list or set."""

    kind: int
    values: list[Any]


@dataclass(frozen=True, slots=True)
class Pairs:
    """A map; without entries it has no types."""

    kinds: int
    entries: list[tuple[Any, Any]]


Struct: TypeAlias = dict[int, Value]
"""Fields by number, in the order of the wire."""


def read_struct(data: bytes) -> Struct:
    """The struct that bytes begin with.

    Raises:
        FormatError: they do not hold one.
    """
    try:
        return _read_struct(io.BytesIO(data))
    except (IndexError, ValueError, RecursionError) as e:
        raise FormatError(f"not a struct of Thrift's compact protocol: {e}") from e


def write_struct(fields: Struct) -> bytes:
    """A struct's bytes."""
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


def _read_struct(source: io.BytesIO) -> Struct:
    fields: Struct = {}
    number = 0
    while header := _byte(source):
        kind, step = Kind(header & 15), header >> 4
        number = number + step if step else _signed(_varint(source))
        data = None if kind in (Kind.TRUE, Kind.FALSE) else _read(source, kind)
        fields[number] = Value(kind, data)
    return fields


def _read(source: io.BytesIO, kind: int) -> Any:
    match kind:
        case Kind.TRUE | Kind.FALSE | Kind.BYTE:  # booleans are bytes in lists and maps
            return _byte(source)
        case Kind.I16 | Kind.I32 | Kind.I64:
            return _varint(source)
        case Kind.DOUBLE:
            return _exactly(source, 8)
        case Kind.BINARY:
            return _exactly(source, _varint(source))
        case Kind.LIST | Kind.SET:
            header = _byte(source)
            size = header >> 4 if header >> 4 < 15 else _varint(source)
            return Items(header & 15, [_read(source, header & 15) for _ in range(size)])
        case Kind.MAP:
            size = _varint(source)
            kinds = _byte(source) if size else 0
            return Pairs(kinds, [(_read(source, kinds >> 4), _read(source, kinds & 15)) for _ in range(size)])
        case Kind.STRUCT:
            return _read_struct(source)
    raise ValueError(f"type {kind}")


def _write_struct(out: bytearray, fields: Struct) -> None:
    last = 0
    for number, value in fields.items():
        if 0 < number - last < 16:
            out.append((number - last) << 4 | value.kind)
        else:
            out.append(value.kind)
            _write_varint(out, number << 1 if number >= 0 else ~(number << 1))
        last = number
        if value.kind not in (Kind.TRUE, Kind.FALSE):
            _write(out, value.kind, value.data)
    out.append(0)


def _write(out: bytearray, kind: int, data: Any) -> None:
    match kind:
        case Kind.TRUE | Kind.FALSE | Kind.BYTE:
            out.append(data)
        case Kind.I16 | Kind.I32 | Kind.I64:
            _write_varint(out, data)
        case Kind.DOUBLE:
            out += data
        case Kind.BINARY:
            _write_varint(out, len(data))
            out += data
        case Kind.LIST | Kind.SET:
            size = len(data.values)
            out.append(min(size, 15) << 4 | data.kind)
            if size >= 15:
                _write_varint(out, size)
            for item in data.values:
                _write(out, data.kind, item)
        case Kind.MAP:
            _write_varint(out, len(data.entries))
            if data.entries:
                out.append(data.kinds)
            for key, value in data.entries:
                _write(out, data.kinds >> 4, key)
                _write(out, data.kinds & 15, value)
        case _:
            _write_struct(out, data)


def _byte(source: io.BytesIO) -> int:
    return source.read(1)[0]


def _exactly(source: io.BytesIO, size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise ValueError("cut off")
    return data


def _varint(source: io.BytesIO) -> int:
    number = shift = 0
    while True:
        part = _byte(source)
        number |= (part & 127) << shift
        if part < 128:
            return number
        shift += 7


def _write_varint(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def _signed(zigzag: int) -> int:
    return (zigzag >> 1) ^ -(zigzag & 1)
