"""Procedures that list instants, and compare the timelines of two tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from pyhudi.config import Options
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.sql.queries.functions.table_functions import locate
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.instant import Action, Instant, State


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


def commits_compare(spark: SparkSession, arguments: Arguments) -> Rows:
    """List the writes of the table that are newer than the last one of the table at ``path``, or vice versa."""
    name, path = str(arguments.text("table")), str(arguments.text("path"))
    source_writes, target_writes = (_completed_writes(spark, location) for location in (locate(spark, name), path))
    if target_writes and (not source_writes or target_writes[-1] > source_writes[-1]):
        newer = [instant for instant in target_writes if not source_writes or instant > source_writes[-1]]
        return [(f"Source {name} is behind by {len(newer)} commits. Commits to catch up - [{', '.join(newer)}]",)]
    newer = [instant for instant in source_writes if not target_writes or instant > target_writes[-1]]
    return [(f"Source {name} is ahead by {len(newer)} commits. Commits to catch up - [{', '.join(newer)}]",)]


def _completed_writes(spark: SparkSession, location: str) -> list[str]:
    client = TableMetaClient.open(location, Options.parse(session_settings(spark, location)))
    return [instant.requested for instant in client.active_timeline().timeline.completed().writes()]


PROCEDURES: dict[str, Procedure] = {"show_timeline": show_timeline, "commits_compare": commits_compare}
