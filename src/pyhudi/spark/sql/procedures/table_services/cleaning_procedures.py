"""Procedures of cleaning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from pyhudi.config import options
from pyhudi.services.cleaning.clean_planner import pending_cleans
from pyhudi.services.cleaning.cleaner import Cleaner
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.plans.clean_plan import emptied_partitions

_CLEANING = {
    "clean_policy": options.CLEAN_POLICY.key,
    "retain_commits": options.CLEAN_COMMITS_RETAINED.key,
    "hours_retained": options.CLEAN_HOURS_RETAINED.key,
    "file_versions_retained": options.CLEAN_FILE_VERSIONS_RETAINED.key,
    "trigger_strategy": options.CLEAN_TRIGGER_STRATEGY.key,
    "trigger_max_commits": options.CLEAN_TRIGGER_MAX_COMMITS.key,
}


def run_clean(spark: SparkSession, arguments: Arguments) -> Rows:
    """Delete the files that no query needs, by the arguments' policy; without ``schedule_in_line`` only what pending
    plans name."""
    client, opts = arguments.opened(spark, arguments.as_options(_CLEANING))
    if not arguments.flag("schedule_in_line") and not pending_cleans(client.active_timeline()):
        return []
    has_trigger = any(arguments.values[name] is not None for name in ("trigger_strategy", "trigger_max_commits"))
    done = Cleaner(client, opts, SparkFileStatsReader(spark)).run(only_if_due=has_trigger)
    active = client.reload().active_timeline()
    rows = []
    for requested in done.instants:
        instant = active.timeline.find(requested, Action.CLEAN)
        assert instant is not None
        record = _record(active, instant, State.COMPLETED)
        rows.append(
            (
                record["startCleanTime"],
                record["timeTakenInMillis"],
                record["totalFilesDeleted"],
                record["earliestCommitToRetain"],
                "{}",
                record["version"],
            )
        )
    return rows


def _record(active: ActiveTimeline, instant: Instant, state: State) -> dict[str, Any]:
    data = active.read_state(instant, state)
    with active.parsing(active.in_state(instant, state) or instant):
        return decode_record(Action.CLEAN, state, data)


def _done(spark: SparkSession, arguments: Arguments) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield completed cleans, newest first, then archived ones if requested: their times and action, and their
    records."""
    client = arguments.client(spark)
    active = client.active_timeline()
    for instant in reversed(list(active.timeline.completed().of_actions(Action.CLEAN))):
        head = (instant.requested, instant.completion, instant.action)
        yield head, _record(active, instant, State.COMPLETED)
    if arguments.flag("showArchived"):
        for row in _archived(client):
            head = (row["requested"], row["completion"], row["action"])
            yield head, decode_record(Action.CLEAN, State.COMPLETED, row["metadata"])


def _archived(client: TableMetaClient) -> list[dict[str, Any]]:
    """Cleans that have left the active timeline, newest first."""
    rows = read_archived_timeline(client.storage, client.config.layout, actions=(Action.CLEAN,)).to_pylist()
    return [row for row in reversed(rows) if row["metadata"]]


def show_cleans(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show completed cleans, newest first."""
    names = (
        "startCleanTime",
        "timeTakenInMillis",
        "totalFilesDeleted",
        "earliestCommitToRetain",
        "lastCompletedCommitTimestamp",
        "version",
    )
    return arguments.limited((*head, *(record[name] for name in names)) for head, record in _done(spark, arguments))


def show_cleans_metadata(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show what completed cleans have deleted in each partition."""
    return arguments.limited(
        (
            *head,
            record["startCleanTime"],
            path,
            part["policy"],
            len(part["deletePathPatterns"]),
            len(part["successDeleteFiles"]),
            len(part["failedDeleteFiles"]),
            part["isPartitionDeleted"],
            record["timeTakenInMillis"],
            record["totalFilesDeleted"],
        )
        for head, record in _done(spark, arguments)
        for path, part in sorted(record["partitionMetadata"].items())
    )


def show_clean_plans(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the plans of cleans, carried out or not, newest first."""
    client = arguments.client(spark)
    active = client.active_timeline()
    plans = [
        (instant.requested, instant.state.value, _record(active, instant, State.REQUESTED))
        for instant in reversed(list(active.timeline.of_actions(Action.CLEAN)))
    ]
    if arguments.flag("showArchived"):
        plans += [
            (row["requested"], State.COMPLETED.value, decode_record(Action.CLEAN, State.REQUESTED, row["plan"]))
            for row in _archived(client)
            if row["plan"]
        ]
    return arguments.limited((time, state, Action.CLEAN, *_planned(plan)) for time, state, plan in plans)


def _planned(plan: dict[str, Any]) -> tuple[Any, ...]:
    earliest = (plan["earliestInstantToRetain"] or {}).get("timestamp")
    extra = ", ".join(f"{key}={value}" for key, value in (plan["extraMetadata"] or {}).items()) or None
    counts = (len(plan["filePathsToBeDeletedPerPartition"] or ()), len(emptied_partitions(plan)))
    return earliest, plan["lastCompletedCommitTimestamp"], plan["policy"], plan["version"], *counts, extra


PROCEDURES: dict[str, Procedure] = {
    "run_clean": run_clean,
    "show_cleans": show_cleans,
    "show_cleans_metadata": show_cleans_metadata,
    "show_clean_plans": show_clean_plans,
}
