"""Procedures that inspect log files."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from pyhudi.errors import QueryError
from pyhudi.format.log.decoding.data_block import decode_records
from pyhudi.format.log.log_block import DATA_BLOCKS
from pyhudi.merge.file_slice import FileSlice
from pyhudi.read.execution.file_slice_reader import MergedReader, slice_context
from pyhudi.read.inspection.log_inspection import blocks_of_files, headers_of, matching_log_files, record_count
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView


def show_logfile_metadata(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the blocks of log files, with their headers."""
    client = arguments.client(spark)
    paths = _log_files(client, str(arguments.text("log_file_path_pattern")))
    return arguments.limited(
        (block.instant, record_count(block), f"{block.type.name}_BLOCK", headers_of(block), "{}")
        for _, block in blocks_of_files(client.storage, paths)
    )


def show_logfile_records(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the records of log files as JSON: as they were written, or (``merge``) the last version of each record in
    these files, without those that are deleted."""
    client = arguments.client(spark)
    paths = _log_files(client, str(arguments.text("log_file_path_pattern")))
    batches = _merged_records(client, paths) if arguments.flag("merge") else _records(client, paths)
    return arguments.limited(
        (json.dumps(row, default=str, ensure_ascii=False),) for batch in batches for row in batch.to_pylist()
    )


def _log_files(client: TableMetaClient, pattern: str) -> list[str]:
    """The committed log files whose address, or path in the table, fits a pattern with ``*``, ``?`` and ``[…]``.

    Raises:
        QueryError: There is none.
    """
    matching = matching_log_files(client, pattern)
    if not matching:
        raise QueryError(f"the table at {client.storage.uri()} has no log file that fits {pattern!r}")
    return matching


def _records(client: TableMetaClient, paths: list[str]) -> Iterator[pa.RecordBatch]:
    for _, block in blocks_of_files(client.storage, paths):
        if block.type in DATA_BLOCKS:
            yield from decode_records(block).to_batches()


def _merged_records(client: TableMetaClient, paths: list[str]) -> Iterator[pa.RecordBatch]:
    """Merge log files of each file slice without its base file."""
    table = TableSnapshot.load(client)
    columns = resolve_table_schema(table)
    if columns is None:
        return
    reader = MergedReader(slice_context(table, columns.schema), tuple(columns.schema.names))
    selected = frozenset(paths)
    for row in FileSystemView.load(table).all_slices().to_pylist():
        logs = [pair for pair in zip(row["log_paths"], row["log_sizes"], strict=True) if pair[0] in selected]
        if logs:
            log_paths, log_sizes = zip(*logs, strict=True)
            yield from reader.read(
                FileSlice.from_row({**row, "base_path": None, "log_paths": log_paths, "log_sizes": log_sizes})
            )


PROCEDURES: dict[str, Procedure] = {
    "show_logfile_metadata": show_logfile_metadata,
    "show_logfile_records": show_logfile_records,
}
