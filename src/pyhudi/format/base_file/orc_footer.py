"""Tail of an ORC file: the few protobuf fields that Hudi needs and that Arrow's ORC writer and reader do not expose.

An ORC file ends with metadata, footer, postscript, and one byte with the length of the postscript. In a compressed
file, metadata and footer are sequences of chunks with a 3-byte little-endian header each (length << 1 | is stored
uncompressed).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.format.varint import unsigned

_NONE, _ZLIB, _SNAPPY, _ZSTD = 0, 1, 2, 5
_DEFAULT_CHUNK = 256 * 1024
_TAIL = 16 * 1024

# field numbers of PostScript, Footer, StripeInformation, StripeFooter and UserMetadataItem
_FOOTER_LENGTH, _COMPRESSION, _CHUNK_SIZE = 1, 2, 3
_STRIPES, _USER_METADATA = 3, 5
_OFFSET, _INDEX_LENGTH, _DATA_LENGTH, _STRIPE_FOOTER_LENGTH = 1, 2, 3, 4
_WRITER_TIMEZONE = 3
_ITEM_NAME, _ITEM_VALUE = 1, 2

Field = tuple[int, int, "int | bytes"]
"""Number, wire type, value: an int for varints (wire type 0), else bytes."""


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a protobuf varint and its end position."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise FormatError("the tail of the ORC file is not valid protobuf")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _fields(data: bytes) -> list[Field]:
    """Parse one level of a protobuf message."""
    fields: list[Field] = []
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = read_varint(data, at)
            fields.append((tag >> 3, wire, value))
            continue
        if wire == 2:
            size, at = read_varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise FormatError(f"the tail of the ORC file has a field of unknown wire type {wire}")
        if at + size > len(data):
            raise FormatError("the tail of the ORC file is truncated")
        fields.append((tag >> 3, wire, data[at : at + size]))
        at += size
    return fields


def _message(fields: list[Field]) -> bytes:
    out = bytearray()
    for number, wire, value in fields:
        out += unsigned(number << 3 | wire)
        if isinstance(value, int):
            out += unsigned(value)
        else:
            out += (unsigned(len(value)) if wire == 2 else b"") + value
    return bytes(out)


def _number(fields: list[Field], number: int, default: int = 0) -> int:
    return next((v for n, _, v in fields if n == number and isinstance(v, int)), default)


def _bytes(fields: list[Field], number: int) -> list[bytes]:
    return [v for n, _, v in fields if n == number and isinstance(v, bytes)]


@dataclass(frozen=True, slots=True)
class _PostScript:
    fields: list[Field]
    length: int

    @classmethod
    def of(cls, tail: bytes) -> _PostScript:
        length = tail[-1] if tail else 0
        if not 0 < length < len(tail):
            raise FormatError("not an ORC file: it has no postscript")
        return cls(_fields(tail[-1 - length : -1]), length)

    @property
    def footer_length(self) -> int:
        return _number(self.fields, _FOOTER_LENGTH)

    @property
    def compression(self) -> int:
        return _number(self.fields, _COMPRESSION)

    @property
    def chunk_size(self) -> int:
        return _number(self.fields, _CHUNK_SIZE, _DEFAULT_CHUNK)


def with_user_metadata(tail: bytes, entries: Mapping[str, str]) -> bytes:
    """Return the tail of an ORC file (at least the whole footer and postscript) with user metadata added to its
    footer."""
    post = _PostScript.of(tail)
    items: list[Field] = []
    for name, value in entries.items():
        item: list[Field] = [(_ITEM_NAME, 2, name.encode()), (_ITEM_VALUE, 2, value.encode())]
        items.append((_USER_METADATA, 2, _message(item)))
    # Fields of a protobuf message may have any order, so additional chunks after the footer are part of it.
    added = _message(items)
    if post.compression != _NONE:
        added = b"".join(
            _chunk(added[at : at + post.chunk_size], post.compression) for at in range(0, len(added), post.chunk_size)
        )
    length = post.footer_length + len(added)
    fields = [(n, w, length if n == _FOOTER_LENGTH else v) for n, w, v in post.fields]
    script = _message(fields)
    return tail[: -1 - post.length] + added + script + bytes([len(script)])


def _chunk(data: bytes, compression: int) -> bytes:
    packed = data
    if compression == _ZLIB:
        deflate = zlib.compressobj(wbits=-15)
        packed = deflate.compress(data) + deflate.flush()
    stored = len(packed) >= len(data)
    body = data if stored else packed
    return (len(body) << 1 | int(stored)).to_bytes(3, "little") + body


def writer_timezone(source: Any) -> str | None:
    """Return the name of the time zone in which the wall-clock times of an ORC file (random access) were written.

    None: the file has no stripe, or its compression (LZ4, LZO) cannot be read here.
    """
    size = source.size()
    tail = _read(source, max(0, size - _TAIL), size)
    post = _PostScript.of(tail)
    if post.compression not in (_NONE, _ZLIB, _SNAPPY, _ZSTD):
        return None
    end = size - 1 - post.length
    footer = _fields(_unpack(_read(source, end - post.footer_length, end), post))
    for stripe in map(_fields, _bytes(footer, _STRIPES)):
        at = _number(stripe, _OFFSET) + _number(stripe, _INDEX_LENGTH) + _number(stripe, _DATA_LENGTH)
        stripe_footer = _fields(_unpack(_read(source, at, at + _number(stripe, _STRIPE_FOOTER_LENGTH)), post))
        return next((zone.decode() for zone in _bytes(stripe_footer, _WRITER_TIMEZONE)), None)
    return None


def _read(source: Any, start: int, end: int) -> bytes:
    if start < 0 or end < start:
        raise FormatError("the tail of the ORC file is inconsistent")
    source.seek(start)
    return bytes(source.read(end - start))


def _unpack(data: bytes, post: _PostScript) -> bytes:
    if post.compression == _NONE:
        return data
    out = bytearray()
    at = 0
    while at + 3 <= len(data):
        header = int.from_bytes(data[at : at + 3], "little")
        body = data[at + 3 : at + 3 + (header >> 1)]
        at += 3 + (header >> 1)
        try:
            out += body if header & 1 else _decompress(body, post.compression)
        except (zlib.error, pa.ArrowInvalid, OSError) as e:
            raise FormatError(f"cannot decompress the tail of the ORC file: {e}") from e
    return bytes(out)


def _decompress(body: bytes, compression: int) -> bytes:
    if compression == _ZLIB:
        return zlib.decompress(body, wbits=-15)
    if compression == _SNAPPY:
        return pa.decompress(body, decompressed_size=read_varint(body, 0)[0], codec="snappy", asbytes=True)  # type: ignore[no-any-return]
    return bytes(pa.CompressedInputStream(pa.BufferReader(body), "zstd").read())
