"""Procedures that list the file slices of a table."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from pyhudi.errors import QueryError, UnsupportedTableError
from pyhudi.read.inspection.partition_patterns import ALL_PARTITIONS, in_partitions
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.instant import Action, Instant


def show_fsview_latest(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the newest file slices; ``merge``: logs that a pending compaction has left to the next slice count, too.

    Raises:
        QueryError: Both ``path_regex`` and ``partition_path`` are given.
        UnsupportedTableError: Files of pending writes are requested.
    """
    pattern, partition = arguments.text("path_regex"), arguments.text("partition_path")
    if ALL_PARTITIONS not in (pattern, partition):
        raise QueryError(f"give path_regex ({pattern!r}) or partition_path ({partition!r}), not both")
    client = arguments.client(spark)
    view = _view(client, arguments)
    slices = view.latest_slices(*_as_of(arguments)) if arguments.flag("merge") else _newest(view, arguments)
    rows = []
    for row in in_partitions(slices, partition if pattern == ALL_PARTITIONS else pattern).to_pylist():
        sizes, base = sum(row["log_sizes"]), row["base_size"] or 0
        logs = str([client.storage.uri(path) for path in row["log_paths"]])
        ratio = sizes / base if base else -1.0
        file = None if row["base_path"] is None else client.storage.uri(row["base_path"])
        head = (row["partition"], row["file_id"], row["base_instant"], file, base, len(row["log_paths"]), sizes)
        rows.append((*head, sizes, 0, ratio, 0.0, logs, "[]"))
    return arguments.limited(rows)


def show_fsview_all(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show all file slices.

    Raises:
        UnsupportedTableError: Files of pending writes are requested.
    """
    client = arguments.client(spark)
    slices = _view(client, arguments).all_slices(*_as_of(arguments))
    rows = []
    for row in in_partitions(slices, arguments.text("path_regex")).to_pylist():
        file = None if row["base_path"] is None else client.storage.uri(row["base_path"])
        logs = str([client.storage.uri(path) for path in row["log_paths"]])
        sizes = (row["base_size"] or 0, len(row["log_paths"]), sum(row["log_sizes"]))
        rows.append((row["partition"], row["file_id"], row["base_instant"], file, *sizes, logs))
    return arguments.limited(rows)


def _view(client: TableMetaClient, arguments: Arguments) -> FileSystemView:
    """The files of the writes before ``max_instant``, or up to it with ``include_max``; of all writes without one."""
    if arguments.flag("include_in_flight"):
        raise UnsupportedTableError(
            "include_in_flight => true: files of pending writes are not shown, as they may change; leave it out"
        )
    end, included = arguments.text("max_instant"), arguments.flag("include_max")
    excluded = Action.COMPACTION if arguments.flag("exclude_compaction") else None

    def is_shown(instant: Instant) -> bool:
        in_time = not end or instant.requested < end or (included and instant.requested == end)
        return in_time and instant.action != excluded

    return FileSystemView.load(client, client.active_timeline().timeline.filter(is_shown))


def _as_of(arguments: Arguments) -> tuple[str | None]:
    """The latest instant, for files of archived ones."""
    return (arguments.text("max_instant") or None,)


def _newest(view: FileSystemView, arguments: Arguments) -> pa.Table:
    """The newest slice of each file group, those opened by pending compactions included."""
    slices = view.all_slices(*_as_of(arguments))
    last = slices.append_column("row", pa.array(range(slices.num_rows))).group_by(["partition", "file_id"])
    return slices.take(last.aggregate([("row", "max")])["row_max"])


PROCEDURES: dict[str, Procedure] = {"show_fsview_latest": show_fsview_latest, "show_fsview_all": show_fsview_all}
