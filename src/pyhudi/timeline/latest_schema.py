"""Latest write that recorded the columns of the table."""

from __future__ import annotations

from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Instant
from pyhudi.timeline.operation_types import INDEX, REWRITING_OPERATIONS

_SERVICES = REWRITING_OPERATIONS | {INDEX}
"""Operations that rewrite existing data with the columns that the table had when they began."""


def newest_columns(active: ActiveTimeline, as_of: str | None = None) -> tuple[Instant, CommitMetadata] | None:
    """Return the newest completed write, requested up to ``as_of``, that recorded its columns; None if there is none.

    Table services are skipped if there is another write, because a concurrent write may have added columns and have
    begun earlier.
    """
    writes = [i for i in active.timeline.writes() if i.is_completed and (as_of is None or i.requested <= as_of)]
    latest: tuple[Instant, CommitMetadata] | None = None
    for instant in reversed(writes):
        metadata = active.commit_metadata(instant)
        if not metadata.schema_json:
            continue
        if metadata.operation not in _SERVICES:
            return instant, metadata
        latest = latest or (instant, metadata)
    return latest
