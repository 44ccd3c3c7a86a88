"""Components of HFiles: checksummed blocks, trailer, numbers and keys.

A block has a header of 33 bytes, a payload (compressed by the file's codec) and checksums of both. A key is a row
followed by ten bytes that are the same in every key of Hudi's; releases since 1.1 omit them in index entries.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from pyhudi.errors import FormatError
from pyhudi.format.hfile.block_codecs import Codec, decompress
from pyhudi.format.protobuf import bytes_of, read_fields, read_varint
from pyhudi.format.varint import unsigned

MAGIC_SIZE = 8
DATA_MAGIC = b"DATABLK*"
ROOT_INDEX_MAGIC = b"IDXROOT2"
LEAF_INDEX_MAGIC = b"IDXLEAF2"
INTERMEDIATE_INDEX_MAGIC = b"IDXINTE2"
FILE_INFO_MAGIC = b"FILEINF2"
TRAILER_MAGIC = b'TRABLK"$'

BLOCK_HEADER = struct.Struct(">8siiqbii")
"""Magic, size on disk without header, uncompressed size of the payload, offset of the previous block of the kind,
checksum type, bytes per checksum, size on disk of header and payload."""

TRAILER_SIZE = 4096
MAJOR_VERSION = 3

CHECKSUM_CRC32 = 1

KEY_TAIL = b"\x00" + struct.pack(">q", (1 << 63) - 1) + b"\x04"
"""Bytes after the row in a key: no column family, maximum timestamp, type Put."""


@dataclass(frozen=True, slots=True)
class Trailer:
    """Trailer of an HFile: offsets of its sections and its settings."""

    file_info_offset: int
    load_on_open_offset: int
    data_index_count: int
    meta_index_count: int
    entry_count: int
    index_levels: int
    codec: Codec
    comparator: str


def read_block(data: memoryview, magics: tuple[bytes, ...], codec: Codec) -> tuple[bytes, int]:
    """Return the payload of the block at the start of the bytes, and its size on disk.

    Checksums of HBase's type CRC32, as written by Apache Hudi, are verified; those of type CRC32C are not, as in other
    readers.

    Raises:
        FormatError: The bytes are not a block of these kinds, or are corrupt.
    """
    if len(data) < BLOCK_HEADER.size:
        raise FormatError(f"an HFile block needs {BLOCK_HEADER.size} bytes, but has {len(data)}")
    magic, size, plain_size, _, checksum, chunk, covered = BLOCK_HEADER.unpack_from(data)
    if magic not in magics:
        raise FormatError(f"an HFile block has kind {magic!r}; expected {b', '.join(magics)!r}")
    end = BLOCK_HEADER.size + size
    if not BLOCK_HEADER.size <= covered <= end <= len(data):
        raise FormatError(f"an HFile block of {size} bytes, {covered} of them covered, in {len(data)}")
    if checksum == CHECKSUM_CRC32:
        verify_checksums(data[:covered], data[covered:end], chunk)
    return decompress(data[BLOCK_HEADER.size : covered], plain_size, codec), end


def verify_checksums(covered: memoryview, stored: memoryview, chunk: int) -> None:
    """Compare the stored CRC32 checksums of a block with those of its bytes, one for every ``chunk`` of them.

    Raises:
        FormatError: They do not match.
    """
    if chunk < 1:
        raise FormatError(f"an HFile block with a checksum for every {chunk} bytes")
    sums = [zlib.crc32(covered[at : at + chunk]) for at in range(0, len(covered), chunk)]
    if bytes(stored) != struct.pack(f">{len(sums)}I", *sums):
        raise FormatError("the checksums of an HFile block do not match")


def parse_trailer(data: memoryview) -> Trailer:
    """Parse the trailer in the last `TRAILER_SIZE` bytes of a file.

    Raises:
        FormatError: The bytes are not a trailer, or have an unsupported version or feature.
    """
    if len(data) != TRAILER_SIZE or bytes(data[:MAGIC_SIZE]) != TRAILER_MAGIC:
        raise FormatError("not an HFile: it has no trailer")
    major = int.from_bytes(data[-3:], "big")
    if major != MAJOR_VERSION:
        raise FormatError(f"unsupported HFile version {major}; only version {MAJOR_VERSION} is supported")
    length, at = read_varint(data, MAGIC_SIZE)
    fields = {number: value for number, _, value in read_fields(data[at : at + length])}
    numbers = {number: value for number, value in fields.items() if isinstance(value, int)}
    if 13 in fields:
        raise FormatError("encrypted HFiles are not supported")
    try:
        comparator = fields.get(11, b"")
        return Trailer(
            file_info_offset=numbers[1],
            load_on_open_offset=numbers[2],
            data_index_count=numbers.get(5, 0),
            meta_index_count=numbers.get(6, 0),
            entry_count=numbers.get(7, 0),
            index_levels=numbers.get(8, 1),
            codec=Codec(numbers.get(12, Codec.NONE)),
            comparator=comparator.decode() if isinstance(comparator, bytes) else "",
        )
    except (KeyError, ValueError) as error:
        raise FormatError(f"the trailer of an HFile is incomplete or has an unknown codec: {error}") from error


def parse_file_info(payload: bytes) -> dict[str, bytes]:
    """Parse the file info entries by name from the payload of their block.

    Raises:
        FormatError: The payload is invalid.
    """
    if payload[:4] != b"PBUF":
        raise FormatError(f"the file info of an HFile starts with {payload[:4]!r}")
    length, at = read_varint(payload, 4)
    result: dict[str, bytes] = {}
    for number, _, entry in read_fields(payload[at : at + length]):
        pair = read_fields(entry) if number == 1 and isinstance(entry, bytes) else []
        names, values = bytes_of(pair, 1), bytes_of(pair, 2)
        if not names or not values:
            raise FormatError("the file info of an HFile has an invalid entry")
        result[names[-1].decode("utf-8", "replace")] = values[-1]
    return result


def hadoop_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return Hadoop's variable-length number at a position, and the position after it."""
    if at >= len(data):
        raise FormatError("an HFile index ends within a number")
    first = data[at] - 256 if data[at] > 127 else data[at]
    if first >= -112:
        return first, at + 1
    length = -(first + 112) if first >= -120 else -(first + 120)
    raw = data[at + 1 : at + 1 + length]
    if len(raw) != length:
        raise FormatError("an HFile index ends within a number")
    value = int.from_bytes(raw, "big")
    return (value if first >= -120 else ~value), at + 1 + length


def hadoop_number(value: int) -> bytes:
    """Return a non-negative number in Hadoop's variable-length encoding; see `hadoop_varint`."""
    if value < 128:
        return bytes((value,))
    size = (value.bit_length() + 7) // 8
    return bytes((256 - 112 - size,)) + value.to_bytes(size, "big")


def protobuf_bytes(field: int, value: bytes) -> bytes:
    """Return a protobuf field of bytes with its number."""
    return unsigned(field << 3 | 2) + unsigned(len(value)) + value


def full_key(row: bytes) -> bytes:
    """Return the key of a row, with its tail."""
    return struct.pack(">H", len(row)) + row + KEY_TAIL


def row_of(key: bytes) -> bytes:
    """Return the row of a key, which has the tail or, as in index entries of releases since 1.1, none."""
    if len(key) < 2:
        raise FormatError(f"an HFile key of {len(key)} bytes")
    end = 2 + int.from_bytes(key[:2], "big")
    if len(key) not in (end, end + len(KEY_TAIL)):
        raise FormatError(f"an HFile key of {len(key)} bytes with a row of {end - 2}")
    return key[2:end]
