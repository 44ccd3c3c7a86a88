"""Changes of the metadata table that other files of it include, so that they cannot be rolled back."""

from __future__ import annotations

from pyhudi.metadata.file_groups.delta_commit_writer import acknowledged_partitions
from pyhudi.metadata.metadata_layout import FILES, load_metadata_timeline
from pyhudi.metadata.reader.initial_instants import is_initial_instant
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.operation_types import BULK_INSERT_PREPPED, LOG_COMPACT
from pyhudi.timeline.timeline import Timeline

_MERGING = (LOG_COMPACT, BULK_INSERT_PREPPED)
"""Operations of delta commits whose files include the changes of earlier ones: log compactions, and builds."""


def is_merged(storage: Storage, config: TableConfig, target: Instant) -> bool:
    """Return True if other files of the metadata table include the changes of a completed write, so that they cannot be
    rolled back: its files or logs were compacted since, or a partition was built since, also by an indexing action."""
    if FILES not in config.metadata_partitions:
        return True
    active = load_metadata_timeline(storage, config.version)
    timeline = active.timeline
    delta_commit = timeline.find(target.requested, Action.DELTA_COMMIT)
    if delta_commit is None or not delta_commit.is_completed:
        return True
    compactions = timeline.of_actions(Action.COMMIT, Action.COMPACTION, Action.LOG_COMPACTION)
    if any(i.requested > target.requested for i in compactions):
        return True
    deltas = timeline.completed().of_actions(Action.DELTA_COMMIT)
    if config.version < 8:
        return _is_merged_by_delta_commits(active, deltas, delta_commit)
    later = (i for i in deltas if i.order_time > delta_commit.order_time or i.requested > target.requested)
    return any(is_initial_instant(i) or active.commit_metadata(i).operation in _MERGING for i in later)


def _is_merged_by_delta_commits(active: ActiveTimeline, deltas: Timeline, delta_commit: Instant) -> bool:
    """Return True if a delta commit of version 6, whose timeline has no completion times, may include the changes of
    another one: a log compaction, or the build of a partition."""
    later = deltas.after(delta_commit.requested)
    if any(is_initial_instant(i) or active.commit_metadata(i).operation == LOG_COMPACT for i in later):
        return True
    # An index that was planned before the write may have been built after it.
    written = active.commit_metadata(delta_commit)
    known = {*written.stats["partitionPath"].to_pylist(), *acknowledged_partitions(written)}
    others = (active.commit_metadata(i) for i in deltas if not is_initial_instant(i))
    builds = (one.stats["partitionPath"].to_pylist() for one in others if one.operation == BULK_INSERT_PREPPED)
    return any(not known.issuperset(built) for built in builds)
