"""Commit up to which an entry of a catalog is synced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pyhudi.timeline.instant import Instant
from pyhudi.timeline.timeline import Timeline

LAST_COMMIT = "last_commit_time_sync"
LAST_COMPLETION = "last_commit_completion_time_sync"


@dataclass(frozen=True, slots=True)
class SyncedInstants:
    """Times of a timeline that a sync records in the properties of a table, as Apache Hudi does.

    Attributes:
        requested: The last requested time of a completed write.
        completion: The last completion time; None: the layout of the timeline has none, or it is not recorded.
    """

    requested: str
    completion: str | None = None

    @classmethod
    def of_timeline(cls, timeline: Timeline) -> Self | None:
        """Return the times of a timeline; None if it has no completed write."""
        done = list(timeline.writes().completed())
        if not done:
            return None
        completions = [instant.completion for instant in done if instant.completion is not None]
        return cls(max(instant.requested for instant in done), max(completions, default=None))

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
        return self.requested == now.requested and now.completion in (None, self.completion)

    def later(self, timeline: Timeline) -> list[Instant]:
        """Return the writes that completed after these times, in order of completion."""
        return [instant for instant in timeline.writes().by_completion() if self._is_later(instant)]

    def _is_later(self, instant: Instant) -> bool:
        if instant.completion is not None and self.completion is not None:
            return instant.completion > self.completion
        return instant.requested > self.requested
