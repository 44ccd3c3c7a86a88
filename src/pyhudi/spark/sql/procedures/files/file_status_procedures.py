"""Procedure that shows whether a file exists, or which action has deleted it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from pyhudi.format.file_names import file_name_of
from pyhudi.read.inspection.deletions import DELETING_ACTIONS, deleted_paths
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.instant import State

_UNKNOWN = ("unknown", "", "", "", "")
_Deleted = tuple[str, str, str, dict[str, Any]]
"""Action, instant, timeline and record of an action that deletes files."""


def show_file_status(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show whether a file exists, or which action has deleted it."""
    client = arguments.client(spark)
    partition, name = arguments.text("partition") or "", str(arguments.text("file"))
    path = f"{partition}/{name}" if partition else name
    for action, instant, timeline, record in _deletions(client):
        for deleted in deleted_paths(action, record):
            if file_name_of(deleted) == name and (not partition or f"{partition}/{name}" in f"/{deleted}"):
                return [("deleted", action, instant, timeline, deleted)]
    if client.storage.exists(path):
        return [("exists", "", "", "", client.storage.uri(path))]
    return [_UNKNOWN]


def _deletions(client: TableMetaClient) -> Iterator[_Deleted]:
    """Completed actions that delete files, newest first."""
    active = client.active_timeline()
    for instant in reversed(list(active.timeline.completed().of_actions(*DELETING_ACTIONS))):
        yield instant.action, instant.requested, "active", active.completed_record(instant)
    archived = read_archived_timeline(client.storage, client.config.layout).sort_by([("requested", "descending")])
    for row in archived.to_pylist():
        if row["action"] in DELETING_ACTIONS and row["metadata"]:
            record = decode_record(row["action"], State.COMPLETED, row["metadata"])
            yield row["action"], row["requested"], "archived", record


PROCEDURES: dict[str, Procedure] = {"show_file_status": show_file_status}
