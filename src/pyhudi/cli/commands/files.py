"""``pyhudi files``: data files and file slices (file-system views)."""

from __future__ import annotations

import click

import pyhudi
from pyhudi.cli.columns import FILES, LOG_BLOCKS, LOG_RECORDS, SLICES, rows_where
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import with_limit, with_output, with_table
from pyhudi.cli.structure import noun

files = noun("files", "Data files, file slices, logs: list, slices, log-blocks, log-records.")
_partition = click.option("--partition", metavar="PARTITION", help="Only those of the partition with this path.")


@files.command("list")
@with_table
@_partition
@click.option("--all-versions", is_flag=True, help="Also files of older file slices, and uncommitted ones.")
@with_limit
@with_output
def list_files(
    table: pyhudi.HudiTable, *, out: Output, partition: str | None, all_versions: bool, limit: int | None
) -> None:
    """List the data files of the latest snapshot.

    Python: HudiTable.for_path(PATH).inspect.files(all_versions=…)
    """
    rows = rows_where(table.inspect.files(all_versions=all_versions).to_arrow(), partition=partition)
    out.rows(rows, FILES, limit=limit, nothing="no files")


@files.command("slices")
@with_table
@_partition
@click.option("--all-versions", is_flag=True, help="Also older file slices.")
@with_limit
@with_output
def slices(
    table: pyhudi.HudiTable, *, out: Output, partition: str | None, all_versions: bool, limit: int | None
) -> None:
    """List the newest file slice of each file group: its base file and its log files.

    Python: HudiTable.for_path(PATH).inspect.file_slices(all_versions=…)
    """
    rows = rows_where(table.inspect.file_slices(all_versions=all_versions).to_arrow(), partition=partition)
    out.rows(rows, SLICES, limit=limit, nothing="no file slices")


@files.command("log-blocks")
@with_table
@click.argument("pattern", default="*")
@with_limit
@with_output
def log_blocks(table: pyhudi.HudiTable, *, out: Output, pattern: str, limit: int | None) -> None:
    """List the blocks of log files, of all or of those whose path matches PATTERN (with * and ?).

    Python: HudiTable.for_path(PATH).inspect.log_blocks(PATTERN)
    """
    out.rows(table.inspect.log_blocks(pattern), LOG_BLOCKS, limit=limit, nothing="no log files")


@files.command("log-records")
@with_table
@click.argument("pattern", default="*")
@with_limit
@with_output
def log_records(table: pyhudi.HudiTable, *, out: Output, pattern: str, limit: int | None) -> None:
    """Print the records in log files as they were written, of all files or of those whose path matches PATTERN.

    Older versions of a record, and those that a later block deletes, are among them; `pyhudi scan` prints merged rows.

    Python: HudiTable.for_path(PATH).inspect.log_records(PATTERN)
    """
    out.rows(table.inspect.log_records(pattern), LOG_RECORDS, limit=limit, nothing="no records in log files")
