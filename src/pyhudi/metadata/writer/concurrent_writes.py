"""Effect of concurrent writes on partition statistics.

An exact record replaces all earlier records, and readers order records by the instants that wrote them
(docs/format/metadata.md, section 3.4). So a write must not claim to have replaced the whole content of a partition if
other writes have completed since it was planned; and its additions would be lost before an exact record of a later
instant that already exists.
"""

from __future__ import annotations

from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.operation_types import OVERWRITES


def completed_concurrently(active: ActiveTimeline, instant: str) -> list[Instant]:
    """Return the writes of other writers that have completed since a write began (empty if the timeline has no
    completion times; then there are no partition statistics)."""
    done = active.timeline.completed().writes()
    return [i for i in done if i.requested != instant and i.completion is not None and i.completion > instant]


def has_later_overwrite(active: ActiveTimeline, instant: str) -> bool:
    """Return True if a write with a later instant has completed that may have written exact records of partitions."""
    later = [
        i
        for i in completed_concurrently(active, instant)
        if i.requested > instant and i.action == Action.REPLACE_COMMIT
    ]
    return any(active.commit_metadata(i).operation in OVERWRITES for i in later)
