"""Effect of concurrent writes on the statistics of whole partitions.

A record that is exact stands for all records before it, and readers take records in the order of the instants that
wrote them (docs/format/metadata.md, section 3.4). So a write must not say that it has replaced all that there was in a
partition if others have completed since it was planned; and what it adds would be lost behind an exact record of a
later instant that is there already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.timeline.instant import Action

if TYPE_CHECKING:
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.instant import Instant

OVERWRITES = frozenset({"INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION"})
"""Operations that replace all that there was in a partition."""


def completed_concurrently(data: ActiveTimeline, instant: str) -> list[Instant]:
    """The writes of others that have completed since a write began (none known where the timeline has no completion
    times; there are no statistics of partitions there)."""
    done = data.timeline.completed().writes()
    return [i for i in done if i.requested != instant and i.completion is not None and i.completion > instant]


def follows_overwrite(data: ActiveTimeline, instant: str) -> bool:
    """Return True if a write of a later instant has completed already that may have left exact records of
    partitions."""
    later = [
        i for i in completed_concurrently(data, instant) if i.requested > instant and i.action == Action.REPLACE_COMMIT
    ]
    return any(data.commit_metadata(i).operation in OVERWRITES for i in later)
