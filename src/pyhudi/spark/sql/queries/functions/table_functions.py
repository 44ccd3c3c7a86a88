"""Apache Hudi's table functions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.errors import QueryError
from pyhudi.format.file_names import file_name_of, file_names_of, parse_names
from pyhudi.read.inspection.partition_patterns import in_partitions
from pyhudi.spark.column_names import quoted
from pyhudi.spark.read.load_table import load_table, session_settings
from pyhudi.spark.sql.catalog import find_table
from pyhudi.spark.sql.queries.functions.metadata_records import metadata_records
from pyhudi.spark.sql.spark_statements import result_frame
from pyhudi.sql.token_cursor import Cursor
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.commit_metadata import decode_commit, total
from pyhudi.timeline.instant import WRITE_ACTIONS, State

_TIMELINE = (
    "Timestamp string, Action string, State string, Completion_Time string, File_Name string, Total_Bytes_Written "
    "bigint, Total_Files_Updated bigint, Total_Partitions_Written bigint, Total_Records_Written bigint, "
    "Total_Updated_Records_Written bigint, Total_Write_Errors bigint"
)
_FILES = (
    "File_ID string, Partition_Path string, Base_Instant_Time string, Base_File_Path string, Base_File_Size bigint, "
    "Log_File_Count bigint, Log_File_Size bigint, Log_File_Scheduled bigint, Log_File_Unscheduled bigint"
)


_NO_FIGURES = (-1,) * 6
"""Figures of an instant that has written nothing, or is not completed."""
_CHANGES = ("latest_state", "cdc")
"""Query types of hudi_table_changes."""


def run_table_function(spark: SparkSession, name: str, arguments: tuple[str, ...]) -> DataFrame:
    """Return the rows of a table function, whose first argument is a table, by name or path.

    Raises:
        QueryError: There is no such table, or arguments are missing.
    """
    if not arguments:
        raise QueryError(f"{name} needs a table, by its name or path")
    location = locate(spark, arguments[0])
    if name == "hudi_table_changes":
        return _changes(spark, location, arguments[1:])
    if name == "hudi_query":
        return load_table(spark, location, {options.QUERY_TYPE.key: arguments[1]} if len(arguments) > 1 else {})
    opts = Options.parse(session_settings(spark, location))
    client = TableMetaClient.open(location, opts)
    if name == "hudi_query_timeline":
        archived = len(arguments) > 1 and arguments[1].lower() == "true"
        return result_frame(spark, _TIMELINE, _timeline(client, archived=archived))
    if name == "hudi_filesystem_view":
        return result_frame(spark, _FILES, _files(client, arguments[1] if len(arguments) > 1 else None))
    return metadata_records(spark, client)


def locate(spark: SparkSession, table: str) -> str:
    """Return the location of a table, given by name or path.

    Raises:
        QueryError: The catalog has no such Hudi table.
    """
    if "/" in table:
        return table
    cursor = Cursor(table)
    name = cursor.name()
    entry = find_table(spark, name) if cursor.done else None
    if entry is not None:
        return entry.location
    if cursor.done and spark.catalog.tableExists(quoted(name)):
        raise QueryError(f"{table!r} is a table or view, but not a Hudi table")
    place = "the catalog" if len(name) > 1 else f"the database {spark.catalog.currentDatabase()!r}"
    raise QueryError(f"there is no Hudi table {table!r} in {place}")


def _changes(spark: SparkSession, location: str, arguments: tuple[str, ...]) -> DataFrame:
    if len(arguments) < 2:
        raise QueryError(
            "hudi_table_changes takes a table, 'latest_state' or 'cdc', the begin, and the end if there is one"
        )
    if arguments[0] not in _CHANGES:
        raise QueryError(f"hudi_table_changes has no query type {arguments[0]!r}; it has {', '.join(_CHANGES)}")
    query_options = {
        options.QUERY_TYPE.key: "incremental",
        options.INCREMENTAL_FORMAT.key: arguments[0],
        options.BEGIN_INSTANTTIME.key: arguments[1],
    }
    if arguments[1] == "earliest":
        query_options[options.BEGIN_INSTANTTIME.key] = "000"
    if len(arguments) > 2:
        query_options[options.END_INSTANTTIME.key] = arguments[2]
    return load_table(spark, location, query_options)


def _timeline(client: TableMetaClient, *, archived: bool) -> list[tuple[Any, ...]]:
    """Return the instants of the active timeline, preceded by those of the archived timeline if requested."""
    active = client.active_timeline()
    rows: list[tuple[Any, ...]] = []
    for instant in active.timeline:
        name = file_name_of(active.path(instant))
        head = (instant.requested, instant.action, instant.state.value, instant.completion, name)
        is_written = instant.is_completed and instant.is_write
        rows.append((*head, *(_figures(active.commit_metadata(instant).stats) if is_written else _NO_FIGURES)))
    if not archived:
        return rows
    return [*_archived(client, {str(row[0]) for row in rows}), *rows]


def _archived(client: TableMetaClient, active: set[str]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for row in read_archived_timeline(client.storage, client.config.layout).sort_by("requested").to_pylist():
        requested, completion, action = row["requested"], row["completion"], row["action"]
        if requested in active:
            continue
        name = f"{requested}_{completion}.{action}" if completion else f"{requested}.{action}"
        is_written = action in WRITE_ACTIONS and row["metadata"]
        figures = _figures(decode_commit(row["metadata"]).stats) if is_written else _NO_FIGURES
        rows.append((requested, action, State.COMPLETED.value, completion, name, *figures))
    return rows


def _figures(stats: pa.Table) -> tuple[int, ...]:
    """Return the totals of a write: bytes, updated files, partitions, records, updated records, errors."""
    updated = pc.sum(pc.and_(pc.is_valid(stats["prevCommit"]), pc.not_equal(stats["prevCommit"], "null"))).as_py()
    sums = [total(stats, column) for column in ("numWrites", "numUpdateWrites", "totalWriteErrors")]
    return (total(stats, "totalWriteBytes"), updated or 0, len(pc.unique(stats["partitionPath"])), *sums)


def _files(client: TableMetaClient, pattern: str | None) -> list[tuple[Any, ...]]:
    """Return all file slices of the partitions that match a pattern."""
    rows: list[tuple[Any, ...]] = []
    for row in in_partitions(FileSystemView.load(client).all_slices(), pattern).to_pylist():
        # log files of version 6 have the time of their slice in their names, later ones that of their writer
        times = parse_names(file_names_of(pa.array(row["log_paths"], pa.string())))["instant"].to_pylist()
        sizes = row["log_sizes"]
        size = sum(sizes)
        of_slice = sum(one for one, time in zip(sizes, times, strict=True) if time == row["base_instant"])
        base = ("", -1) if row["base_path"] is None else (client.storage.uri(row["base_path"]), row["base_size"])
        head = (row["file_id"], row["partition"], row["base_instant"], *base)
        rows.append((*head, len(sizes), size, of_slice, size - of_slice))
    return rows
