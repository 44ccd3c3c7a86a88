"""History of a table: its instants, and the files that its writes have written."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.commit_metadata import CommitMetadata, decode_commit, total
from pyhudi.timeline.instant import WRITE_ACTIONS, State, millis_of_instant

_TOTALS = {
    "rows_written": "numWrites",
    "rows_inserted": "numInserts",
    "rows_updated": "numUpdateWrites",
    "rows_deleted": "numDeletes",
    "bytes_written": "totalWriteBytes",
}

_TASK_MILLIS = {"scan_millis": ("totalScanTime",), "write_millis": ("totalUpsertTime", "totalCreateTime")}

HISTORY_SCHEMA = pa.schema(
    [
        ("requested", pa.string()),
        ("completed", pa.string()),
        ("action", pa.string()),
        ("state", pa.string()),
        ("operation", pa.string()),
        ("partitions", pa.int64()),
        ("files_written", pa.int64()),
        ("file_groups_replaced", pa.int64()),
        *((name, pa.int64()) for name in _TOTALS),
        ("millis", pa.int64()),
        *((name, pa.int64()) for name in _TASK_MILLIS),
        ("archived", pa.bool_()),
    ]
)
"""One row per instant, newest first. ``completed`` is null while pending and in tables before version 8; ``operation``
and the counts are null unless it is a completed write. ``rows_written`` counts all rows of the written files, including
copied ones. ``millis`` are the milliseconds from the request to the completion; ``scan_millis`` and ``write_millis``
the total time of the tasks of a write for reading log files and writing data files, as far as recorded."""

WRITTEN_FILES_SCHEMA = pa.schema(
    [
        ("requested", pa.string()),
        ("completed", pa.string()),
        ("operation", pa.string()),
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("path", pa.string()),
        ("previous_instant", pa.string()),
        *((name, pa.int64()) for name in _TOTALS),
        ("file_size", pa.int64()),
    ]
)
"""One row per file written by a completed write of the active timeline, oldest write first."""


def history(table: TableSnapshot, *, archived: bool = False) -> pa.Table:
    """Return the instants of the table (`HISTORY_SCHEMA`); with ``archived``, archived ones, too.

    Those in both timelines, because they are being archived, count as active.
    """
    active = table.active
    instants = list(active.timeline)
    metadata_of_instants = concurrent_map(
        lambda i: active.commit_metadata(i) if i.is_completed and i.is_write else None, instants
    )
    rows = [
        _history_row(i.requested, i.completion, i.action, i.state, m, archived=False)
        for i, m in zip(instants, metadata_of_instants, strict=True)
    ]
    if archived:
        known = {(instant.requested, instant.action) for instant in instants}
        for row in read_archived_timeline(table.storage, active.layout).to_pylist():
            if (row["requested"], row["action"]) in known:
                continue
            metadata = decode_commit(row["metadata"]) if row["action"] in WRITE_ACTIONS and row["metadata"] else None
            archived_row = _history_row(
                row["requested"], row["completion"], row["action"], State.COMPLETED, metadata, archived=True
            )
            rows.append(archived_row)
    rows.sort(key=lambda row: (row["requested"], row["action"]), reverse=True)
    return pa.Table.from_pylist(rows, schema=HISTORY_SCHEMA)


def files_by_write(active: ActiveTimeline) -> pa.Table:
    """Return the files written by each completed write of the active timeline (`WRITTEN_FILES_SCHEMA`)."""
    done = [i for i in active.timeline.writes() if i.is_completed]
    parts = []
    for instant, metadata in zip(done, concurrent_map(active.commit_metadata, done), strict=True):
        stats = metadata.stats
        same = {
            "requested": instant.requested,
            "completed": instant.completion,
            "operation": metadata.operation,
        }
        columns = [pa.array([value] * stats.num_rows, pa.string()) for value in same.values()]
        columns += [stats[n] for n in ("partitionPath", "fileId", "path", "prevCommit")]
        columns += [stats[n] for n in (*_TOTALS.values(), "fileSizeInBytes")]
        parts.append(pa.Table.from_arrays(columns, schema=WRITTEN_FILES_SCHEMA))
    return pa.concat_tables([WRITTEN_FILES_SCHEMA.empty_table(), *parts])


def _history_row(
    requested: str, completed: str | None, action: str, state: State, metadata: CommitMetadata | None, *, archived: bool
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "requested": requested,
        "completed": completed,
        "action": action,
        "state": str(state),
        "archived": archived,
        "millis": _between(requested, completed),
    }
    if metadata is not None:
        stats = metadata.stats
        row |= {
            "operation": metadata.operation,
            "partitions": len(pc.unique(stats["partitionPath"])),
            "files_written": stats.num_rows,
            "file_groups_replaced": 0
            if metadata.replaced is None
            else metadata.replaced["file_id"].drop_null().length(),
            **{name: total(stats, column) for name, column in _TOTALS.items()},
            **{name: _task_millis(stats, times) for name, times in _TASK_MILLIS.items()},
        }
    return row


def _between(requested: str, completed: str | None) -> int | None:
    """Return the milliseconds between two instants; None if one of them is unknown, or not a time."""
    if completed is None:
        return None
    try:
        return millis_of_instant(completed) - millis_of_instant(requested)
    except ValueError:
        return None


def _task_millis(stats: pa.Table, times: tuple[str, ...]) -> int | None:
    """Return the sum of these times over all tasks; None if none is recorded."""
    runtime_stats = stats["runtimeStats"].drop_null().combine_chunks()
    return sum(pc.sum(runtime_stats.field(name)).as_py() or 0 for name in times) if len(runtime_stats) else None
