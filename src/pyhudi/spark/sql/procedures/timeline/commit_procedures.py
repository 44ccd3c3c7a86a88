"""Procedures that list commits, and the files and partitions of one."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pyhudi.errors import InstantNotFoundError
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.sql.procedures.timeline.commit_statistics import (
    FILE_COLUMNS,
    commit_totals,
    completed_writes,
    creates_file_group,
)
from pyhudi.timeline.commit_metadata import CommitMetadata, total
from pyhudi.timeline.instant import Instant


def show_commits(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show completed writes, newest first."""
    active = arguments.client(spark).active_timeline()
    return arguments.limited(
        (i.requested, i.completion, i.action, *commit_totals(m.stats)) for i, m in completed_writes(active)
    )


def show_commits_metadata(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the files of completed writes, newest write first."""
    active = arguments.client(spark).active_timeline()
    return arguments.limited(
        (instant.requested, instant.completion, instant.action, *row.values())
        for instant, metadata in completed_writes(active)
        for row in metadata.stats.select(FILE_COLUMNS).to_pylist()
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
        added = pc.sum(creates_file_group(part)).as_py() or 0
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
    for instant, metadata in completed_writes(active):
        if requested is None or instant.requested == requested:
            rows = [(instant.requested, instant.action, k, v) for k, v in metadata.extra.items() if key in (None, k)]
            return arguments.limited(rows)
    return []


PROCEDURES: dict[str, Procedure] = {
    "show_commits": show_commits,
    "show_commits_metadata": show_commits_metadata,
    "show_commit_files": show_commit_files,
    "show_commit_partitions": show_commit_partitions,
    "show_commit_write_stats": show_commit_write_stats,
    "show_commit_extra_metadata": show_commit_extra_metadata,
}
