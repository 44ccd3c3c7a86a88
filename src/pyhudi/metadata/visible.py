"""Which instants of the metadata table count; docs/format/metadata.md, section 6.3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyhudi.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Visible:
    """Instants that count: completed on the metadata table's timeline (or archived there), and not pending on that of
    the table."""

    metadata: Timeline
    pending: frozenset[str]

    @classmethod
    def of(cls, metadata: Timeline, data: Timeline) -> Visible:
        """From both timelines."""
        return cls(metadata, frozenset(i.requested for i in data.pending()))

    def __contains__(self, instant: object) -> bool:
        return isinstance(instant, str) and self.shows(instant)

    def shows(self, instant: str) -> bool:
        """Whether what that instant wrote to log files counts."""
        return self.metadata.contains_or_before_start(instant) and instant not in self.pending

    def shows_base(self, instant: str) -> bool:
        """Whether base files of that instant count."""
        return self.metadata.contains_or_before_start(instant)

    def is_pending(self, instant: str) -> bool:
        """Whether the instant is one of the metadata table that has not been completed."""
        found = self.metadata.find(instant)
        return found is not None and not found.is_completed

    def completion(self, instant: str) -> str:
        """When it was completed; its own time if that is not known."""
        return self.metadata.completion_of(instant) or instant
