"""Procedures that list partitions and files of the table, and those of its metadata table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pyhudi.format.file_names import file_name_of
from pyhudi.metadata.reader.metadata_file_listing import list_from_metadata
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.sql.procedures.metadata_table.open_metadata_table import open_metadata_table
from pyhudi.table.view.file_listing import list_files
from pyhudi.table.view.file_system_view import FileSystemView


def show_metadata_table_partitions(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the table's partitions."""
    return [(path,) for path in arguments.table(spark).inspect.partitions()["partition"].to_pylist()]


def show_metadata_table_files(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the files of one partition."""
    slices = FileSystemView.load(arguments.client(spark)).all_slices()
    slices = slices.filter(pc.equal(slices["partition"], arguments.text("partition") or ""))
    paths = [*slices["base_path"].drop_null().to_pylist(), *pc.list_flatten(slices["log_paths"]).to_pylist()]
    return arguments.limited((name,) for name in sorted(file_name_of(path) for path in paths))


def show_metadata_table_stats(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show files and bytes of each partition of the metadata table."""
    metadata = open_metadata_table(arguments.client(spark))
    rows: list[tuple[str, str]] = []
    for partition in metadata.partitions:
        slices = metadata.groups(partition)
        logs = pc.list_value_length(slices["log_paths"])
        rows += [
            (f"{partition}.totalBaseFileSizeInBytes", str(pc.sum(slices["base_size"]).as_py() or 0)),
            (f"{partition}.totalLogFileSizeInBytes", str(pc.sum(pc.list_flatten(slices["log_sizes"])).as_py() or 0)),
            (f"{partition}.baseFileCount", str(len(slices["base_path"].drop_null()))),
            (f"{partition}.logFileCount", str(pc.sum(logs).as_py() or 0)),
        ]
    return rows


def validate_metadata_table_files(spark: SparkSession, arguments: Arguments) -> Rows:
    """Compare the files that the metadata table lists with those in the storage; all of them if ``verbose``."""
    client = arguments.client(spark)
    listed, _ = list_from_metadata(open_metadata_table(client))
    stored, _ = list_files(client.storage)
    sides = [
        pa.table([files["partition"], files["path"], files["size"]], names=["partition", "path", "size"])
        for files in (stored, listed)
    ]
    joined = sides[0].join(sides[1], ["partition", "path"], join_type="full outer", right_suffix="_listed")
    if not arguments.flag("verbose"):
        same = pc.fill_null(pc.equal(joined["size"], joined["size_listed"]), False)
        joined = joined.filter(pc.invert(same))
    rows = joined.sort_by([("partition", "ascending"), ("path", "ascending")]).to_pylist()
    return [
        (
            row["partition"],
            file_name_of(row["path"]),
            row["size"] is not None,
            row["size_listed"] is not None,
            row["size"] or 0,
            row["size_listed"] or 0,
        )
        for row in rows
    ]


PROCEDURES: dict[str, Procedure] = {
    "show_metadata_table_partitions": show_metadata_table_partitions,
    "show_metadata_table_files": show_metadata_table_files,
    "show_metadata_table_stats": show_metadata_table_stats,
    "validate_metadata_table_files": validate_metadata_table_files,
}
