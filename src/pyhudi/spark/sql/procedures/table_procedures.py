"""Procedures that show or copy a table."""

from __future__ import annotations

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import options
from pyhudi.spark.read.load_table import load_table
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.sql.procedure_signatures import signature_of, signatures
from pyhudi.table.view.file_system_view import FileSystemView


def show_table_properties(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show what hoodie.properties says."""
    return arguments.limited(arguments.client(spark).config.properties.items())


def show_metadata_table_partitions(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the table's partitions."""
    return [(path,) for path in arguments.table(spark).inspect.partitions()["partition"].to_pylist()]


def show_metadata_table_files(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the files of one partition."""
    slices = FileSystemView.load(arguments.client(spark)).all_slices()
    slices = slices.filter(pc.equal(slices["partition"], arguments.text("partition") or ""))
    paths = [*slices["base_path"].drop_null().to_pylist(), *pc.list_flatten(slices["log_paths"]).to_pylist()]
    return arguments.limited((path.rpartition("/")[2],) for path in paths)


def show_fsview_latest(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the newest file slices."""
    client = arguments.client(spark)
    wanted = arguments.text("partition_path")
    rows = []
    for row in FileSystemView.load(client).latest_slices().to_pylist():
        if wanted not in (None, "ALL_PARTITIONS") and row["partition"] != wanted:
            continue
        sizes, base = sum(row["log_sizes"]), row["base_size"] or 0
        logs = str([client.storage.uri(path) for path in row["log_paths"]])
        ratio = sizes / base if base else -1.0
        file = None if row["base_path"] is None else client.storage.uri(row["base_path"])
        head = (row["partition"], row["file_id"], row["base_instant"], file, base, len(row["log_paths"]), sizes)
        rows.append((*head, sizes, 0, ratio, 0.0, logs, "[]"))
    return arguments.limited(rows)


def show_fsview_all(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show all file slices."""
    client = arguments.client(spark)
    rows = []
    for row in FileSystemView.load(client).all_slices().to_pylist():
        file = None if row["base_path"] is None else client.storage.uri(row["base_path"])
        logs = str([client.storage.uri(path) for path in row["log_paths"]])
        sizes = (row["base_size"] or 0, len(row["log_paths"]), sum(row["log_sizes"]))
        rows.append((row["partition"], row["file_id"], row["base_instant"], file, *sizes, logs))
    return arguments.limited(rows)


def _read(spark: SparkSession, arguments: Arguments) -> DataFrame:
    return load_table(spark, arguments.location(spark), {options.QUERY_TYPE.key: str(arguments.text("query_type"))})


def copy_to_temp_view(spark: SparkSession, arguments: Arguments) -> Rows:
    """Make a temporary view of the table as it is now."""
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
    """List the procedures, or say what one takes and gives."""
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
    "help": help_,
}
