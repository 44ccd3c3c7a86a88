"""Procedures that show commits and their write statistics."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pyhudi.errors import InstantNotFoundError
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.commit_metadata import CommitMetadata, decode_commit, total
from pyhudi.timeline.instant import WRITE_ACTIONS, Action, Instant, State

_NEW = "null"
"""The previous commit of a new file group."""
_FILE_COLUMNS = [
    "partitionPath",
    "fileId",
    "prevCommit",
    "numWrites",
    "numInserts",
    "numDeletes",
    "numUpdateWrites",
    "totalWriteErrors",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
    "totalLogRecords",
    "totalUpdatedRecordsCompacted",
    "totalWriteBytes",
]
_Archived: TypeAlias = tuple[tuple[str, str | None, str], CommitMetadata]
_TOTALS = ("numWrites", "numUpdateWrites", "totalWriteErrors")


def _writes(active: ActiveTimeline) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Completed writes, newest first."""
    for instant in reversed(list(active.timeline.completed().writes())):
        yield instant, active.commit_metadata(instant)


def _added(stats: pa.Table) -> pa.ChunkedArray:
    return pc.equal(pc.fill_null(stats["prevCommit"], _NEW), _NEW)


def _totals(stats: pa.Table) -> list[int]:
    added = pc.sum(_added(stats)).as_py() or 0
    partitions = len(pc.unique(stats["partitionPath"]))
    sums = [total(stats, name) for name in _TOTALS]
    return [total(stats, "totalWriteBytes"), added, stats.num_rows - added, partitions, *sums]


def show_commits(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show completed writes, newest first."""
    active = arguments.client(spark).active_timeline()
    return arguments.limited((i.requested, i.completion, i.action, *_totals(m.stats)) for i, m in _writes(active))


def _archived(spark: SparkSession, arguments: Arguments) -> Iterator[_Archived]:
    """Completed writes that have left the active timeline, newest first, from ``start_ts`` to ``end_ts``, inclusive."""
    client, first, last = arguments.client(spark), arguments.text("start_ts") or "", arguments.text("end_ts")
    history = read_archived_timeline(client.storage, client.config.layout, up_to=last or None)
    for row in history.sort_by([("requested", "descending")]).to_pylist():
        if row["action"] in WRITE_ACTIONS and row["metadata"] and row["requested"] >= first:
            yield (row["requested"], row["completion"], row["action"]), decode_commit(row["metadata"])


def show_archived_commits(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show writes that have left the active timeline, newest first."""
    return arguments.limited(
        (requested, completion, *_totals(metadata.stats))
        for (requested, completion, _), metadata in _archived(spark, arguments)
    )


def show_archived_commits_metadata(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the files of writes that have left the active timeline, newest write first."""
    return arguments.limited(
        (*head, *row.values())
        for head, metadata in _archived(spark, arguments)
        for row in metadata.stats.select(_FILE_COLUMNS).to_pylist()
    )


def show_commits_metadata(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the files of completed writes, newest write first."""
    active = arguments.client(spark).active_timeline()
    return arguments.limited(
        (instant.requested, instant.completion, instant.action, *row.values())
        for instant, metadata in _writes(active)
        for row in metadata.stats.select(_FILE_COLUMNS).to_pylist()
    )


def _write_of(spark: SparkSession, arguments: Arguments) -> tuple[Instant, CommitMetadata]:
    client, requested = arguments.client(spark), arguments.text("instant_time")
    active = client.active_timeline()
    commit = next((i for i in active.timeline.completed().writes() if i.requested == requested), None)
    if commit is None:
        raise InstantNotFoundError(f"the active timeline has no completed write {requested!r}")
    return commit, active.commit_metadata(commit)


def show_commit_files(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the files of one write."""
    instant, metadata = _write_of(spark, arguments)
    names = "partitionPath fileId prevCommit numUpdateWrites numWrites totalWriteBytes totalWriteErrors fileSizeInBytes"
    rows = metadata.stats.select(names.split()).to_pylist()
    return arguments.limited((instant.action, *row.values()) for row in rows)


def show_commit_partitions(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the partitions of one write."""
    instant, metadata = _write_of(spark, arguments)
    stats = metadata.stats
    rows: list[tuple[Any, ...]] = []
    for partition in sorted(pc.unique(stats["partitionPath"]).to_pylist()):
        part = stats.filter(pc.equal(stats["partitionPath"], partition))
        added = pc.sum(_added(part)).as_py() or 0
        sums = [total(part, n) for n in ("numInserts", "numUpdateWrites", "totalWriteBytes", "totalWriteErrors")]
        rows.append((instant.action, partition, added, part.num_rows - added, *sums))
    return arguments.limited(rows)


def show_commit_write_stats(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show bytes and records of one write."""
    instant, metadata = _write_of(spark, arguments)
    size, count = total(metadata.stats, "totalWriteBytes"), total(metadata.stats, "numWrites")
    return [(instant.action, size, count, -(-size // count) if count else 0)]


def show_commit_extra_metadata(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the free entries of a write, the newest unless one is named."""
    requested, key = arguments.text("instant_time"), arguments.text("metadata_key")
    active = arguments.client(spark).active_timeline()
    for instant, metadata in _writes(active):
        if requested is None or instant.requested == requested:
            rows = [(instant.requested, instant.action, k, v) for k, v in metadata.extra.items() if key in (None, k)]
            return arguments.limited(rows)
    return []


def show_timeline(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the instants, newest first, with the times at which their states were reached; those requested from
    ``startTime`` to ``endTime``."""
    first, last = arguments.text("startTime") or "", arguments.text("endTime") or ""
    rows = itertools.chain(_active(arguments.client(spark)), _history(spark, arguments))
    return arguments.limited(row for row in rows if row[0] >= first and (not last or row[0] <= last))


def _active(client: TableMetaClient) -> Iterator[tuple[Any, ...]]:
    active = client.active_timeline()
    for instant in reversed(list(active.timeline)):
        times: list[str | None] = []
        for state in (State.REQUESTED, State.INFLIGHT, State.COMPLETED):
            state_instant = active.in_state(instant, state)
            stat = None if state_instant is None else client.storage.stat(active.path(state_instant))
            times.append(None if stat is None else f"{datetime.fromtimestamp(stat.mtime_ms / 1000):%m-%d %H:%M:%S}")
        yield (instant.requested, instant.action, instant.state.value, *times, "ACTIVE", _rolled_back(active, instant))


def _rolled_back(active: ActiveTimeline, instant: Instant) -> str | None:
    """Return a text with the instants that a completed rollback has undone; None for other instants."""
    if instant.action != Action.ROLLBACK or not instant.is_completed:
        return None
    return f"Rolled back: {', '.join(active.completed_record(instant)['commitsRollback'])}"


def _history(spark: SparkSession, arguments: Arguments) -> Iterator[tuple[Any, ...]]:
    """Yield archived instants, newest first, if requested."""
    if arguments.flag("showArchived"):
        client = arguments.client(spark)
        history = read_archived_timeline(client.storage, client.config.layout, metadata=False)
        for row in history.sort_by([("requested", "descending")]).to_pylist():
            yield (row["requested"], row["action"], State.COMPLETED.value, None, None, None, "ARCHIVED", None)


def stats_file_sizes(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show how large the files of each write are, and of all."""
    active = arguments.client(spark).active_timeline()
    sizes = [(i.requested, m.stats["fileSizeInBytes"]) for i, m in _writes(active) if m.stats.num_rows]
    rows = [(name, *_spread(values)) for name, values in sizes]
    if sizes:
        rows.append(("ALL", *_spread(pa.chunked_array([c for _, values in sizes for c in values.chunks]))))
    return arguments.limited(rows)


def _spread(values: pa.ChunkedArray) -> list[Any]:
    """Least, 10th, 50th percentile, mean, 95th percentile, greatest, number and standard deviation, as Apache Hudi's
    histograms have them."""
    ordered = np.sort(values.to_numpy())
    low, half, high = (_percentile(ordered, share) for share in (0.1, 0.5, 0.95))
    spread = float(ordered.std(ddof=1)) if len(ordered) > 1 else 0.0
    return [int(ordered[0]), low, half, float(ordered.mean()), high, int(ordered[-1]), len(ordered), spread]


def _percentile(ordered: npt.NDArray[np.int64], share: float) -> float:
    """A value between two neighbours, of which the place counts from one to one more than there are."""
    place = share * (len(ordered) + 1)
    at = min(max(int(place), 1), len(ordered))
    above = min(at, len(ordered) - 1)
    part = place - at if 1 <= place < len(ordered) else 0.0
    return float(ordered[at - 1] + part * (ordered[above] - ordered[at - 1]))


def stats_wa(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show how many records each commit has written for each that it changed, and all of them together."""
    active = arguments.client(spark).active_timeline()
    rows, changed, written = [], 0, 0
    for instant, metadata in reversed([write for write in _writes(active) if write[0].action == Action.COMMIT]):
        counts = total(metadata.stats, "numUpdateWrites"), total(metadata.stats, "numWrites")
        rows.append((instant.requested, *counts, _factor(*counts)))
        changed, written = changed + counts[0], written + counts[1]
    return [*arguments.limited(rows), ("Total", changed, written, _factor(changed, written))]


def _factor(changed: int, written: int) -> str:
    return f"{written / changed:.2f}" if changed else "0"


PROCEDURES: dict[str, Procedure] = {
    "show_commits": show_commits,
    "show_archived_commits": show_archived_commits,
    "show_archived_commits_metadata": show_archived_commits_metadata,
    "show_commits_metadata": show_commits_metadata,
    "show_commit_files": show_commit_files,
    "show_commit_partitions": show_commit_partitions,
    "show_commit_write_stats": show_commit_write_stats,
    "show_commit_extra_metadata": show_commit_extra_metadata,
    "show_timeline": show_timeline,
    "stats_file_sizes": stats_file_sizes,
    "stats_wa": stats_wa,
}
