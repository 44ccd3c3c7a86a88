"""Parquet blocks of log files as ranges of bytes, for readers that take each for a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.format.log import BlockType, LogBlock
from pyhudi.merge.file_group_reader import FileSlice, SliceContext, combines, log_files, slice_errors
from pyhudi.merge.logs.valid_log_blocks import valid_blocks
from pyhudi.schema.arrow_avro import from_avro


@dataclass(frozen=True, slots=True)
class ParquetBlock:
    """A whole Parquet file of ``length`` bytes inside a log file (path relative to the table's root)."""

    path: str
    offset: int
    length: int


def parquet_blocks(
    context: SliceContext, file_slice: FileSlice, fits: Callable[[pa.Schema], bool]
) -> list[ParquetBlock] | None:
    """The data blocks of a slice that count, in their order; None where some are no Parquet, have columns that do not
    fit, or where versions are not whole rows of the table's. Headers alone are read.

    Raises:
        QueryError: a file is gone.
        FormatError: a file is damaged.
    """
    with slice_errors(file_slice), log_files(context) as logs:
        found: list[LogBlock] = []
        places: dict[int, str] = {}
        for path in file_slice.log_paths:
            for block in logs.blocks([path]):
                places[id(block)] = path
                found.append(block)
        blocks = valid_blocks(found, context.view)
    if combines(context.rules, blocks):
        return None
    data = [block for block in blocks if block.type is not BlockType.DELETE]
    if any(b.type is not BlockType.PARQUET_DATA or context.names(b.instant or "") for b in data):
        return None
    if not all(b.schema is not None and fits(from_avro(b.schema)) for b in data):
        return None
    return [ParquetBlock(places[id(b)], b.content_offset, b.content_length) for b in data]
