"""Serializable changes: what a statement has read must still be true when its rows are committed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.conflicts.conflict_resolution import common_group, touched_groups

_SAME_ROWS = frozenset({"COMPACT", "LOG_COMPACT"})
"""Operations that leave the records of a file group as they are."""


@dataclass(frozen=True, slots=True)
class ReadSet:
    """The file groups that an UPDATE, DELETE or MERGE has read.

    Args:
        seen: Requested times of the instants that were completed in the snapshot.
        groups: The file groups that were read (partition, file_id).
        replan: Returns the file groups that the same condition would read on another timeline; called only when
            another writer changed file groups that were not read, under the table's lock.
    """

    seen: frozenset[str]
    groups: pa.Table
    replan: Callable[[ActiveTimeline], pa.Table]

    def find_conflict(self, requested: str, active: ActiveTimeline) -> Conflicted | None:
        """Return the first write that was completed since the snapshot and changed what was read, or might have been
        read had it been there; None without any."""
        now: pa.Table | None = None
        for other in active.timeline.completed():
            if other.requested in self.seen or other.requested == requested:
                continue
            if other.action == Action.RESTORE:
                return Conflicted(requested, other, f"restore {other.requested} took rows back that were read")
            if not other.is_write:
                continue
            theirs = active.commit_metadata(other)
            if theirs.operation in _SAME_ROWS:
                continue
            touched = touched_groups(theirs)
            both = common_group(self.groups, touched)
            if both is None and touched.num_rows:
                now = self.replan(active) if now is None else now
                both = common_group(now, touched)
            if both is not None:
                return Conflicted(requested, other, f"{other.action} {other.requested} meanwhile changed {both}, read")
        return None


def completed_instants(timeline: Timeline) -> frozenset[str]:
    """Return the requested times of all completed instants."""
    return frozenset(instant.requested for instant in timeline.completed())
