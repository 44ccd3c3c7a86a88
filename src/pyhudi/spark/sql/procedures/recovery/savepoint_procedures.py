"""Procedures of savepoints and restores."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.errors import InstantNotFoundError
from pyhudi.services.restore import Restorer
from pyhudi.services.savepoint import create_savepoint, delete_savepoint, list_savepoints
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.table.meta_client import TableMetaClient


def call_create_savepoint(spark: SparkSession, arguments: Arguments) -> Rows:
    """Keep the files of a write's snapshot; of the last one, if none is named."""
    client, opts = arguments.opened(spark)
    user, comment = arguments.text("user") or "", arguments.text("comments") or ""
    create_savepoint(client, opts, arguments.text("commit_time") or None, user=user, comment=comment)
    return [(True,)]


def call_delete_savepoint(spark: SparkSession, arguments: Arguments) -> Rows:
    """Delete savepoints, so that their files can be cleaned; the last one, if none is named."""
    client, opts = arguments.opened(spark)
    for instant in _savepoints(client, arguments.texts("instant_time")):
        delete_savepoint(client, opts, instant)
    return [(True,)]


def show_savepoints(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the savepoints, newest first."""
    return [(instant,) for instant in reversed(list_savepoints(arguments.client(spark))["instant"].to_pylist())]


def rollback_to_savepoint(spark: SparkSession, arguments: Arguments) -> Rows:
    """Restore the table to a savepoint; to the last one, if none is named."""
    client, opts = arguments.opened(spark)
    instant = _savepoints(client, arguments.texts("instant_time"))[-1]
    Restorer(client, opts, SparkFileStatsReader(spark)).run(instant)
    return [(True,)]


def _savepoints(client: TableMetaClient, instants: list[str]) -> list[str]:
    """Return the savepoints at these instants; the last one of the table, if none is given.

    Raises:
        InstantNotFoundError: The table has none, or not that one.
    """
    existing = list_savepoints(client)["instant"].to_pylist()
    savepoints = instants or existing[-1:]
    missing = [instant for instant in savepoints if instant not in existing]
    if missing or not savepoints:
        named = f"no savepoint {missing[0]!r}" if missing else "no savepoint"
        raise InstantNotFoundError(
            f"the table at {client.storage.uri()} has {named}; its savepoints: {', '.join(existing) or 'none'}"
        )
    return savepoints


PROCEDURES: dict[str, Procedure] = {
    "create_savepoint": call_create_savepoint,
    "delete_savepoint": call_delete_savepoint,
    "show_savepoints": show_savepoints,
    "rollback_to_savepoint": rollback_to_savepoint,
}
