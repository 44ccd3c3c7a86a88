"""Commit up to which an entry of a catalog is synced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pyhudi.timeline.instant import Action, Instant, just_before
from pyhudi.timeline.timeline import Timeline

LAST_COMMIT = "last_commit_time_sync"
LAST_COMPLETION = "last_commit_completion_time_sync"
_COMPACTIONS = (Action.COMPACTION, Action.LOG_COMPACTION)


@dataclass(frozen=True, slots=True)
class SyncedInstants:
    """Times of a timeline that a sync records in the properties of a table, as Apache Hudi does.

    Attributes:
        requested: The last requested time of a completed write. Where the timeline has no completion times, the last
            one before all pending writes: these may complete later, and nothing else would tell.
        completion: The last completion time; None: the layout of the timeline has none, or it is not recorded.
        latest: The last requested time of a completed write of the timeline; None: these are recorded times.
    """

    requested: str
    completion: str | None
    latest: str | None = None

    @classmethod
    def of_timeline(cls, timeline: Timeline) -> Self | None:
        """Return the times of a timeline; None if it has no completed write."""
        done = list(timeline.writes().completed())
        if not done:
            return None
        completions = [instant.completion for instant in done if instant.completion is not None]
        latest, completion = max(instant.requested for instant in done), max(completions, default=None)
        return cls(_before_pending(timeline, latest) if completion is None else latest, completion, latest)

    @classmethod
    def of_properties(cls, properties: Mapping[str, str]) -> Self | None:
        """Return the times in the properties of a table; None if it was never synced completely."""
        requested = properties.get(LAST_COMMIT)
        return cls(requested, properties.get(LAST_COMPLETION)) if requested else None

    def as_properties(self) -> dict[str, str]:
        """Return the properties to record."""
        completion = {} if self.completion is None else {LAST_COMPLETION: self.completion}
        return {LAST_COMMIT: self.requested, **completion}

    def is_at(self, now: SyncedInstants) -> bool:
        """Return True if nothing was written since these times. Where the timeline has no completion times, only the
        requested ones count."""
        return self.requested == now.latest and now.completion in (None, self.completion)

    def is_in(self, timeline: Timeline) -> bool:
        """Return True if a timeline has the writes of these times, as far as it can tell."""
        if not timeline.is_completed(self.requested) or timeline.is_before_start(self.requested):
            return False
        completions = {instant.completion for instant in timeline.writes().completed()} - {None}
        return not completions or self.completion is None or self.completion in completions

    def later(self, timeline: Timeline) -> list[Instant]:
        """Return the writes that completed after these times, in order of completion."""
        return [instant for instant in timeline.writes().by_completion() if self._is_later(instant)]

    def _is_later(self, instant: Instant) -> bool:
        if instant.completion is not None and self.completion is not None:
            return instant.completion > self.completion
        return instant.requested > self.requested


def _before_pending(timeline: Timeline, latest: str) -> str:
    """Return the last requested time of a completed write that precedes all pending ones; if there is none, the time
    immediately before these. Compactions do not count, because they add no partitions."""
    pending = timeline.writes().pending().filter(lambda instant: instant.action not in _COMPACTIONS).first
    if pending is None or pending.requested > latest:
        return latest
    settled = [done.requested for done in timeline.writes().completed() if done.requested < pending.requested]
    return max(settled, default=just_before(pending.requested))
