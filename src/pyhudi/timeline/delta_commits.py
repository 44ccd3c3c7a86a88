"""Delta commits since the last compaction, of a table or of its metadata table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyhudi.timeline.instant import Action, Instant, parse_instant
from pyhudi.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class DeltaCommits:
    """Number of delta commits since an instant, and that instant."""

    count: int
    since: str

    def seconds_until(self, now: str) -> int:
        """Return the seconds from ``since`` to ``now``, both truncated to seconds."""
        begin, end = (parse_instant(text).replace(microsecond=0) for text in (self.since, now))
        return int((end - begin).total_seconds())


def delta_commits_since_compaction(timeline: Timeline) -> DeltaCommits | None:
    """Return the completed delta commits since the last completed compaction, or since the first delta commit; None for
    a table without delta commits that was never compacted.

    From table version 8 on these are the ones completed after the compaction was planned, before it those requested
    later.
    """
    deltas = [i for i in timeline if i.action == Action.DELTA_COMMIT]
    last = last_requested(i for i in timeline if i.action == Action.COMMIT and i.is_completed)
    if last is not None:
        later = [i for i in deltas if i.is_completed and i.order_time > last.requested]
        return DeltaCommits(len(later), last.requested)
    if not deltas:
        return None
    return DeltaCommits(sum(i.is_completed for i in deltas), deltas[0].requested)


def delta_commits_since_plan(timeline: Timeline) -> DeltaCommits | None:
    """Return the delta commits, including pending ones, since the last compaction was planned, whether it was executed
    or not."""
    deltas = [i for i in timeline if i.action == Action.DELTA_COMMIT]
    compactions = (i for i in timeline if i.action == Action.COMPACTION or (i.action == Action.COMMIT))
    last = last_requested(i for i in compactions if i.is_completed or i.action == Action.COMPACTION)
    if last is not None:
        return DeltaCommits(sum(i.requested > last.requested for i in deltas), last.requested)
    return DeltaCommits(len(deltas), deltas[0].requested) if deltas else None


def last_requested(instants: Iterable[Instant]) -> Instant | None:
    """Return the instant that was requested last; None without any."""
    return max(instants, key=lambda i: i.requested, default=None)
