"""The timeline as it will be once a pending write has been published."""

from __future__ import annotations

from datetime import timedelta

from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Instant, State, format_instant, parse_instant


class StagedTimeline(ActiveTimeline):
    """A timeline in which a pending write counts as the last completed one. Nothing is created in the storage.

    Args:
        active: The timeline with the pending instant.
        pending: The instant.
        metadata: Metadata of the commit.
    """

    def __init__(self, active: ActiveTimeline, pending: Instant, metadata: CommitMetadata) -> None:
        latest = max([i.order_time for i in active.timeline.completed()] + [pending.requested])
        completion = format_instant(parse_instant(latest) + timedelta(milliseconds=1))
        name = active.layout.file_name(pending.requested, pending.action, State.COMPLETED, completion)
        published = active.layout.parse(name)
        assert published is not None
        super().__init__(active.storage, active.layout, [*active._files.values(), published], active._stamps)
        self._pending = pending
        self._published = published
        self._metadata = metadata

    def reload(self) -> StagedTimeline:
        """Return the current timeline in storage, with the unpublished commit."""
        return StagedTimeline(super().reload(), self._pending, self._metadata)

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return the metadata of a commit, also of the unpublished one."""
        return self._metadata if instant == self._published else super().commit_metadata(instant)
