"""Block of a log file: type, headers, and content, which is read on demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from pyhudi.errors import FormatError
from pyhudi.format.log import block_checksum
from pyhudi.format.log.record_positions import decode_positions
from pyhudi.format.range_reader import RangeReader, read_exactly

MAGIC = b"#HUDI#"
"""First bytes of every block."""

FORMAT_VERSION = 1
"""The only log format version written by releases since 0.5."""


class BlockType(IntEnum):
    """Ordinals as stored in files. CORRUPT is never stored: it denotes a range that cannot be read as a block."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


DATA_BLOCKS = frozenset((BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA))
"""Blocks that hold records of the table."""


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


ROLLBACK_COMMAND = "0"
"""The only value of `Header.COMMAND_BLOCK_TYPE`: roll back what `Header.TARGET_INSTANT_TIME` wrote."""


@dataclass(frozen=True, slots=True)
class LogBlock:
    """Block of a log file.

    ``headers`` are by ordinal; unknown ones are kept. ``offset`` is the start of the block (its magic) and ``end`` that
    of the next one. The content is not held in memory: ``content()`` reads it from the file, which must still be open.
    """

    type: BlockType
    headers: Mapping[int, str]
    offset: int
    end: int
    content_offset: int
    content_length: int
    source: RangeReader = field(repr=False, compare=False)

    def content(self) -> memoryview:
        """Read the content.

        Raises:
            FormatError: The file was truncated, or the content does not match the checksum (which only pyhudi's blocks
                have).
        """
        content = read_exactly(self.source, self.content_offset, self.content_length)
        checksums = block_checksum.hashes(self.headers)
        if checksums is not None and checksums[1] != block_checksum.hash_content([content]):
            raise FormatError(f"the content of the log block at offset {self.offset} does not match its checksum")
        return content

    @property
    def instant(self) -> str | None:
        """The instant that wrote the block; archives of version 6 have none."""
        return self.headers.get(Header.INSTANT_TIME)

    @property
    def target_instant(self) -> str | None:
        """Instant that a rollback command rolls back."""
        return self.headers.get(Header.TARGET_INSTANT_TIME)

    @property
    def is_rollback(self) -> bool:
        """True if the block rolls back another instant."""
        return self.type is BlockType.COMMAND and self.headers.get(Header.COMMAND_BLOCK_TYPE) == ROLLBACK_COMMAND

    @property
    def schema(self) -> str | None:
        """Avro JSON of the records as written, including meta columns."""
        return self.headers.get(Header.SCHEMA)

    @property
    def is_partial(self) -> bool:
        """True if the records have only the changed columns."""
        return self.headers.get(Header.IS_PARTIAL, "").lower() == "true"

    @property
    def compacted_times(self) -> tuple[str, ...]:
        """Instants of the blocks that a log compaction merged into this one, in the order of the header."""
        times = self.headers.get(Header.COMPACTED_BLOCK_TIMES, "")
        return tuple(part.strip() for part in times.split(",") if part.strip())

    @property
    def is_sealed(self) -> bool:
        """True if the block has checksums, so that ``content()`` returns what was written."""
        return block_checksum.hashes(self.headers) is not None

    @property
    def positions_base_instant(self) -> str | None:
        """Instant of the base file to which the record positions refer."""
        return self.headers.get(Header.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)

    def positions(self) -> npt.NDArray[np.int64] | None:
        """Row positions in the base file (from 0), ascending: the i-th position is that of the i-th record or delete.

        None if the block has no positions. They are valid only for the base file of `positions_base_instant`.

        Raises:
            FormatError: The header cannot be decoded.
        """
        text = self.headers.get(Header.RECORD_POSITIONS)
        return None if text is None else decode_positions(text)
