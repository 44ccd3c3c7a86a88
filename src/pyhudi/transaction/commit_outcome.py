"""Outcomes of a commit. A conflict is an expected outcome, so it is a value rather than an exception."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.errors import ConflictError, NonRetryableConflictError
from pyhudi.timeline.instant import Instant


@dataclass(frozen=True, slots=True)
class Committed:
    """The write is visible. ``completion`` is its completion time (None in timeline layout 1); ``warnings`` describe
    later failures, which do not affect the commit; ``millis`` are milliseconds by phase."""

    instant: Instant
    warnings: tuple[str, ...] = ()
    millis: Mapping[str, int] = field(default_factory=dict)

    @property
    def completion(self) -> str | None:
        return self.instant.completion


@dataclass(frozen=True, slots=True)
class Conflicted:
    """Another writer changed the same file groups first. This write has been rolled back. ``is_retryable``: it can be
    run again; otherwise another attempt would have the same conflict."""

    requested: str
    other: Instant
    reason: str
    is_retryable: bool = True

    def error(self) -> ConflictError:
        """Return the outcome as an error, for callers that cannot retry."""
        what = f"the write of instant {self.requested} conflicts: {self.reason}; the write was rolled back completely"
        return ConflictError(f"{what} and can be run again") if self.is_retryable else NonRetryableConflictError(what)
