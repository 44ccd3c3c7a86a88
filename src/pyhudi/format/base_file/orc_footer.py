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
from pyhudi.format.protobuf import BYTES, Field, bytes_of, number_of, read_fields, read_varint, write_fields

_NONE, _ZLIB, _SNAPPY, _ZSTD = 0, 1, 2, 5
_DEFAULT_CHUNK = 256 * 1024
_TAIL = 16 * 1024

# field numbers of PostScript, Footer, StripeInformation, StripeFooter and UserMetadataItem
_FOOTER_LENGTH, _COMPRESSION, _CHUNK_SIZE = 1, 2, 3
_STRIPES, _USER_METADATA = 3, 5
_OFFSET, _INDEX_LENGTH, _DATA_LENGTH, _STRIPE_FOOTER_LENGTH = 1, 2, 3, 4
_WRITER_TIMEZONE = 3
_ITEM_NAME, _ITEM_VALUE = 1, 2


@dataclass(frozen=True, slots=True)
class _PostScript:
    fields: list[Field]
    length: int

    @classmethod
    def from_tail(cls, tail: bytes) -> _PostScript:
        length = tail[-1] if tail else 0
        if not 0 < length < len(tail):
            raise FormatError("not an ORC file: it has no postscript")
        return cls(read_fields(tail[-1 - length : -1]), length)

    @property
    def footer_length(self) -> int:
        return number_of(self.fields, _FOOTER_LENGTH)

    @property
    def compression(self) -> int:
        return number_of(self.fields, _COMPRESSION)

    @property
    def chunk_size(self) -> int:
        return number_of(self.fields, _CHUNK_SIZE, _DEFAULT_CHUNK)


def with_user_metadata(tail: bytes, entries: Mapping[str, str]) -> bytes:
    """Return the tail of an ORC file (at least the whole footer and postscript) with user metadata added to its
    footer."""
    post = _PostScript.from_tail(tail)
    items: list[Field] = []
    for name, value in entries.items():
        item: list[Field] = [(_ITEM_NAME, BYTES, name.encode()), (_ITEM_VALUE, BYTES, value.encode())]
        items.append((_USER_METADATA, BYTES, write_fields(item)))
    # Fields of a protobuf message may have any order, so additional chunks after the footer are part of it.
    added = write_fields(items)
    if post.compression != _NONE:
        added = b"".join(
            _chunk(added[at : at + post.chunk_size], post.compression) for at in range(0, len(added), post.chunk_size)
        )
    length = post.footer_length + len(added)
    fields = [(n, w, length if n == _FOOTER_LENGTH else v) for n, w, v in post.fields]
    script = write_fields(fields)
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
    post = _PostScript.from_tail(tail)
    if post.compression not in (_NONE, _ZLIB, _SNAPPY, _ZSTD):
        return None
    end = size - 1 - post.length
    footer = read_fields(_unpack(_read(source, end - post.footer_length, end), post))
    for stripe in map(read_fields, bytes_of(footer, _STRIPES)):
        at = number_of(stripe, _OFFSET) + number_of(stripe, _INDEX_LENGTH) + number_of(stripe, _DATA_LENGTH)
        stripe_footer = read_fields(_unpack(_read(source, at, at + number_of(stripe, _STRIPE_FOOTER_LENGTH)), post))
        return next((zone.decode() for zone in bytes_of(stripe_footer, _WRITER_TIMEZONE)), None)
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
        except (zlib.error, pa.ArrowInvalid, OSError) as error:
            raise FormatError(f"cannot decompress the tail of the ORC file: {error}") from error
    return bytes(out)


def _decompress(body: bytes, compression: int) -> bytes:
    if compression == _ZLIB:
        return zlib.decompress(body, wbits=-15)
    if compression == _SNAPPY:
        return pa.decompress(body, decompressed_size=read_varint(body, 0)[0], codec="snappy", asbytes=True)  # type: ignore[no-any-return]
    return bytes(pa.CompressedInputStream(pa.BufferReader(body), "zstd").read())
