"""Checksums of blocks, which the format does not have.

An Avro block has nothing that tells a damaged value from another value. Blocks written here therefore carry hashes of
their headers and of their content, in a header that readers of the format take for absent: BLOCK_IDENTIFIER was the
attempt and the number of a block in release 0.14, both -1 if unknown, and whatever follows them is not looked at.
Blocks without hashes are read as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

import xxhash

_START = "-1,-1,xxh3="
BLOCK_IDENTIFIER = 6


def seal(kind: int, headers: Mapping[int, str], content: Iterable[bytes | memoryview]) -> str:
    """Return the value of BLOCK_IDENTIFIER for a block with these other headers and these parts of content."""
    return f"{_START}{hash_headers(kind, headers)},{hash_content(content)}"


def hashes(headers: Mapping[int, str]) -> tuple[str, str] | None:
    """Return the hashes of headers and content that a block carries, or None."""
    text = headers.get(BLOCK_IDENTIFIER, "")
    parts = text.removeprefix(_START).split(",")
    return (parts[0], parts[1]) if text.startswith(_START) and len(parts) == 2 else None


def is_misplaced(headers: Mapping[int, str]) -> bool:
    """Return True if the hashes are under another key: that key was damaged."""
    return any(value.startswith(_START) for key, value in headers.items() if key != BLOCK_IDENTIFIER)


def hash_headers(kind: int, headers: Mapping[int, str]) -> str:
    """Return the hash of a block's type and of its headers except BLOCK_IDENTIFIER, in whatever order."""
    state = xxhash.xxh3_64(struct.pack(">i", kind))
    for key in sorted(headers):
        if key != BLOCK_IDENTIFIER:
            value = headers[key].encode()
            state.update(struct.pack(">ii", key, len(value)))
            state.update(value)
    return state.hexdigest()


def hash_content(content: Iterable[bytes | memoryview]) -> str:
    """Return the hash of a content in parts."""
    state = xxhash.xxh3_64()
    for part in content:
        state.update(part)
    return state.hexdigest()
