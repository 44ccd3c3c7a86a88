"""Completed cleans of a table, in the active timeline and in the archived one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.instant import Action, Instant, State

_CLEANS = (Action.CLEAN,)


def completed_cleans(active: ActiveTimeline, after: str = "") -> Iterator[tuple[Instant, dict[str, Any]]]:
    """Yield the completed cleans later than an instant with their records, newest first.

    The archived timeline is read only if ``after`` is before the active one, and not before the cleans there have been
    consumed.

    Raises:
        CorruptInstantError: A clean, or a file of the archived timeline, cannot be parsed.
    """
    for clean in reversed(active.timeline.completed().of_actions(Action.CLEAN).after(after).instants):
        yield clean, active.completed_record(clean)
    if active.timeline.is_before_start(after):
        yield from _archived_cleans(active, after)


def _archived_cleans(active: ActiveTimeline, after: str) -> Iterator[tuple[Instant, dict[str, Any]]]:
    storage, layout = active.storage, active.layout
    times = read_archived_timeline(storage, layout, after=after, actions=_CLEANS, metadata=False)["requested"]
    # Records may be large, and mostly that of the newest clean is enough: it is read before the others.
    bounds = [after, *(time.as_py() for time in times[-2:])]
    while len(bounds) > 1:
        newest = bounds.pop()
        cleans = read_archived_timeline(storage, layout, after=bounds[-1], up_to=newest, actions=_CLEANS)
        for row in reversed(cleans.to_pylist()):
            if row["metadata"]:
                clean = Instant(row["requested"], Action.CLEAN, State.COMPLETED, row["completion"], "")
                yield clean, decode_record(Action.CLEAN, State.COMPLETED, row["metadata"])
