"""Settings of a log file writer: file names, content and size limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.format.base_file.parquet_writer import ParquetOptions
from pyhudi.format.file_names import log_file_name
from pyhudi.format.log.log_block import BlockType

DATA_FORMATS: Mapping[str, BlockType] = {
    "avro": BlockType.AVRO_DATA,
    "parquet": BlockType.PARQUET_DATA,
    "hfile": BlockType.HFILE_DATA,
}
"""Supported values of `hoodie.logfile.data.block.format`."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Settings of log files.

    ``max_file_size`` (`hoodie.logfile.max.size`) is the size at which the next file is opened, checked after every
    block. ``max_block_size`` (`hoodie.logfile.data.block.max.size`) is the approximate maximum size of a block and thus
    of the writer's memory. ``data_format`` is `hoodie.logfile.data.block.format`. HFile blocks are sorted by key, and
    their keys must be unique.
    """

    max_file_size: int = 1024 * 1024 * 1024
    max_block_size: int = 256 * 1024 * 1024
    data_format: str = "avro"
    parquet: ParquetOptions = field(default_factory=ParquetOptions)

    def __post_init__(self) -> None:
        if self.data_format.lower() not in DATA_FORMATS:
            names = ", ".join(DATA_FORMATS)
            raise ConfigError(f"log block format {self.data_format!r} is not supported; available: {names}")
        if self.max_file_size < 1 or self.max_block_size < 1:
            raise ConfigError(
                f"the sizes of log files ({self.max_file_size}) and blocks ({self.max_block_size}) must be positive"
            )


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Names of the log files of a file slice.

    ``instant`` is the base instant of the slice in tables of version 6, the requested instant of the write from 8 on.
    ``version`` is that of the first file: in version 6 the maximum of the slice plus one
    (`pyhudi.format.file_names.next_log_version`), otherwise 1.
    """

    file_id: str
    instant: str
    token: str
    version: int = 1
    is_cdc: bool = False

    @property
    def name(self) -> str:
        """Name of the file."""
        return log_file_name(self.file_id, self.instant, self.version, self.token, cdc=self.is_cdc)

    def next(self) -> LogSlice:
        """Return the names of the next file."""
        return replace(self, version=self.version + 1)


@dataclass(frozen=True, slots=True)
class LogFile:
    """A finished log file and its content."""

    name: str
    version: int
    size: int
    num_records: int
    num_deletes: int


@dataclass(frozen=True, slots=True)
class LogSchema:
    """Content of log blocks: the records' Avro schema (including meta columns), the ordering fields with their types,
    and the table version (6, 8 or 9), which determines the format of deletes."""

    avro: str
    ordering: pa.Schema
    table_version: int


@dataclass(frozen=True, slots=True)
class LogBlockHeader:
    """Header fields of all blocks of one writer.

    Attributes:
        instant: Instant of the write.
        schema: Schema of records and deletes.
        base_instant: Instant of the base file to which positions of records refer; None: positions are not written.
        is_partial: The records have only the changed columns.
        compacted_times: Instants of the blocks that these blocks replace, after a log compaction.
    """

    instant: str
    schema: LogSchema
    base_instant: str | None = None
    is_partial: bool = False
    compacted_times: Sequence[str] = ()
