"""Apache Hudi's table functions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.errors import QueryError
from pyhudi.format.file_names import file_name_of
from pyhudi.spark.read.load_table import load_table, session_settings
from pyhudi.spark.sql.catalog import find_table
from pyhudi.spark.sql.passthrough_statements import result
from pyhudi.spark.sql.queries.metadata_records import metadata_records
from pyhudi.sql.token_cursor import Cursor
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import total

_TIMELINE = (
    "Timestamp string, Action string, State string, Completion_Time string, File_Name string, Total_Bytes_Written "
    "bigint, Total_Files_Updated bigint, Total_Partitions_Written bigint, Total_Records_Written bigint, "
    "Total_Updated_Records_Written bigint, Total_Write_Errors bigint"
)
_FILES = (
    "File_ID string, Partition_Path string, Base_Instant_Time string, Base_File_Path string, Base_File_Size bigint, "
    "Log_File_Count bigint, Log_File_Size bigint, Log_File_Scheduled bigint, Log_File_Unscheduled bigint"
)


def run_table_function(spark: SparkSession, name: str, arguments: tuple[str, ...]) -> DataFrame:
    """Return the rows of a table function, whose first argument is a table, by name or path.

    Raises:
        QueryError: there is no such table, or arguments are missing.
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
        return result(spark, _TIMELINE, _timeline(client))
    if name == "hudi_filesystem_view":
        return result(spark, _FILES, _files(client, arguments[1] if len(arguments) > 1 else None))
    return metadata_records(spark, client)


def locate(spark: SparkSession, table: str) -> str:
    """Return where a table is that is given by name or path.

    Raises:
        QueryError: the catalog has no such Hudi table.
    """
    if "/" in table:
        return table
    cursor = Cursor(table)
    name = cursor.name()
    found = find_table(spark, name) if cursor.done else None
    if found is None:
        raise QueryError(f"there is no Hudi table {table!r} in the catalog")
    return found.location


def _changes(spark: SparkSession, location: str, arguments: tuple[str, ...]) -> DataFrame:
    if len(arguments) < 2 or arguments[0] not in ("latest_state", "cdc"):
        raise QueryError(
            "hudi_table_changes takes a table, 'latest_state' or 'cdc', the begin, and the end if there is one"
        )
    given = {
        options.QUERY_TYPE.key: "incremental",
        options.INCREMENTAL_FORMAT.key: arguments[0],
        options.BEGIN_INSTANTTIME.key: arguments[1],
    }
    if arguments[1] == "earliest":
        given[options.BEGIN_INSTANTTIME.key] = "000"
    if len(arguments) > 2:
        given[options.END_INSTANTTIME.key] = arguments[2]
    return load_table(spark, location, given)


def _timeline(client: TableMetaClient) -> list[tuple[Any, ...]]:
    active = client.active_timeline()
    rows: list[tuple[Any, ...]] = []
    for instant in active.timeline:
        head = (
            instant.requested,
            instant.action,
            instant.state.value,
            instant.completion,
            file_name_of(active.path(instant)),
        )
        if not (instant.is_completed and instant.is_write):
            rows.append((*head, None, None, None, None, None, None))
            continue
        stats = active.commit_metadata(instant).stats
        updated = pc.sum(pc.and_(pc.is_valid(stats["prevCommit"]), pc.not_equal(stats["prevCommit"], "null"))).as_py()
        partitions = len(pc.unique(stats["partitionPath"]))
        sums = [total(stats, column) for column in ("numWrites", "numUpdateWrites", "totalWriteErrors")]
        rows.append((*head, total(stats, "totalWriteBytes"), updated or 0, partitions, *sums))
    return rows


def _files(client: TableMetaClient, partition: str | None) -> list[tuple[Any, ...]]:
    slices: pa.Table = FileSystemView.load(client).latest_slices()
    if partition is not None:
        slices = slices.filter(pc.equal(slices["partition"], partition))
    return [
        (
            row["file_id"],
            row["partition"],
            row["base_instant"],
            None if row["base_path"] is None else client.storage.uri(row["base_path"]),
            row["base_size"] or 0,
            len(row["log_paths"]),
            sum(row["log_sizes"]),
            sum(row["log_sizes"]),
            0,
        )
        for row in slices.to_pylist()
    ]
