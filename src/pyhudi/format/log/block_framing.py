"""Serialization of log blocks: headers, content, and the framing documented in `pyhudi.format.log.block_scanner`."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyhudi.errors import FormatError
from pyhudi.format.log.block_checksum import block_identifier
from pyhudi.format.log.log_block import FORMAT_VERSION, MAGIC, ROLLBACK_COMMAND, BlockType, Header

Buffer: TypeAlias = bytes | memoryview

_MAX_BYTES = (1 << 31) - 1
"""Maximum size of a block, because readers use 32-bit lengths."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A block ready to be written. Its bytes are in parts, so that the content is not copied."""

    parts: Sequence[Buffer]
    size: int


def frame(kind: BlockType, headers: Mapping[Header, str], content: Sequence[Buffer] = ()) -> Frame:
    """Return a block with its headers and the parts of its content, and with checksums of both.

    Raises:
        FormatError: The block is too large.
    """
    plain = {int(key): value for key, value in headers.items()}
    sealed = plain | {Header.BLOCK_IDENTIFIER.value: block_identifier(kind, plain, content)}
    entries = [(key, value.encode()) for key, value in sealed.items()]
    header = struct.pack(">i", len(entries)) + b"".join(
        struct.pack(">ii", key, len(value)) + value for key, value in entries
    )
    size = sum(len(part) for part in content)
    # Version and kind, headers, length of the content, content, empty footer, this length again.
    length = 8 + len(header) + 8 + size + 4 + 8
    if length > _MAX_BYTES:
        raise FormatError(f"a log block of {length} bytes exceeds the limit of {_MAX_BYTES}")
    head = MAGIC + struct.pack(">qii", length, FORMAT_VERSION, kind) + header + struct.pack(">q", size)
    tail = struct.pack(">iq", 0, length + len(MAGIC))
    return Frame([head, *content, tail], len(head) + size + len(tail))


def rollback_frame(instant: str, target: str) -> Frame:
    """Return the command that rolls back what ``target`` wrote to the file slice; ``instant`` is the rollback's own."""
    return frame(
        BlockType.COMMAND,
        {
            Header.INSTANT_TIME: instant,
            Header.TARGET_INSTANT_TIME: target,
            Header.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
        },
    )
