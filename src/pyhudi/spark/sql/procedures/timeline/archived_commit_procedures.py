"""Procedures that list commits of the archived timeline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pyspark.sql import SparkSession

from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.sql.procedures.timeline.commit_statistics import FILE_COLUMNS, commit_totals
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.commit_metadata import CommitMetadata, decode_commit
from pyhudi.timeline.instant import WRITE_ACTIONS

_Archived: TypeAlias = tuple[tuple[str, str | None, str], CommitMetadata]


def show_archived_commits(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show writes that have left the active timeline, newest first."""
    return arguments.limited(
        (requested, completion, *commit_totals(metadata.stats))
        for (requested, completion, _), metadata in _archived(spark, arguments)
    )


def show_archived_commits_metadata(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the files of writes that have left the active timeline, newest write first."""
    return arguments.limited(
        (*head, *row.values())
        for head, metadata in _archived(spark, arguments)
        for row in metadata.stats.select(FILE_COLUMNS).to_pylist()
    )


def _archived(spark: SparkSession, arguments: Arguments) -> Iterator[_Archived]:
    """Completed writes that have left the active timeline, newest first, from ``start_ts`` to ``end_ts``, inclusive."""
    client, first, last = arguments.client(spark), arguments.text("start_ts") or "", arguments.text("end_ts")
    history = read_archived_timeline(client.storage, client.config.layout, up_to=last or None)
    for row in history.sort_by([("requested", "descending")]).to_pylist():
        if row["action"] in WRITE_ACTIONS and row["metadata"] and row["requested"] >= first:
            yield (row["requested"], row["completion"], row["action"]), decode_commit(row["metadata"])


PROCEDURES: dict[str, Procedure] = {
    "show_archived_commits": show_archived_commits,
    "show_archived_commits_metadata": show_archived_commits_metadata,
}
