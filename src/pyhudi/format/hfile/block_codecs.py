"""Compression codecs of HFile blocks, by their HBase numbers in the trailer.

Apache Hudi and pyhudi write gzip and uncompressed blocks. Releases that write with HBase support other codecs
(``hoodie.hfile.compression.algorithm``), which are read if a library is available. Snappy and LZ4 use Hadoop's framing:
the uncompressed size, then pieces with their sizes, as numbers of four bytes.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Callable
from enum import IntEnum

import pyarrow as pa

from pyhudi.errors import FormatError

_SIZE = struct.Struct(">I")


class Codec(IntEnum):
    """Numbers of compression codecs in the trailer."""

    LZO = 0
    GZIP = 1
    NONE = 2
    SNAPPY = 3
    LZ4 = 4
    BZIP2 = 5
    ZSTD = 6


_LEAST, _MAX_RATIO = 64, {Codec.GZIP: 1100, Codec.SNAPPY: 64, Codec.LZ4: 256, Codec.BZIP2: 50_000, Codec.ZSTD: 50_000}
"""Approximate maximum compression ratio of each codec; a payload that claims more is corrupt."""


def decompress(payload: memoryview, size: int, codec: Codec) -> bytes:
    """Decompress a payload to ``size`` bytes.

    Raises:
        FormatError: The payload is corrupt, or the codec is not supported.
    """
    if codec is Codec.NONE:
        plain = bytes(payload)
    elif codec not in _DECODERS:
        raise FormatError(
            f"cannot read HFile blocks compressed with {codec.name}: no library is available. Let Apache Hudi "
            "rebuild the metadata table with hoodie.hfile.compression.algorithm=GZ"
        )
    elif size < 0 or size > max(len(payload), _LEAST) * _MAX_RATIO[codec]:
        raise FormatError(f"an HFile block of {len(payload)} bytes cannot decompress to {size}")
    else:
        try:
            plain = _DECODERS[codec](payload, size)
        except (zlib.error, OSError, ValueError, struct.error) as error:
            raise FormatError(f"cannot decompress an HFile block: {error}") from error
    if len(plain) != size:
        raise FormatError(f"an HFile block decompresses to {len(plain)} instead of {size} bytes")
    return plain


def _gzip(payload: memoryview, size: int) -> bytes:
    inflate = zlib.decompressobj(31)
    plain = inflate.decompress(payload, size + 1)
    if len(plain) == size and not inflate.eof:
        # The end of the stream, with its checksum, may not have been processed yet.
        plain += inflate.decompress(inflate.unconsumed_tail, 1)
        if not inflate.eof:
            raise FormatError("the compressed payload of an HFile block is truncated")
    return plain


def _bzip2(payload: memoryview, size: int) -> bytes:
    stream = bz2.BZ2Decompressor()
    plain = stream.decompress(payload, size + 1)
    if len(plain) == size and not stream.eof:
        plain += stream.decompress(b"", 1)
        if not stream.eof:
            raise FormatError("the compressed payload of an HFile block is truncated")
    return plain


def _zstd(payload: memoryview, size: int) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(payload), "zstd") as stream:
        plain: bytes = stream.read(size + 1)
    return plain


def _snappy(payload: memoryview, size: int) -> bytes:
    return _framed(payload, size, "snappy", _snappy_size)


def _lz4(payload: memoryview, size: int) -> bytes:
    return _framed(payload, size, "lz4_raw", _lz4_size)


_DECODERS: dict[Codec, Callable[[memoryview, int], bytes]] = {
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.BZIP2: _bzip2,
    Codec.ZSTD: _zstd,
}


def _framed(payload: memoryview, size: int, name: str, size_of: Callable[[memoryview], int]) -> bytes:
    """Decompress Hadoop's frames."""
    codec = pa.Codec(name)
    parts: list[bytes] = []
    at = total = 0
    while at < len(payload):
        (left,) = _SIZE.unpack_from(payload, at)
        at += _SIZE.size
        while left:
            (length,) = _SIZE.unpack_from(payload, at)
            at += _SIZE.size
            piece = payload[at : at + length]
            if len(piece) != length:
                raise FormatError("a compressed piece of an HFile block is truncated")
            plain_size = size_of(piece)
            total += plain_size
            if not 0 < plain_size <= left or total > size:
                raise FormatError(f"a piece of an HFile block has {plain_size} bytes, but {left} are left")
            parts.append(codec.decompress(piece, plain_size, asbytes=True))
            at += length
            left -= plain_size
    return b"".join(parts)


def _snappy_size(piece: memoryview) -> int:
    """Return the uncompressed size at the start of a piece compressed with Snappy."""
    result = 0
    for shift, byte in zip(range(0, 35, 7), piece[:5], strict=False):
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result
    raise FormatError("a number in an HFile block compressed with Snappy does not end")


def _lz4_size(piece: memoryview) -> int:
    """Return the uncompressed size of an LZ4 block, which only its sequences determine: literals, then repetitions."""
    at = total = 0
    end = len(piece)
    while at < end:
        token = piece[at]
        count, at = _lz4_length(piece, at + 1, token >> 4)
        total, at = total + count, at + count
        if at >= end:
            break
        count, at = _lz4_length(piece, at + 2, token & 15)
        total += count + 4
    return total


def _lz4_length(piece: memoryview, at: int, length: int) -> tuple[int, int]:
    """Return a length and the position after it: 15 is followed by more bytes as long as they are 255."""
    if length < 15:
        return length, at
    while at < len(piece):
        length, at = length + piece[at], at + 1
        if piece[at - 1] < 255:
            break
    return length, at
