"""Blocks and records of the log files of a table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from pyhudi.format.log.decoding.data_block import count_records, decode_records
from pyhudi.format.log.log_block import DATA_BLOCKS, BlockType, Header, LogBlock
from pyhudi.merge.logs.log_file_pool import LogFiles
from pyhudi.storage import Storage
from pyhudi.table.view.file_system_view import FileSystemView, OpenTable

LOG_BLOCKS_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("instant", pa.string()),
        ("type", pa.string()),
        ("records", pa.int64()),
        ("headers", pa.string()),
    ]
)
"""One row per block: path of the log file relative to the table, instant, type, number of records or deletes, and
headers as a JSON object."""
LOG_RECORDS_SCHEMA = pa.schema([("path", pa.string()), ("instant", pa.string()), ("record", pa.string())])
"""One row per record of a data block: path of the log file relative to the table, instant of the block, and the record
as a JSON object, with the columns that the block has."""
_COUNTED = DATA_BLOCKS | {BlockType.DELETE, BlockType.CDC_DATA}


def log_blocks(table: OpenTable, pattern: str = "*") -> pa.Table:
    """Return the blocks of the committed log files that match a pattern (`LOG_BLOCKS_SCHEMA`)."""
    rows = [_row(path, block) for path, block in blocks_of_files(table.storage, matching_log_files(table, pattern))]
    return pa.Table.from_pylist(rows, schema=LOG_BLOCKS_SCHEMA)


def log_records(table: OpenTable, pattern: str = "*") -> Iterator[pa.RecordBatch]:
    """Return the records in the data blocks of the committed log files that match a pattern (`LOG_RECORDS_SCHEMA`), as
    they were written. The files are found now, and read later."""
    return _records_of_files(table.storage, matching_log_files(table, pattern))


def _records_of_files(storage: Storage, paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for path, block in blocks_of_files(storage, paths):
        if block.type in DATA_BLOCKS:
            for batch in decode_records(block).to_batches():
                texts = [json.dumps(row, default=str, ensure_ascii=False) for row in batch.to_pylist()]
                same = (pa.array([text] * len(texts), pa.string()) for text in (path, block.instant))
                yield pa.RecordBatch.from_arrays([*same, pa.array(texts, pa.string())], schema=LOG_RECORDS_SCHEMA)


def matching_log_files(table: OpenTable, pattern: str) -> list[str]:
    """Return the paths of the committed log files whose URI, or path relative to the table, matches a pattern with
    ``*``, ``?`` and ``[…]``, sorted."""
    paths = {path for paths in FileSystemView.load(table).all_slices()["log_paths"].to_pylist() for path in paths}
    return sorted(path for path in paths if any(_matches(name, pattern) for name in (path, table.storage.uri(path))))


def blocks_of_files(storage: Storage, paths: Sequence[str]) -> Iterator[tuple[str, LogBlock]]:
    """Yield the blocks of log files with the paths of their files."""
    with LogFiles(storage) as files:
        for path in paths:
            for block in files.blocks([path]):
                yield path, block


def record_count(block: LogBlock) -> int:
    """Return the number of records or deletes of a block; 0 of others."""
    return count_records(block) if block.type in _COUNTED else 0


def headers_of(block: LogBlock) -> str:
    """Return the known headers of a block as a JSON object."""
    return json.dumps({Header(key).name: value for key, value in block.headers.items() if key in list(Header)})


def _matches(name: str, pattern: str) -> bool:
    """Return True if a name matches, apart from the scheme ``file:`` and the number of slashes behind it."""
    bare_name, bare_pattern = (text.removeprefix("file:").lstrip("/") for text in (name, pattern))
    return fnmatchcase(bare_name, bare_pattern)


def _row(path: str, block: LogBlock) -> dict[str, Any]:
    return {
        "path": path,
        "instant": block.instant,
        "type": block.type.name,
        "records": record_count(block),
        "headers": headers_of(block),
    }
