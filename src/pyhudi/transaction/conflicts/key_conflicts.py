"""Conflicts between writers that add the same key concurrently, each to a different file group, so that file groups do
not overlap.

An index of keys has one location per key. The later writer looks up its new keys again under the lock of the table, if
another writer has added records since they were looked up.
"""

from __future__ import annotations

import pyarrow.compute as pc

from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Instant
from pyhudi.timeline.operation_types import REWRITING_OPERATIONS
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.commit_outcome import Conflicted


def find_key_conflict(
    index: IndexDelta | None, requested: str, timeline_at_start: Timeline, active: ActiveTimeline
) -> Conflicted | None:
    """Return the last write that has added records since ``timeline_at_start`` was loaded, if the keys of this write
    conflict with those that were added since. ``active`` was loaded under the lock of the table."""
    if index is None or index.find_key_conflict is None:
        return None
    last = next((i for i in reversed(_completed_since(requested, timeline_at_start, active)) if _adds(active, i)), None)
    if last is None:
        return None
    reason = index.find_key_conflict()
    if reason is None:
        return None
    return Conflicted(requested, last, f"{reason} concurrently by other writes, up to {last}")


def _completed_since(requested: str, timeline_at_start: Timeline, active: ActiveTimeline) -> list[Instant]:
    done = active.timeline.completed().writes()
    return [i for i in done if i.requested != requested and not timeline_at_start.is_completed(i.requested)]


def _adds(active: ActiveTimeline, instant: Instant) -> bool:
    metadata = active.commit_metadata(instant)
    if metadata.operation in REWRITING_OPERATIONS:
        return False
    return bool(pc.any(pc.greater(pc.fill_null(metadata.stats["numInserts"], 1), 0)).as_py())
