"""Deletions by cleans, rollbacks and restores, from their records in the timeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from pyhudi.errors import InstantNotFoundError
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.plans.restore_plan import rollbacks_of

DELETING_ACTIONS = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)
"""Actions whose records name the files that they have deleted."""
DELETIONS_SCHEMA = pa.schema(
    [
        ("requested", pa.string()),
        ("completed", pa.string()),
        ("action", pa.string()),
        ("undone", pa.list_(pa.string())),
        ("earliest_retained", pa.string()),
        ("partitions", pa.int64()),
        ("files_deleted", pa.int64()),
        ("files_failed", pa.int64()),
        ("millis", pa.int64()),
    ]
)
"""One row per completed clean, rollback and restore, newest first. ``undone`` are the writes that a rollback or restore
has undone, null of a clean; ``earliest_retained`` is the first write whose snapshot a clean has retained."""
DELETED_FILES_SCHEMA = pa.schema(
    [("partition", pa.string()), ("path", pa.string()), ("is_deleted", pa.bool_())],
)
"""One row per file: partition, path relative to the table, and False if its deletion has failed."""


def deletions(table: TableSnapshot) -> pa.Table:
    """Return the completed cleans, rollbacks and restores of the active timeline (`DELETIONS_SCHEMA`)."""
    active = table.active
    instants = list(active.timeline.completed().of_actions(*DELETING_ACTIONS))
    instants.sort(key=lambda instant: (instant.requested, instant.action), reverse=True)
    records = concurrent_map(active.completed_record, instants)
    rows = [_row(instant, record) for instant, record in zip(instants, records, strict=True)]
    return pa.Table.from_pylist(rows, schema=DELETIONS_SCHEMA)


def deleted_files(table: TableSnapshot, requested: str) -> pa.Table:
    """Return the files that a clean, rollback or restore has deleted (`DELETED_FILES_SCHEMA`), by partition.

    Raises:
        InstantNotFoundError: The active timeline has no such completed instant.
    """
    done = table.active.timeline.completed().of_actions(*DELETING_ACTIONS)
    instant = next((one for one in done if one.requested == requested), None)
    if instant is None:
        raise InstantNotFoundError(
            f"the active timeline of {table.storage.uri()} has no completed clean, rollback or restore {requested!r}"
        )
    parts = [DELETED_FILES_SCHEMA.empty_table()]
    for partition, record in _partitions(instant.action, table.active.completed_record(instant)):
        for is_deleted, name in ((True, "successDeleteFiles"), (False, "failedDeleteFiles")):
            paths = [_path(partition, path) for path in record[name] or ()]
            columns = [[partition] * len(paths), paths, [is_deleted] * len(paths)]
            parts.append(pa.table(columns, schema=DELETED_FILES_SCHEMA))
    return pa.concat_tables(parts)


def deleted_paths(action: str, record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of the files that the record of a clean, rollback or restore names as deleted; those of old
    releases are absolute."""
    for partition, part in _partitions(action, record):
        for path in part["successDeleteFiles"] or ():
            yield _path(partition, path)


def _row(instant: Instant, record: Mapping[str, Any]) -> dict[str, Any]:
    parts = list(_partitions(instant.action, record))
    return {
        "requested": instant.requested,
        "completed": instant.completion,
        "action": instant.action,
        "undone": record.get("commitsRollback") or record.get("instantsToRollback"),
        "earliest_retained": record.get("earliestCommitToRetain") or None,
        "partitions": len({partition for partition, _ in parts}),
        "files_deleted": sum(len(part["successDeleteFiles"] or ()) for _, part in parts),
        "files_failed": sum(len(part["failedDeleteFiles"] or ()) for _, part in parts),
        "millis": record["timeTakenInMillis"],
    }


def _partitions(action: str, record: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield partitions with their part of a record; of a restore, for each of its rollbacks."""
    for one in rollbacks_of(record) if action == Action.RESTORE else (record,):
        yield from sorted(one["partitionMetadata"].items())


def _path(partition: str, path: str) -> str:
    return path if "/" in path or not partition else f"{partition}/{path}"
