"""Procedures that inspect log files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase

from pyspark.sql import SparkSession

from pyhudi.errors import QueryError, UnsupportedTableError
from pyhudi.format.log.decoding.data_block import count_records, decode_records
from pyhudi.format.log.log_block import DATA_BLOCKS, BlockType, Header, LogBlock
from pyhudi.merge.logs.log_file_pool import LogFiles
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_system_view import FileSystemView

_COUNTED = DATA_BLOCKS | {BlockType.DELETE, BlockType.CDC_DATA}


def _log_files(client: TableMetaClient, pattern: str) -> list[str]:
    """The committed log files whose address, or path in the table, fits a pattern with ``*``, ``?`` and ``[…]``.

    Raises:
        QueryError: There is none.
    """
    matching = [
        path
        for paths in FileSystemView.load(client).all_slices()["log_paths"].to_pylist()
        for path in paths
        if any(_matches_pattern(name, pattern) for name in (path, client.storage.uri(path)))
    ]
    if not matching:
        raise QueryError(f"the table at {client.storage.uri()} has no log file that fits {pattern!r}")
    return sorted(matching)


def _matches_pattern(name: str, pattern: str) -> bool:
    """Return True if a name matches, apart from the scheme ``file:`` and the number of slashes behind it."""
    bare_name, bare_pattern = (text.removeprefix("file:").lstrip("/") for text in (name, pattern))
    return fnmatchcase(bare_name, bare_pattern)


def _blocks(client: TableMetaClient, paths: list[str]) -> Iterator[LogBlock]:
    with LogFiles(client.storage) as files:
        for path in paths:
            yield from files.blocks([path])


def show_logfile_metadata(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the blocks of log files, with their headers."""
    client = arguments.client(spark)
    return arguments.limited(
        (
            block.instant,
            count_records(block) if block.type in _COUNTED else 0,
            f"{block.type.name}_BLOCK",
            json.dumps({Header(key).name: value for key, value in block.headers.items() if key in list(Header)}),
            "{}",
        )
        for block in _blocks(client, _log_files(client, str(arguments.text("log_file_path_pattern"))))
    )


def show_logfile_records(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the records of log files as they were written, as JSON.

    Raises:
        UnsupportedTableError: They are to be merged.
    """
    if arguments.flag("merge"):
        raise UnsupportedTableError(
            "merge is not supported by show_logfile_records: query the table, whose rows are those of the merge"
        )
    client, limit = arguments.client(spark), arguments.number("limit")
    rows: list[tuple[str]] = []
    for block in _blocks(client, _log_files(client, str(arguments.text("log_file_path_pattern")))):
        if limit is not None and 0 <= limit <= len(rows):
            break
        if block.type in DATA_BLOCKS:
            records = decode_records(block).slice(0, None if limit is None or limit < 0 else limit - len(rows))
            rows += [(json.dumps(row, default=str, ensure_ascii=False),) for row in records.to_pylist()]
    return rows


PROCEDURES: dict[str, Procedure] = {
    "show_logfile_metadata": show_logfile_metadata,
    "show_logfile_records": show_logfile_records,
}
