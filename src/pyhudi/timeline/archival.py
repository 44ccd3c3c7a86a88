"""Moving instants from the active timeline into the archived one.

Instants are archived first, and leave the active timeline then. At every point of death readers see each instant,
active or archived or both, and the next run goes on. The caller holds the table's lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyhudi.timeline import archivelog, archivelsm
from pyhudi.timeline.instants import Instant

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.timeline.active import ActiveTimeline
    from pyhudi.timeline.layout import Layout


def archive(storage: Storage, active: ActiveTimeline, instants: Sequence[Instant], *, timezone: str = "LOCAL") -> None:
    """Move completed instants into the archived timeline, from which `pyhudi.timeline.history` reads them.

    ``timezone`` is ``hoodie.table.timeline.timezone``.

    Raises:
        CorruptInstantError: the manifest of the archived timeline, or (in layout 1) its newest file or the file of an
            instant, cannot be parsed.
        InstantNotFoundError: an instant has gone from the active timeline.
        TimelineError: an instant has an action that is not archived (see `can_archive`).
    """
    layout = active.layout
    there = set(_archived(storage, layout, instants))  # by a run that died
    new = sorted(i for i in instants if i not in there)
    if new and layout.version >= 2:
        archivelsm.add(storage, active, new)
    elif new:
        archivelog.add(storage, active, new, timezone)
    _take_off(active, instants)
    if layout.version >= 2:
        archivelsm.tidy(storage, layout)


def can_archive(layout: Layout, instant: Instant) -> bool:
    """Whether the archived timeline of the layout holds instants of such an action."""
    return layout.version >= 2 or instant.family in archivelog.ACTIONS


def finish(storage: Storage, active: ActiveTimeline) -> list[Instant]:
    """Take those instants off the active timeline that are archived already, which an archival has left that died;
    returns them. The caller holds the table's lock.

    Raises:
        CorruptInstantError: the manifest of the archived timeline, or (in layout 1) its newest file, cannot be parsed.
    """
    left = _archived(storage, active.layout, active.timeline.completed().instants)
    _take_off(active, left)
    return left


def _archived(storage: Storage, layout: Layout, instants: Sequence[Instant]) -> list[Instant]:
    if layout.version >= 2:
        return archivelsm.archived(storage, layout, instants)
    return archivelog.archived(storage, layout, instants)


def _take_off(active: ActiveTimeline, instants: Sequence[Instant]) -> None:
    for instant in sorted(instants):
        # the completed file last: without it the others would look like a write that has failed
        for state in sorted(active.states(instant), key=lambda i: i.state.rank):
            active.delete(state)
