"""Latest write that recorded the columns of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.timeline.commit_metadata import CommitMetadata

if TYPE_CHECKING:
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.instant import Instant

_SERVICES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX"})
"""Operations that rewrite what is there, under the columns that the table had when they began."""


def newest_columns(active: ActiveTimeline, as_of: str | None = None) -> tuple[Instant, CommitMetadata] | None:
    """The newest completed write, requested up to ``as_of``, that recorded its columns; None when there is none.

    Table services are passed over where there is another write: beside them a write may have added columns, and have
    begun before.
    """
    writes = [i for i in active.timeline.writes() if i.is_completed and (as_of is None or i.requested <= as_of)]
    found: tuple[Instant, CommitMetadata] | None = None
    for instant in reversed(writes):
        metadata = active.commit_metadata(instant)
        if not metadata.schema_json:
            continue
        if metadata.operation not in _SERVICES:
            return instant, metadata
        found = found or (instant, metadata)
    return found
