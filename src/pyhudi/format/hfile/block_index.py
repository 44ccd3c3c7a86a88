"""Index of an HFile: offsets and first keys of its blocks."""

from __future__ import annotations

import itertools
import struct
from typing import NamedTuple

from pyhudi.errors import FormatError
from pyhudi.format.hfile import hfile_blocks as blocks

_ENTRY = struct.Struct(">qi")
_INT = struct.Struct(">i")


class IndexEntry(NamedTuple):
    """Index entry of a block: its first key, its offset, and its size on disk in bytes."""

    key: bytes
    offset: int
    size: int


_MIDDLE = 16
"""Bytes after the entries of the root of a large index, which describe its middle."""


def root_entries(payload: bytes, count: int, limit: int, *, levels: int = 1) -> list[IndexEntry]:
    """Return the entries of the root of the data index. ``limit`` is the end of the blocks. Only an index with several
    ``levels`` has its middle noted.

    Raises:
        FormatError: The payload is not an index with that number of entries.
    """
    entries = index_entries(payload, count, limit, behind=_MIDDLE if levels > 1 else 0)
    return [IndexEntry(blocks.row_of(e.key), e.offset, e.size) for e in entries]


def index_entries(payload: bytes, count: int, limit: int, *, behind: int = 0) -> list[IndexEntry]:
    """Return the entries of an index without levels, as that of meta blocks, with unmodified keys.

    Args:
        payload: Content of the block of the index.
        count: Number of entries.
        limit: End of the blocks that it may refer to.
        behind: Number of bytes that may follow the entries.

    Raises:
        FormatError: The payload is not an index with that number of entries.
    """
    if not 0 <= count <= len(payload) // (_ENTRY.size + 1):
        raise FormatError(f"an HFile index of {len(payload)} bytes cannot have {count} entries")
    result = []
    at = 0
    for _ in range(count):
        if at + _ENTRY.size > len(payload):
            raise FormatError("an HFile index ends within an entry")
        offset, size = _ENTRY.unpack_from(payload, at)
        length, at = blocks.hadoop_varint(payload, at + _ENTRY.size)
        if not 0 <= length <= len(payload) - at:
            raise FormatError(f"an HFile index has a key of invalid length {length}")
        result.append(_entry(payload[at : at + length], offset, size, limit))
        at += length
    if len(payload) - at not in (0, behind):
        raise FormatError(f"an HFile index of {count} entries has {len(payload) - at} trailing bytes")
    return result


def leaf_entries(payload: bytes, limit: int) -> list[IndexEntry]:
    """Return the entries of an index block below the root."""
    try:
        (count,) = _INT.unpack_from(payload)
        if not 0 <= count <= len(payload) // _INT.size:
            raise FormatError(f"an HFile index of {len(payload)} bytes cannot have {count} entries")
        places = struct.unpack_from(f">{count + 1}i", payload, _INT.size)
        start = _INT.size * (count + 2)
        result = []
        for begin, end in itertools.pairwise(places):
            if not 0 <= begin <= end <= len(payload) - start:
                raise FormatError("an HFile index has entries outside of its block")
            offset, size = _ENTRY.unpack_from(payload, start + begin)
            key = payload[start + begin + _ENTRY.size : start + end]
            result.append(_entry(blocks.row_of(key), offset, size, limit))
        return result
    except struct.error as error:
        raise FormatError(f"cannot parse an HFile index: {error}") from error


def _entry(key: bytes, offset: int, size: int, limit: int) -> IndexEntry:
    if not 0 <= offset <= offset + size <= limit:
        raise FormatError(f"an HFile index refers to a block of {size} bytes at {offset}, beyond the blocks")
    return IndexEntry(key, offset, size)
