"""Procedures that show what writes have done."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pyhudi.errors import InstantNotFoundError
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_history
from pyhudi.timeline.commit_metadata import CommitMetadata, decode_commit, total
from pyhudi.timeline.instant import WRITE_ACTIONS, Instant, State

_NEW = "null"
"""The previous commit of a new file group."""
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


def show_archived_commits(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show writes that have left the active timeline, newest first."""
    client = arguments.client(spark)
    rows = sorted(read_history(client.storage, client.config.layout).to_pylist(), key=lambda r: r["requested"])
    return arguments.limited(
        (row["requested"], row["completion"], *_totals(decode_commit(row["metadata"]).stats))
        for row in reversed(rows)
        if row["action"] in WRITE_ACTIONS and row["metadata"]
    )


def show_commits_metadata(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the files of completed writes, newest write first."""
    active = arguments.client(spark).active_timeline()
    names = [
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
    return arguments.limited(
        (instant.requested, instant.completion, instant.action, *row.values())
        for instant, metadata in _writes(active)
        for row in metadata.stats.select(names).to_pylist()
    )


def _write_of(spark: SparkSession, arguments: Arguments) -> tuple[Instant, CommitMetadata]:
    client, wanted = arguments.client(spark), arguments.text("instant_time")
    active = client.active_timeline()
    found = next((i for i in active.timeline.completed().writes() if i.requested == wanted), None)
    if found is None:
        raise InstantNotFoundError(f"the active timeline has no completed write {wanted!r}")
    return found, active.commit_metadata(found)


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
    wanted, key = arguments.text("instant_time"), arguments.text("metadata_key")
    active = arguments.client(spark).active_timeline()
    for instant, metadata in _writes(active):
        if wanted is None or instant.requested == wanted:
            rows = [(instant.requested, instant.action, k, v) for k, v in metadata.extra.items() if key in (None, k)]
            return arguments.limited(rows)
    return []


def show_timeline(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the instants, newest first, with the times at which their states were reached."""
    client = arguments.client(spark)
    active = client.active_timeline()
    times = {State.REQUESTED: "", State.INFLIGHT: "", State.COMPLETED: ""}
    rows: list[tuple[Any, ...]] = []
    for instant in reversed(list(active.timeline)):
        for state in times:
            found = active.in_state(instant, state)
            stat = None if found is None else client.storage.stat(active.path(found))
            times[state] = "-" if stat is None else f"{datetime.fromtimestamp(stat.mtime_ms / 1000):%m-%d %H:%M:%S}"
        rows.append((instant.requested, instant.action, instant.state.value, *times.values(), "ACTIVE", None))
    if arguments.flag("showArchived"):
        for row in (
            read_history(client.storage, client.config.layout).sort_by([("requested", "descending")]).to_pylist()
        ):
            rows.append((row["requested"], row["action"], "COMPLETED", "-", "-", "-", "ARCHIVED", None))
    return arguments.limited(rows)


def stats_file_sizes(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show how large the files of each write are, and of all."""
    active = arguments.client(spark).active_timeline()
    sizes = [(i.requested, m.stats["fileSizeInBytes"]) for i, m in _writes(active) if m.stats.num_rows]
    found = [(name, *_spread(values)) for name, values in sizes]
    if sizes:
        found.append(("ALL", *_spread(pa.chunked_array([c for _, values in sizes for c in values.chunks]))))
    return arguments.limited(found)


def _spread(values: pa.ChunkedArray) -> list[Any]:
    low, half, high = pc.quantile(values, q=[0.1, 0.5, 0.95]).to_pylist()
    least, most = pc.min_max(values).as_py().values()
    return [least, low, half, pc.mean(values).as_py(), high, most, len(values), pc.stddev(values).as_py()]


def stats_wa(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show how many records each write has written for each that it changed."""
    active = arguments.client(spark).active_timeline()
    rows = []
    for instant, metadata in _writes(active):
        changed, written = total(metadata.stats, "numUpdateWrites"), total(metadata.stats, "numWrites")
        rows.append((instant.requested, changed, written, f"{written / changed:.2f}" if changed else "0"))
    return arguments.limited(rows)


PROCEDURES: dict[str, Procedure] = {
    "show_commits": show_commits,
    "show_archived_commits": show_archived_commits,
    "show_commits_metadata": show_commits_metadata,
    "show_commit_files": show_commit_files,
    "show_commit_partitions": show_commit_partitions,
    "show_commit_write_stats": show_commit_write_stats,
    "show_commit_extra_metadata": show_commit_extra_metadata,
    "show_timeline": show_timeline,
    "stats_file_sizes": stats_file_sizes,
    "stats_wa": stats_wa,
}
