"""Checksums of log blocks, which the format does not define.

Corruption of an Avro block cannot be detected from the format alone. Blocks written by pyhudi therefore have hashes of
their headers and content in a header that other readers ignore: BLOCK_IDENTIFIER held the attempt and the number of a
block in release 0.14, both -1 if unknown, and readers ignore what follows. Blocks without hashes are read without this
check.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

import xxhash

_START = "-1,-1,xxh3="
BLOCK_IDENTIFIER = 6


def block_identifier(kind: int, headers: Mapping[int, str], content: Iterable[bytes | memoryview]) -> str:
    """Return the value of BLOCK_IDENTIFIER for a block with these other headers and these parts of content."""
    return f"{_START}{hash_headers(kind, headers)},{hash_content(content)}"


def hashes(headers: Mapping[int, str]) -> tuple[str, str] | None:
    """Return the hashes of headers and content of a block, or None."""
    text = headers.get(BLOCK_IDENTIFIER, "")
    parts = text.removeprefix(_START).split(",")
    return (parts[0], parts[1]) if text.startswith(_START) and len(parts) == 2 else None


def is_misplaced(headers: Mapping[int, str]) -> bool:
    """Return True if the hashes are under another key, which means that the key is corrupt."""
    return any(value.startswith(_START) for key, value in headers.items() if key != BLOCK_IDENTIFIER)


def hash_headers(kind: int, headers: Mapping[int, str]) -> str:
    """Return the hash of the type and the headers of a block except BLOCK_IDENTIFIER, independent of their order."""
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
