"""The framing of log files: blocks of a type with a header map and content.

Used for file-group logs (``.<file id>_….log.<n>_<token>``) and for the archived timeline of version 6. All integers are
big-endian. A broken block (a writer died) is skipped by looking for the next magic, as Apache Hudi does.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from pyhudi.errors import FormatError

MAGIC = b"#HUDI#"
_LENGTH = struct.Struct(">q")
_INT = struct.Struct(">i")


class BlockType(IntEnum):
    """Ordinals as they stand in files."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class Header(IntEnum):
    """Keys of a block's header map."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


@dataclass(frozen=True, slots=True)
class LogBlock:
    """One block: ``headers`` by ordinal (unknown ordinals are kept), ``content`` a view into the file's bytes,
    ``offset`` where the block's magic stands."""

    type: BlockType
    headers: Mapping[int, str]
    content: memoryview
    offset: int


def read_blocks(data: bytes | memoryview) -> Iterator[LogBlock]:
    """The whole blocks of a log file, in file order; broken stretches are left out.

    Raises:
        FormatError: the file does not begin with the magic, or a whole block has a type or layout that is unknown.
    """
    view = memoryview(data)
    if len(view) and bytes(view[: len(MAGIC)]) != MAGIC:
        raise FormatError(f"not a log file: it starts with {bytes(view[:6])!r} instead of {MAGIC!r}")
    at = 0
    raw = bytes(data) if not isinstance(data, bytes) else data
    while at < len(raw):
        end = _block_end(raw, at)
        if end is None:
            at = raw.find(MAGIC, at + len(MAGIC))
            if at < 0:
                return
            continue
        yield _parse(view, at, end)
        at = end


def _block_end(raw: bytes, at: int) -> int | None:
    """Where the block at ``at`` ends, or None when it is corrupt."""
    start = at + len(MAGIC) + _LENGTH.size
    if not raw.startswith(MAGIC, at) or start > len(raw):
        return None
    length: int = _LENGTH.unpack_from(raw, at + len(MAGIC))[0]
    end = start + length
    if length < 24 or end > len(raw):
        return None
    if _LENGTH.unpack_from(raw, end - _LENGTH.size)[0] != length + len(MAGIC):
        return None
    if end < len(raw) and not raw.startswith(MAGIC, end):
        return None
    return end


def _parse(view: memoryview, at: int, end: int) -> LogBlock:
    try:
        pos = at + len(MAGIC) + _LENGTH.size
        version, kind = struct.unpack_from(">ii", view, pos)
        if version != 1:
            raise FormatError(f"log block at offset {at} has format version {version}; only version 1 is known")
        headers, pos = _parse_map(view, pos + 8)
        (size,) = _LENGTH.unpack_from(view, pos)
        pos += _LENGTH.size
        if size < 0 or pos + size > end - _LENGTH.size:
            raise FormatError(f"log block at offset {at} has content of {size} bytes, more than the block")
        return LogBlock(BlockType(kind), headers, view[pos : pos + size], at)
    except (struct.error, ValueError) as e:
        if isinstance(e, FormatError):
            raise
        raise FormatError(f"log block at offset {at} cannot be parsed: {e}") from e


def _parse_map(view: memoryview, pos: int) -> tuple[dict[int, str], int]:
    (count,) = _INT.unpack_from(view, pos)
    pos += _INT.size
    if not 0 <= count <= (len(view) - pos) // 8:
        raise ValueError(f"a header map with {count} entries")
    result: dict[int, str] = {}
    for _ in range(count):
        key, length = struct.unpack_from(">ii", view, pos)
        pos += 8
        if not 0 <= length <= len(view) - pos:
            raise ValueError(f"a header of {length} bytes")
        result[key] = bytes(view[pos : pos + length]).decode()
        pos += length
    return result, pos


def avro_datums(content: memoryview) -> Iterator[memoryview]:
    """The Avro-encoded records of an AVRO_DATA block's content; the writer's schema is in its SCHEMA header.

    Raises:
        FormatError: the content version is unknown or a record runs past the end.
    """
    if len(content) < 8:
        raise FormatError(f"Avro data block of {len(content)} bytes is too short")
    version, count = struct.unpack_from(">ii", content, 0)
    if not 1 <= version <= 3:
        raise FormatError(f"Avro data block has content version {version}; versions 1 to 3 are known")
    pos = 8
    for number in range(count):
        if pos + 4 > len(content):
            raise FormatError(f"Avro data block ends before record {number} of {count}")
        (length,) = _INT.unpack_from(content, pos)
        pos += 4
        if length < 0 or pos + length > len(content):
            raise FormatError(f"record {number} of {count} runs past the end of its Avro data block")
        yield content[pos : pos + length]
        pos += length
