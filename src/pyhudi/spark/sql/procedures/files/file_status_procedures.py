"""Procedure that shows whether a file exists, or which action has deleted it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import SparkSession

from pyhudi.format.file_names import file_name_of
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.instant import Action, State

_UNKNOWN = ("unknown", "", "", "", "")
_DELETING = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)
_Deleted = tuple[str, str, str, bytes]
"""Action, instant, timeline and record of an action that deletes files."""


def show_file_status(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show whether a file exists, or which action has deleted it."""
    client = arguments.client(spark)
    partition, name = arguments.text("partition") or "", str(arguments.text("file"))
    path = f"{partition}/{name}" if partition else name
    for action, instant, timeline, record in _deletions(client):
        for deleted in _deleted_paths(action, record):
            if file_name_of(deleted) == name and (not partition or f"{partition}/{name}" in f"/{deleted}"):
                return [("deleted", action, instant, timeline, deleted)]
    if client.storage.exists(path):
        return [("exists", "", "", "", client.storage.uri(path))]
    return [_UNKNOWN]


def _deletions(client: TableMetaClient) -> Iterator[_Deleted]:
    """Completed actions that delete files, newest first."""
    active = client.active_timeline()
    for instant in reversed(list(active.timeline.completed().of_actions(*_DELETING))):
        yield instant.action, instant.requested, "active", active.read(instant)
    archived = read_archived_timeline(client.storage, client.config.layout).sort_by([("requested", "descending")])
    for row in archived.to_pylist():
        if row["action"] in _DELETING and row["metadata"]:
            yield row["action"], row["requested"], "archived", row["metadata"]


def _deleted_paths(action: str, data: bytes) -> Iterator[str]:
    record = decode_record(action, State.COMPLETED, data)
    records: Iterable[dict[str, Any]] = [record]
    if action == Action.RESTORE:
        records = [one for several in record["hoodieRestoreMetadata"].values() for one in several]
    for one in records:
        for partition, part in one["partitionMetadata"].items():
            for path in part["successDeleteFiles"]:
                yield path if "/" in path or not partition else f"{partition}/{path}"


PROCEDURES: dict[str, Procedure] = {"show_file_status": show_file_status}
