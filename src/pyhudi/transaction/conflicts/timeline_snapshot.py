"""State on which the plan of a write depends. It is planned again if another writer or service has changed this
state."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.timeline import Timeline

_SERVICES = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)


@dataclass(frozen=True, slots=True)
class TimelineSnapshot:
    """Instants that affect a plan: completed writes, which determine the files; rollbacks, which may leave some;
    planned table services, which are going to rewrite them.

    Each is (requested time, action, completion time, is completed): a service that completes creates other slices of
    the same instants.
    """

    instants: frozenset[tuple[str, str, str | None, bool]]

    @classmethod
    def from_timeline(cls, timeline: Timeline | None) -> TimelineSnapshot:
        """Return the snapshot of a timeline (None: the table does not exist yet)."""
        if timeline is None:
            return cls(frozenset())
        return cls(frozenset(_entry(instant) for instant in timeline if _counts(instant)))


def _counts(instant: Instant) -> bool:
    if instant.is_completed:
        return instant.is_write or instant.action == Action.ROLLBACK
    # Layout 1 plans a clustering as a replacecommit.
    return instant.action in _SERVICES or instant.action == Action.REPLACE_COMMIT


def _entry(instant: Instant) -> tuple[str, str, str | None, bool]:
    return instant.requested, instant.action, instant.completion, instant.is_completed
