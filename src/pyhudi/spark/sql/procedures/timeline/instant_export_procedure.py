"""Procedure that exports the metadata of completed instants to a local folder, as JSON."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from pyhudi.read.inspection.instant_export import export_instants as export
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.table.table_snapshot import TableSnapshot, with_snapshot


def export_instants(spark: SparkSession, arguments: Arguments) -> Rows:
    """Write the metadata of completed instants, those of the history first unless ``desc``, as files of a local folder,
    which is created if it does not exist.

    Raises:
        QueryError: The folder cannot be created, or is a file.
    """
    folder = Path(str(arguments.text("local_folder")))
    actions = {part.strip() for part in str(arguments.text("actions")).split(",")}
    newest_first, limit = arguments.flag("desc"), arguments.number("limit")
    limit = None if limit is None or limit < 0 else limit
    chosen = partial(export, folder=folder, actions=actions, limit=limit, newest_first=newest_first)
    _, count = with_snapshot(partial(TableSnapshot.load, arguments.client(spark)), chosen)
    return [(f"Exported {count} Instants to {folder}",)]


PROCEDURES: dict[str, Procedure] = {"export_instants": export_instants}
