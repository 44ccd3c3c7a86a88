"""Concurrency control: detection of instants of other writers that conflict with a commit.

Two writes conflict if they write to or replace the same file group (partition and file id). This is Apache Hudi's
default strategy, with its exceptions for compaction. With non-blocking concurrency control, writes that only append log
files do not conflict with each other: readers merge their records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options
from pyhudi.config.enums import MergeMode
from pyhudi.storage.concurrent_reads import concurrent_map, read_each
from pyhudi.table.view.pending_file_groups import (
    is_clustering,
    pending_clustering_groups,
    pending_compaction_groups,
    pending_log_compaction_groups,
)
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import WRITE_ACTIONS, Action, Instant
from pyhudi.timeline.operation_types import BUCKET_RESCALE, COMPACT, COMPACTIONS, DELETES, LOG_COMPACT
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.concurrency_mode import is_non_blocking
from pyhudi.transaction.conflicts.changed_groups import (
    GROUP_SCHEMA,
    common_group,
    common_instant,
    groups_by_bucket,
    rewritten_groups,
    touched_groups,
)
from pyhudi.transaction.conflicts.clustering_updates import allows_updates
from pyhudi.transaction.conflicts.plan_conflicts import run_method


@dataclass(frozen=True, slots=True)
class AllowedConflicts:
    """Changes that are no conflicts according to the options of a write.

    Attributes:
        pending_clustering: Writes to file groups that wait for a clustering.
        appends: Log files that two writes append to the same file group.
        appends_in_order: The order of log files decides between versions of a record, not ordering values. Then a
            compaction may not separate log files from those of a write that began later. Deletes by keys have no
            ordering values.
    """

    pending_clustering: bool = False
    appends: bool = False
    appends_in_order: bool = False

    @classmethod
    def from_options(cls, opts: Options, mode: MergeMode) -> Self:
        """Return what the options of a write to a table with a merge mode allow.

        Raises:
            InvalidOptionError: The strategy for writes to a pending clustering is unknown.
        """
        return cls(
            pending_clustering=allows_updates(opts),
            appends=is_non_blocking(opts),
            appends_in_order=mode is not MergeMode.EVENT_TIME_ORDERING,
        )


def find_conflict(
    metadata: CommitMetadata,
    requested: str,
    timeline_at_start: Timeline,
    active: ActiveTimeline,
    *,
    version: int,
    exceptions: AllowedConflicts = AllowedConflicts(),
) -> Conflicted | None:
    """Return the first instant that conflicts with committing ``metadata``, or None.

    ``timeline_at_start`` is the timeline on which the write was planned, ``active`` the one just loaded under the lock
    of the table. Conflicts are: overlapping writes that completed since; a pending clustering of the same groups; in
    version 6 a compaction that was unknown when the write was planned, because log files are assigned to slices by name
    there. ``exceptions`` are not reported. If appends are allowed, a log compaction planned after the write began is a
    conflict, and so is a compaction between log files in order.
    """
    others = [
        i
        for i in active.timeline.completed().writes()
        if not timeline_at_start.is_completed(i.requested) and i.requested != requested
    ]
    pending = _pending_rewrites(requested, timeline_at_start, active, version=version, exceptions=exceptions)
    if not others and not any(p.num_rows for p in pending):
        return None
    groups = touched_groups(metadata)
    write = _Write(metadata, requested, groups, groups_by_bucket(groups), exceptions.appends)
    for other, other_metadata in read_each(active.commit_metadata, others):
        planned_before = other.requested < requested if version >= 8 else other.requested in timeline_at_start
        common = _completed_conflict(write, other, other_metadata, version, planned_before=planned_before)
        if common is not None:
            return Conflicted(requested, other, f"{other.action} {other.requested} concurrently changed {common}")
    conflict = _pending_conflict(write, pending, active)
    if conflict is not None or not exceptions.appends:
        return conflict
    in_order = exceptions.appends_in_order or metadata.operation in DELETES
    return _find_separating_compaction(write, others, active, in_order=in_order)


@dataclass(frozen=True, slots=True)
class _Write:
    """A write that is about to be committed."""

    metadata: CommitMetadata
    requested: str
    groups: pa.Table
    buckets: pa.Table
    appends: bool


def _pending_rewrites(
    requested: str, timeline_at_start: Timeline, active: ActiveTimeline, *, version: int, exceptions: AllowedConflicts
) -> list[pa.Table]:
    """Return the file groups, with the instant of the plan, that pending services are going to rewrite, and in which a
    write is a conflict."""
    pending = [] if exceptions.pending_clustering else [pending_clustering_groups(active)]
    if version < 8:
        compactions = pending_compaction_groups(active)
        known_instants = pa.array([i.requested for i in timeline_at_start], pa.string())
        pending.append(compactions.filter(pc.invert(pc.is_in(compactions["instant"], value_set=known_instants))))
    if exceptions.appends:
        log_compactions = pending_log_compaction_groups(active)
        pending.append(log_compactions.filter(pc.greater(log_compactions["instant"], requested)))
    return pending


def _completed_conflict(
    write: _Write, other: Instant, other_metadata: CommitMetadata, version: int, *, planned_before: bool
) -> str | None:
    """Return the name of a file group, or bucket, in which a completed write conflicts; None if there is none."""
    if other_metadata.operation == COMPACT and planned_before:
        return None  # So the write ran concurrently with it.
    if other_metadata.operation == BUCKET_RESCALE and write.metadata.operation not in COMPACTIONS:
        # The buckets of its keys may have other numbers now, also in partitions that the rescaling did not know.
        return common_group(write.groups, write.groups)
    # The merged block takes the place of the newest one in it, which may be newer than those of this write.
    reorders = other_metadata.operation == LOG_COMPACT and write.appends and other.requested > write.requested
    if other_metadata.operation == LOG_COMPACT and not reorders:
        return None  # The records are unchanged.
    # From version 8 on a log file belongs to the slice that was the latest when its write completed.
    is_independent = other_metadata.operation == COMPACT and version >= 8
    groups = rewritten_groups(write.metadata) if is_independent else write.groups
    common = common_group(groups, touched_groups(other_metadata))
    if common is None and write.buckets.num_rows and not is_independent:
        common = common_group(write.buckets, groups_by_bucket(touched_groups(other_metadata)))
    if common is not None and write.appends and not (is_independent or reorders):
        return _common_group_rewritten(write.metadata, other_metadata)
    return common


def _pending_conflict(write: _Write, pending: Sequence[pa.Table], active: ActiveTimeline) -> Conflicted | None:
    """Return the conflict with a pending service that is going to rewrite a file group of the write."""
    for groups in pending:
        common = common_group(groups, write.groups)
        if common is not None:
            planned = common_instant(groups, write.groups)
            plan = active.timeline.find(planned)
            assert plan is not None
            reason = (
                f"pending {plan.action} {planned} is going to rewrite {common}: unless another process is executing "
                f"it, call services.{run_method(plan)}({planned!r}) first"
            )
            return Conflicted(write.requested, plan, reason)
    return None


def _find_separating_compaction(
    write: _Write, others: Sequence[Instant], active: ActiveTimeline, *, in_order: bool
) -> Conflicted | None:
    """Return the first compaction of log files of another write that began later, if those of ``write`` are not part of
    it, but of the next file slice.

    Ordered by the instants of log files, as readers merge them until the compaction is executed, the records of the
    other write win; ordered by file slices, those of ``write`` win. Unless all log files are merged in order
    (``in_order``), this applies to deletes by keys.
    """
    began_later = [i for i in others if i.requested > write.requested]
    later = dict(zip(began_later, concurrent_map(active.commit_metadata, began_later), strict=True))
    appended = {
        i: touched_groups(metadata)
        for i, metadata in later.items()
        if metadata.operation in DELETES or (in_order and metadata.operation not in COMPACTIONS)
    }
    if not appended:
        return None
    pending = pending_compaction_groups(active)
    compactions = [
        *((i, touched_groups(metadata)) for i, metadata in later.items() if metadata.operation == COMPACT),
        *(
            (i, pending.filter(pc.equal(pending["instant"], i.requested)))
            for i in active.timeline.pending().of_actions(Action.COMPACTION)
            if i.requested > write.requested
        ),
    ]
    for compaction, compacted in compactions:
        for other, metadata in appended.items():
            if other.order_time > compaction.requested:
                continue
            common = common_group(write.groups.join(compacted, GROUP_SCHEMA.names, join_type="left semi"), metadata)
            if common is not None:
                reason = f"{compaction} compacts the later {other} of {common}"
                return Conflicted(write.requested, compaction, reason)
    return None


def _common_group_rewritten(metadata: CommitMetadata, other_metadata: CommitMetadata) -> str | None:
    """Return the name of a file group, or bucket, that both writes have changed, and of which one of them wrote more
    than log files; None if there is none."""
    for rewritten, touched in (
        (rewritten_groups(metadata), touched_groups(other_metadata)),
        (touched_groups(metadata), rewritten_groups(other_metadata)),
    ):
        common = common_group(rewritten, touched) or common_group(
            groups_by_bucket(rewritten), groups_by_bucket(touched)
        )
        if common is not None:
            return common
    return None


def find_concurrent_write(requested: str, timeline_at_start: Timeline, active: ActiveTimeline) -> Conflicted | None:
    """Return the first write of another writer that is pending, or was completed since ``timeline_at_start`` was
    loaded. Planned table services are ignored, because they may not be running."""
    for other in active.timeline:
        if other.requested == requested or other.family not in WRITE_ACTIONS:
            continue
        if other.is_completed and not timeline_at_start.is_completed(other.requested):
            return Conflicted(requested, other, f"{other.action} {other.requested} was completed concurrently")
        pending = not other.is_completed and other.action in WRITE_ACTIONS
        if pending and not is_clustering(active, other):
            return Conflicted(requested, other, f"{other} is being written by another process")
    return None
