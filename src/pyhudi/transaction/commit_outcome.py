"""Outcomes of a commit. Losing to another writer is an outcome, not an accident, so it is a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.errors import ConflictError
from pyhudi.timeline.instant import Instant


@dataclass(frozen=True, slots=True)
class Committed:
    """The write is visible. ``completion`` is its completion time (None in timeline layout 1); ``warnings`` say what
    went wrong after that, which changes nothing of it; ``millis`` are milliseconds by phase."""

    instant: Instant
    warnings: tuple[str, ...] = ()
    millis: Mapping[str, int] = field(default_factory=dict)

    @property
    def completion(self) -> str | None:
        return self.instant.completion


@dataclass(frozen=True, slots=True)
class Conflicted:
    """Another writer changed the same file groups first; this write has been rolled back."""

    requested: str
    other: Instant
    reason: str

    def error(self) -> ConflictError:
        """The outcome as an error, for callers that cannot try again."""
        return ConflictError(
            f"the write of instant {self.requested} cannot be committed: {self.reason}; nothing of it is left, so it "
            "can be run again"
        )
