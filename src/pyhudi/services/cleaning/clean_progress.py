"""State of the timeline at the last clean, from which the next one continues."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action
from pyhudi.timeline.plans.clean_plan import INCOMPLETE, SAVEPOINTS

_MAX_EMPTY_PLANS = 1_000
"""Maximum number of tables for which a process remembers a plan without files."""


@dataclass(frozen=True, slots=True)
class CleanProgress:
    """State of the timeline at a clean, from which the next one continues.

    Attributes:
        earliest: First retained write.
        last_completed: Last write that was examined.
        savepoints: Savepoints, whose files were retained.
        incomplete: Files are left that the policy does not retain.
    """

    earliest: str
    last_completed: str
    savepoints: tuple[str, ...]
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class LastClean(CleanProgress):
    """The last completed clean: its ``instant``, and the state of the timeline then."""

    instant: str = ""

    @classmethod
    def load(cls, active: ActiveTimeline) -> LastClean | None:
        """Read it from the timeline; None without one.

        Raises:
            CorruptInstantError: The file cannot be parsed.
        """
        last = active.timeline.completed().of_actions(Action.CLEAN).last
        if last is None:
            return None
        record = active.completed_record(last)
        extra = record["extraMetadata"] or {}
        return cls(
            record["earliestCommitToRetain"] or "",
            record["lastCompletedCommitTimestamp"] or "",
            tuple(filter(None, extra.get(SAVEPOINTS, "").split(","))),
            extra.get(INCOMPLETE) == "true",
            last.requested,
        )


class EmptyPlans:
    """Plans of this process without files, by table. They are not added to the timeline, but the next plan need not
    examine the same partitions again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_table: dict[str, CleanProgress] = {}

    def add(self, table: TableSnapshot, progress: CleanProgress) -> None:
        """Remember a plan without files."""
        with self._lock:
            self._by_table.pop(table.storage.root, None)
            self._by_table[table.storage.root] = progress
            if len(self._by_table) > _MAX_EMPTY_PLANS:
                del self._by_table[next(iter(self._by_table))]

    def progress(self, table: TableSnapshot, last: LastClean | None) -> CleanProgress | None:
        """Return the state after the last clean, or after a later plan that found nothing to delete."""
        empty_plan = self._by_table.get(table.storage.root)
        if empty_plan is None or (last is not None and last.earliest >= empty_plan.earliest):
            return last
        # The table may have been recreated.
        return empty_plan if table.active.timeline.is_completed(empty_plan.earliest) else last


EMPTY_PLANS = EmptyPlans()
