"""Report of a commit for logs, callbacks and metrics."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence

import pyarrow.compute as pc

from pyhudi.config import Options
from pyhudi.metrics.action_report import ActionReport
from pyhudi.metrics.publish import publish
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.commit_metadata import NEW_FILE_GROUP, CommitMetadata, total
from pyhudi.timeline.instant import Action, Instant, millis_of_instant
from pyhudi.timeline.operation_types import CLUSTER, COMPACT, LOG_COMPACT
from pyhudi.transaction.post_commit.commit_callback import send_commit_callback

_log = logging.getLogger(__name__)

PHASES = ("write", "commit", "metadata_services")
"""Phases of a write with durations in results: until the commit, including planning; publication, including the wait
for the lock; compaction of the metadata table."""

_SERVICES = {COMPACT: Action.COMPACTION, LOG_COMPACT: Action.LOG_COMPACTION, CLUSTER: Action.CLUSTERING}
"""Operations of table services, whose commits have the actions of writes."""


def commit_report(
    uri: str, config: TableConfig, instant: Instant, metadata: CommitMetadata, millis: Mapping[str, int]
) -> ActionReport:
    """Return the report of a published commit.

    Args:
        uri: URI of the table.
        config: Its configuration.
        instant: The completed instant.
        metadata: The published metadata.
        millis: Milliseconds by phase.
    """
    stats = metadata.stats
    counts = {
        "files": stats.num_rows,
        "records": total(stats, "numWrites"),
        "inserts": total(stats, "numInserts"),
        "updates": total(stats, "numUpdateWrites"),
        "deletes": total(stats, "numDeletes"),
    }
    action = _SERVICES.get(metadata.operation, instant.action)
    gauges = _gauges(metadata) | {"commitTime": millis_of_instant(instant.requested, config.timezone)}
    size = total(stats, "totalWriteBytes")
    return ActionReport(
        action, uri, config.name, (instant.requested,), metadata.operation, counts, size, millis, gauges
    )


def report_commit(
    storage: Storage,
    config: TableConfig,
    instant: Instant,
    metadata: CommitMetadata,
    *,
    millis: Mapping[str, int],
    opts: Options,
) -> None:
    """Report a published commit to callbacks, the log and metrics; the write stays committed if this fails.

    Arguments are those of `commit_report`, and the options of callbacks and metrics. As in Apache Hudi, table services
    are not sent to the URL of callbacks.
    """
    if metadata.operation not in _SERVICES:
        send_commit_callback(storage.uri(), config.name, instant, metadata, opts)
    try:
        report = commit_report(storage.uri(), config, instant, metadata, millis)
    except Exception as failure:
        _log.warning("%s is not reported: %s", instant, failure)
    else:
        publish(report, opts)


def _gauges(metadata: CommitMetadata) -> dict[str, float]:
    """Return totals as computed by ``HoodieCommitMetadata`` of Apache Hudi."""
    stats = metadata.stats
    is_new = pc.equal(stats["prevCommit"], NEW_FILE_GROUP)
    times = {
        name: total(stats.flatten(), f"runtimeStats.{name}")
        for name in ("totalScanTime", "totalCreateTime", "totalUpsertTime")
    }
    new_files = int(pc.sum(is_new).as_py() or 0)
    return {
        "totalPartitionsWritten": pc.count_distinct(stats["partitionPath"]).as_py(),
        "totalFilesInsert": new_files,
        "totalFilesUpdate": stats.num_rows - new_files,
        "totalRecordsWritten": total(stats, "numWrites"),
        "totalUpdateRecordsWritten": total(stats, "numUpdateWrites"),
        "totalInsertRecordsWritten": total(stats, "numInserts"),
        "totalRecordsDeleted": total(stats, "numDeletes"),
        "totalBytesWritten": total(stats, "totalWriteBytes"),
        "totalCompactedRecordsUpdated": total(stats, "totalUpdatedRecordsCompacted"),
        "totalLogFilesCompacted": total(stats, "totalLogFilesCompacted"),
        "totalLogRecordsCompacted": total(stats, "totalLogRecords"),
        "totalLogFilesSize": total(stats, "totalLogSizeCompacted"),
        **times,
    }


def millis_by_phase(clock: Sequence[float]) -> dict[str, int]:
    """Return the milliseconds of each of `PHASES`, given the seconds at which they began, and at which the last one
    ended."""
    spans = itertools.pairwise(clock)
    return {name: round((end - start) * 1000) for name, (start, end) in zip(PHASES, spans, strict=True)}
