"""Rollback status of a write, checked by its own writer before it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.errors import ConflictError, FormatError
from pyhudi.timeline.action_metadata import RollbackPlan
from pyhudi.timeline.instant import Action, Instant, State

if TYPE_CHECKING:
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.timeline import Timeline


def read_rollback_plan(active: ActiveTimeline, rollback: Instant) -> RollbackPlan | None:
    """Return the plan of a rollback; None if it was never complete, and so never begun."""
    requested = active.in_state(rollback, State.REQUESTED)
    if requested is None:
        return None
    try:
        return RollbackPlan.decode(active.read(requested))
    except FormatError:
        return None


def find_rollback(active: ActiveTimeline, begun: Timeline, requested: str) -> Instant | None:
    """The first rollback, in whatever state, of the instant with that requested time that is not on ``begun``."""
    for rollback in active.timeline.of_actions(Action.ROLLBACK):
        if begun.find(rollback.requested, Action.ROLLBACK) is None:
            plan = read_rollback_plan(active, rollback)
            if plan is not None and plan.instant == requested:
                return rollback
    return None


def refuse_if_rolled_back(entry: Instant, expected: State, begun: Timeline, active: ActiveTimeline) -> None:
    """Refuse to go on with a write that another writer rolled back, or has begun to. ``expected`` is the state that the
    write has left its instant in, ``begun`` the timeline of when it began, ``active`` the one of now.

    Raises:
        ConflictError: the instant is rolled back.
    """
    found = active.timeline.find(entry.requested, entry.action)
    rollback = find_rollback(active, begun, entry.requested)
    if rollback is not None or found is None or found.state is not expected:
        raise _rolled_back(entry, found, rollback, active)


def _rolled_back(
    entry: Instant, found: Instant | None, rollback: Instant | None, active: ActiveTimeline
) -> ConflictError:
    """The error of a writer that finds its instant rolled back; ``found`` is what is on the timeline of it."""
    state = "gone from the timeline" if found is None else found.state.value.lower()
    by = "another writer"
    if rollback is not None:
        # who rolls back in order to write announces itself next
        later = (i for i in active.timeline.writes() if i.requested > rollback.requested)
        writer = next(later, None)
        by = f"the writer of {writer.action} {writer.requested}" if writer is not None else by
        by += f", by {rollback},"
    return ConflictError(
        f"{entry} of {active.storage.root} is {state}: {by} took this writer for dead and rolled it back, so "
        "nothing of it is left and it can be run again. Without hoodie.write.concurrency.mode a writer takes every "
        "unfinished write of others for dead: with several writers set "
        "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL in all of them"
    )
