"""Procedures of rollbacks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from pyhudi.errors import InstantNotFoundError
from pyhudi.services.rollback import roll_back
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.table.view.pending_file_groups import is_clustering
from pyhudi.timeline.instant import Action, Instant, State


def rollback_to_instant(spark: SparkSession, arguments: Arguments) -> Rows:
    """Undo one write: the last completed one, or a pending one."""
    client, opts = arguments.opened(spark)
    roll_back(client, opts, SparkFileStatsReader(spark), arguments.text("instant_time"))
    return [(True,)]


def run_rollback_inflight_tableservice(spark: SparkSession, arguments: Arguments) -> Rows:
    """Roll back the attempt of a compaction or clustering; its plan stays pending, unless it is to be
    deleted.

    Raises:
        InstantNotFoundError: No such service is under way at that instant.
        BusyError: It is alive.
    """
    begun = time.monotonic()
    client, opts = arguments.opened(spark)
    requested = str(arguments.text("pending_instant"))
    active = client.active_timeline()
    plan = active.timeline.find(requested)
    is_service = plan is not None and (plan.action == Action.COMPACTION or is_clustering(active, plan))
    if plan is None or plan.state is not State.INFLIGHT or not is_service:
        raise InstantNotFoundError(
            f"no compaction and no clustering is under way at {requested!r} in the table at {client.storage.uri()}"
        )
    with_plan = arguments.flag("delete_request_instant_file")
    roll_back(client, opts, SparkFileStatsReader(spark), requested, with_plan=with_plan)
    return [(requested, str(int((time.monotonic() - begun) * 1000)))]


def show_rollbacks(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show what completed rollbacks have undone, newest first."""
    return arguments.limited(
        (
            record["startRollbackTime"],
            undone,
            record["totalFilesDeleted"],
            record["timeTakenInMillis"],
            len(record["partitionMetadata"]),
        )
        for _, record in _rollbacks(spark, arguments)
        for undone in record["commitsRollback"]
    )


def show_rollback_detail(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the files that one rollback has deleted, or failed to delete."""
    requested = arguments.text("instant_time")
    rollback = next(
        (record for instant, record in _rollbacks(spark, arguments) if instant.requested == requested), None
    )
    if rollback is None:
        raise InstantNotFoundError(f"the active timeline has no completed rollback {requested!r}")
    head = (rollback["startRollbackTime"], f"[{', '.join(rollback['commitsRollback'])}]")
    return arguments.limited(
        (*head, path, file, succeeded)
        for path, part in sorted(rollback["partitionMetadata"].items())
        for succeeded, files in ((True, part["successDeleteFiles"]), (False, part["failedDeleteFiles"]))
        for file in files
    )


def _rollbacks(spark: SparkSession, arguments: Arguments) -> Iterator[tuple[Instant, dict[str, Any]]]:
    """The completed rollbacks of the active timeline with their records, newest first."""
    active = arguments.client(spark).active_timeline()
    for instant in reversed(list(active.timeline.completed().of_actions(Action.ROLLBACK))):
        yield instant, active.completed_record(instant)


PROCEDURES: dict[str, Procedure] = {
    "rollback_to_instant": rollback_to_instant,
    "run_rollback_inflight_tableservice": run_rollback_inflight_tableservice,
    "show_rollbacks": show_rollbacks,
    "show_rollback_detail": show_rollback_detail,
}
