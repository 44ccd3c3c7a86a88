"""Procedures that show or copy a table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.errors import QueryError, TransactionError, UnsupportedTableError
from pyhudi.format.file_names import file_name_of
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.spark.column_names import quoted
from pyhudi.spark.read.load_table import load_table, session_settings
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.sql.queries.table_functions import ALL_PARTITIONS, in_partitions, locate
from pyhudi.spark.sql.tables_by_name import TableSpec, save_as_table
from pyhudi.sql.procedure_signatures import signature_of, signatures
from pyhudi.sql.table_properties import registered_properties, table_options
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.markers import Markers


def show_table_properties(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the properties of the table."""
    return arguments.limited(arguments.client(spark).config.properties.items())


def show_metadata_table_partitions(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the table's partitions."""
    return [(path,) for path in arguments.table(spark).inspect.partitions()["partition"].to_pylist()]


def show_metadata_table_files(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the files of one partition."""
    slices = FileSystemView.load(arguments.client(spark)).all_slices()
    slices = slices.filter(pc.equal(slices["partition"], arguments.text("partition") or ""))
    paths = [*slices["base_path"].drop_null().to_pylist(), *pc.list_flatten(slices["log_paths"]).to_pylist()]
    return arguments.limited((name,) for name in sorted(file_name_of(path) for path in paths))


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


_TIMES = {
    "begin_instance_time": options.BEGIN_INSTANTTIME.key,
    "end_instance_time": options.END_INSTANTTIME.key,
    "as_of_instant": options.AS_OF_INSTANT.key,
}


def _read(spark: SparkSession, arguments: Arguments) -> DataFrame:
    """Return the rows of the query specified by the arguments."""
    times = {key: value for key, value in arguments.as_options(_TIMES).items() if value}
    query_options = {options.QUERY_TYPE.key: str(arguments.text("query_type")), **times}
    return load_table(spark, arguments.location(spark), query_options)


def copy_to_table(spark: SparkSession, arguments: Arguments) -> Rows:
    """Write the rows of a query to another table, with the same keys and partitions if it has to be made."""
    config, rows = arguments.client(spark).config, _read(spark, arguments)
    fields = tuple(field.name for field in config.partition_fields)
    columns = [name.strip() for name in (arguments.text("columns") or "").split(",") if name.strip()]
    chosen = columns or [name for name in rows.columns if not is_meta_column(name)]
    properties = registered_properties(config.record_keys, config.ordering_fields, config.table_type)
    save_as_table(
        rows.select(*(quoted([name]) for name in chosen)),
        str(arguments.text("new_table")),
        TableSpec(fields, table_options(properties)),
        is_hudi=True,
        mode=str(arguments.text("save_mode")),
    )
    return [(0,)]


def commits_compare(spark: SparkSession, arguments: Arguments) -> Rows:
    """List the writes of the table that are newer than the last one of the table at ``path``, or the other way."""
    name, path = str(arguments.text("table")), str(arguments.text("path"))
    source = TableMetaClient.open(locate(spark, name), Options.parse(session_settings(spark, path)))
    target = TableMetaClient.open(path, Options.parse(session_settings(spark, path)))
    source_writes, target_writes = (
        [i.requested for i in client.active_timeline().timeline.completed().writes()] for client in (source, target)
    )
    if target_writes and (not source_writes or target_writes[-1] > source_writes[-1]):
        newer = [instant for instant in target_writes if not source_writes or instant > source_writes[-1]]
        return [(f"Source {name} is behind by {len(newer)} commits. Commits to catch up - [{', '.join(newer)}]",)]
    newer = [instant for instant in source_writes if not target_writes or instant > target_writes[-1]]
    return [(f"Source {name} is ahead by {len(newer)} commits. Commits to catch up - [{', '.join(newer)}]",)]


def delete_marker(spark: SparkSession, arguments: Arguments) -> Rows:
    """Delete the markers of a write that has completed or was rolled back.

    Raises:
        TransactionError: It is pending, so that its rollback needs them.
    """
    client, requested = arguments.client(spark), str(arguments.text("instant_time"))
    pending = client.active_timeline().timeline.pending().find(requested)
    if pending is not None:
        raise TransactionError(f"{pending} is pending, and its rollback needs its markers: roll it back instead")
    Markers(client.storage, requested).delete()
    return [(True,)]


def copy_to_temp_view(spark: SparkSession, arguments: Arguments) -> Rows:
    """Create a temporary view of the current snapshot of the table."""
    rows, view = _read(spark, arguments), str(arguments.text("view_name"))
    match (arguments.flag("global"), arguments.flag("replace")):
        case (True, True):
            rows.createOrReplaceGlobalTempView(view)
        case (True, False):
            rows.createGlobalTempView(view)
        case (False, True):
            rows.createOrReplaceTempView(view)
        case _:
            rows.createTempView(view)
    return [(0,)]


def help_(_: SparkSession, arguments: Arguments) -> Rows:
    """List the procedures, or show the parameters and result of one."""
    name = arguments.text("cmd")
    if name is None:
        listed = "".join(f"\t{one}\n" for one in sorted(signatures()))
        return [(f"synopsis\n\tcall [command]([key1]=>[value1],[key2]=>[value2])\ncommands\n{listed}",)]
    signature = signature_of(name)
    parameters = "".join(
        f"\t{p.name:30}{p.kind:30}{p.default or 'null':30}{str(p.required).lower()}\n" for p in signature.parameters
    )
    columns = "".join(f"\t{column:30}{kind}\n" for column, kind in signature.columns)
    heads = f"{'param':30}{'type_name':30}{'default_value':30}required"
    return [(f"parameters:\n\t{heads}\n{parameters}outputType:\n\t{'name':30}type_name\n{columns}",)]


PROCEDURES: dict[str, Procedure] = {
    "show_table_properties": show_table_properties,
    "show_metadata_table_partitions": show_metadata_table_partitions,
    "show_metadata_table_files": show_metadata_table_files,
    "show_fsview_latest": show_fsview_latest,
    "show_fsview_all": show_fsview_all,
    "copy_to_temp_view": copy_to_temp_view,
    "copy_to_table": copy_to_table,
    "commits_compare": commits_compare,
    "delete_marker": delete_marker,
    "help": help_,
}
