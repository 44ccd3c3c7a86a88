"""A block of a log file: its kind, its headers, and its content, which is read only when it is asked for."""

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
"""The only log format version that releases since 0.5 write."""


class BlockType(IntEnum):
    """Ordinals as they stand in files. CORRUPT is never stored: a stretch that could not be read as a block."""

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
"""The only value of `Header.COMMAND_BLOCK_TYPE`: undo what `Header.TARGET_INSTANT_TIME` wrote."""


@dataclass(frozen=True, slots=True)
class LogBlock:
    """Block of a log file.

    ``headers`` are by ordinal, unknown ones are kept. ``offset`` and ``end`` are where the block begins (its magic) and
    where the next one does. The content is not held: ``content()`` reads it from the file, which must be open still.
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
            FormatError: the file became shorter, or the content is not what was written (as far as blocks tell: those
                of other writers have no checksums).
        """
        content = read_exactly(self.source, self.content_offset, self.content_length)
        found = block_checksum.hashes(self.headers)
        if found is not None and found[1] != block_checksum.hash_content([content]):
            raise FormatError(f"the content of the log block at offset {self.offset} is not what was written")
        return content

    @property
    def instant(self) -> str | None:
        """The instant that wrote the block; archives of version 6 have none."""
        return self.headers.get(Header.INSTANT_TIME)

    @property
    def target_instant(self) -> str | None:
        """The instant that a rollback command undoes."""
        return self.headers.get(Header.TARGET_INSTANT_TIME)

    @property
    def is_rollback(self) -> bool:
        """True if the block undoes another instant."""
        return self.type is BlockType.COMMAND and self.headers.get(Header.COMMAND_BLOCK_TYPE) == ROLLBACK_COMMAND

    @property
    def schema(self) -> str | None:
        """Avro JSON of the records as they were written, meta columns included."""
        return self.headers.get(Header.SCHEMA)

    @property
    def is_partial(self) -> bool:
        """True if the records have only the columns that were changed."""
        return self.headers.get(Header.IS_PARTIAL, "").lower() == "true"

    @property
    def compacted_times(self) -> tuple[str, ...]:
        """Instants of the blocks that a log compaction put together in this one, in the order of the header."""
        times = self.headers.get(Header.COMPACTED_BLOCK_TIMES, "")
        return tuple(part.strip() for part in times.split(",") if part.strip())

    @property
    def is_sealed(self) -> bool:
        """True if the block has checksums, so that what ``content()`` gives is what was written."""
        return block_checksum.hashes(self.headers) is not None

    @property
    def positions_base_instant(self) -> str | None:
        """Instant of the base file that the record positions count in."""
        return self.headers.get(Header.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)

    def positions(self) -> npt.NDArray[np.int64] | None:
        """Row positions in the base file (from 0), ascending: the i-th record or delete of the block is the i-th one.

        None where the block has none. They hold for the base file of `positions_base_instant` alone.

        Raises:
            FormatError: the header cannot be decoded.
        """
        text = self.headers.get(Header.RECORD_POSITIONS)
        return None if text is None else decode_positions(text)
