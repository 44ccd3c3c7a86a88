"""Concurrency control: detection of instants of other writers that conflict with a commit.

Two writes conflict if they write to or replace the same file group (partition and file id). This is Apache Hudi's
default strategy, with its exceptions for compaction. With non-blocking concurrency control, writes that only append log
files do not conflict with each other: readers merge their records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.table.view.planned_groups import (
    is_clustering,
    pending_clustering_groups,
    pending_compaction_groups,
    pending_log_compaction_groups,
)
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata
from pyhudi.timeline.instant import WRITE_ACTIONS, Action, Instant
from pyhudi.timeline.operation_types import COMPACT, COMPACTIONS, LOG_COMPACT
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.commit_outcome import Conflicted

GROUP_SCHEMA = REPLACED_SCHEMA
"""File groups: ``partition`` (relative path) and ``file_id``."""


def touched_groups(metadata: CommitMetadata) -> pa.Table:
    """Return the file groups that a write wrote to or replaced, as GROUP_SCHEMA."""
    written = metadata.stats.filter(pc.is_valid(metadata.stats["path"]))
    groups = pa.Table.from_arrays([written["partitionPath"], written["fileId"]], schema=GROUP_SCHEMA)
    if metadata.replaced is not None:
        groups = pa.concat_tables([groups, metadata.replaced.filter(pc.is_valid(metadata.replaced["file_id"]))])
    return groups.group_by(GROUP_SCHEMA.names).aggregate([]).select(GROUP_SCHEMA.names)


def _rewritten(metadata: CommitMetadata) -> pa.Table:
    """Return the file groups that a write rewrote or replaced, without those that only got log files."""
    stats = metadata.stats
    return touched_groups(replace(metadata, stats=stats.filter(pc.is_null(stats["logVersion"]))))


@dataclass(frozen=True, slots=True)
class ConflictExceptions:
    """What is no conflict by the options of a write.

    Attributes:
        pending_clustering: Writes to file groups that wait for a clustering.
        appends: Log files that two writes append to the same file group.
    """

    pending_clustering: bool = False
    appends: bool = False


def find_conflict(
    metadata: CommitMetadata,
    requested: str,
    begun: Timeline,
    active: ActiveTimeline,
    version: int,
    exceptions: ConflictExceptions = ConflictExceptions(),
) -> Conflicted | None:
    """Return the first instant that conflicts with committing ``metadata``, or None.

    ``begun`` is the timeline on which the write was planned, ``active`` the one just loaded under the lock of the
    table. Conflicts are: overlapping writes that completed since; a pending clustering of the same groups; in
    version 6 a compaction that was unknown when the write was planned, because log files are assigned to slices by name
    there. ``exceptions`` are none; with those for appends, a log compaction that was planned after the write began is
    a conflict.
    """
    completed = [
        i
        for i in active.timeline.completed().writes()
        if not begun.is_completed(i.requested) and i.requested != requested
    ]
    pending = [] if exceptions.pending_clustering else [pending_clustering_groups(active)]
    if version < 8:
        compactions = pending_compaction_groups(active)
        begun_instants = pa.array([i.requested for i in begun], pa.string())
        pending.append(compactions.filter(pc.invert(pc.is_in(compactions["instant"], value_set=begun_instants))))
    if exceptions.appends:
        log_compactions = pending_log_compaction_groups(active)
        pending.append(log_compactions.filter(pc.greater(log_compactions["instant"], requested)))
    if not completed and not any(p.num_rows for p in pending):
        return None
    touched = touched_groups(metadata)
    buckets = _buckets(touched)
    for other in completed:
        other_metadata = active.commit_metadata(other)
        planned_before = other.requested < requested if version >= 8 else other.requested in begun
        if other_metadata.operation == COMPACT and planned_before:
            continue  # So the write ran concurrently with it.
        # The merged block takes the place of the newest one in it, which may be newer than those of this write.
        reorders = other_metadata.operation == LOG_COMPACT and exceptions.appends and other.requested > requested
        if other_metadata.operation == LOG_COMPACT and not reorders:
            continue  # The records are unchanged.
        # From version 8 on a log file belongs to the slice that was the latest when its write completed.
        is_independent = other_metadata.operation == COMPACT and version >= 8
        shared = common_group(_rewritten(metadata) if is_independent else touched, touched_groups(other_metadata))
        if shared is None and buckets.num_rows and not is_independent:
            shared = common_group(buckets, _buckets(touched_groups(other_metadata)))
        if shared is not None and exceptions.appends and not (is_independent or reorders):
            shared = _common_group_rewritten(metadata, other_metadata)
        if shared is not None:
            return Conflicted(requested, other, f"{other.action} {other.requested} concurrently changed {shared}")
    for groups in pending:
        shared = common_group(groups, touched)
        if shared is not None:
            planned = _common_instant(groups, touched)
            plan = active.timeline.find(planned)
            assert plan is not None
            return Conflicted(requested, plan, f"pending {plan.action} {planned} is going to rewrite {shared}")
    return None


def _common_group_rewritten(mine: CommitMetadata, theirs: CommitMetadata) -> str | None:
    """Return the name of a file group, or bucket, that both writes have changed, and of which one of them wrote more
    than log files; None if there is none."""
    for rewritten, touched in ((_rewritten(mine), touched_groups(theirs)), (touched_groups(mine), _rewritten(theirs))):
        both = common_group(rewritten, touched) or common_group(_buckets(rewritten), _buckets(touched))
        if both is not None:
            return both
    return None


def find_later_compaction(groups: pa.Table, requested: str, active: ActiveTimeline) -> Conflicted | None:
    """Return the first compaction, planned or completed later than ``requested``, of one of the file groups
    (GROUP_SCHEMA)."""
    pending = pending_compaction_groups(active)
    for other in active.timeline:
        if other.requested <= requested or other.family != Action.COMMIT:
            continue
        if other.is_completed:
            compacted = touched_groups(active.commit_metadata(other))
        else:
            compacted = pending.filter(pc.equal(pending["instant"], other.requested))
        shared = common_group(groups, compacted)
        if shared is not None:
            return Conflicted(requested, other, f"{other.action} {other.requested} compacts {shared}")
    return None


def find_change(groups: pa.Table, requested: str, begun: Timeline, active: ActiveTimeline) -> Conflicted | None:
    """Return the first write completed since ``begun`` was loaded that has changed the records of one of the file
    groups (GROUP_SCHEMA). Compactions change only files."""
    done = active.timeline.completed().writes()
    return _first_change(groups, requested, [i for i in done if not begun.is_completed(i.requested)], active)


def find_change_since(groups: pa.Table, requested: str, active: ActiveTimeline) -> Conflicted | None:
    """Return the first write completed since the instant ``requested`` that has changed the records of one of the file
    groups (GROUP_SCHEMA)."""
    done = active.timeline.completed().writes()
    return _first_change(groups, requested, [i for i in done if i.order_time > requested], active)


def _first_change(
    groups: pa.Table, requested: str, others: Sequence[Instant], active: ActiveTimeline
) -> Conflicted | None:
    for other in others:
        if other.requested == requested:
            continue
        other_metadata = active.commit_metadata(other)
        if other_metadata.operation in COMPACTIONS:
            continue
        shared = common_group(groups, touched_groups(other_metadata))
        if shared is not None:
            return Conflicted(requested, other, f"{other.action} {other.requested} concurrently changed {shared}")
    return None


def find_concurrent_write(requested: str, begun: Timeline, active: ActiveTimeline) -> Conflicted | None:
    """Return the first write of another writer that is pending, or was completed since ``begun`` was loaded. Planned
    table services are ignored, because they may not be running."""
    for other in active.timeline:
        if other.requested == requested or other.family not in WRITE_ACTIONS:
            continue
        if other.is_completed and not begun.is_completed(other.requested):
            return Conflicted(requested, other, f"{other.action} {other.requested} was completed concurrently")
        pending = not other.is_completed and other.action in WRITE_ACTIONS
        if pending and not is_clustering(active, other):
            return Conflicted(requested, other, f"{other} is being written by another process")
    return None


def _buckets(groups: pa.Table) -> pa.Table:
    """Return file groups of the bucket index by their bucket numbers: a bucket may have only one file group, but two
    writers may create one concurrently. (Random ids may start with eight digits, but hardly twice in one partition.)"""
    numbered = groups.filter(pc.match_substring_regex(groups["file_id"], r"^\d{8}-"))
    heads = pc.utf8_slice_codeunits(numbered["file_id"], 0, 8)
    return pa.Table.from_arrays([numbered["partition"], heads], schema=GROUP_SCHEMA)


def common_group(left: pa.Table, right: pa.Table) -> str | None:
    """Return the name of a file group that is in both tables (GROUP_SCHEMA), for messages; None if there is none."""
    shared = left.join(right, keys=GROUP_SCHEMA.names, join_type="left semi")
    if not shared.num_rows:
        return None
    partition, file_id = (shared[name][0].as_py() for name in GROUP_SCHEMA.names)
    rest = f" and {shared.num_rows - 1} more" if shared.num_rows > 1 else ""
    return f"file group {file_id!r} of partition {partition!r}{rest}"


def _common_instant(groups: pa.Table, touched: pa.Table) -> str:
    instant: str = groups.join(touched, keys=GROUP_SCHEMA.names, join_type="left semi")["instant"][0].as_py()
    return instant
