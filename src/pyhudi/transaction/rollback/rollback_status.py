"""Rollback status of a write, checked by its own writer before it continues."""

from __future__ import annotations

from pyhudi.errors import ConflictError, FormatError
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.plans.rollback_plan import RollbackPlan
from pyhudi.timeline.timeline import Timeline


def read_rollback_plan(active: ActiveTimeline, rollback: Instant) -> RollbackPlan | None:
    """Return the plan of a rollback; None if it was never complete, and thus never started."""
    requested = active.in_state(rollback, State.REQUESTED)
    if requested is None:
        return None
    try:
        return RollbackPlan.decode(active.read(requested))
    except FormatError:
        return None


def find_rollback(active: ActiveTimeline, timeline_at_start: Timeline, requested: str) -> Instant | None:
    """Return the first rollback, in any state, of the instant with that requested time that was not in the timeline at
    the start of the write."""
    for rollback in active.timeline.of_actions(Action.ROLLBACK):
        if timeline_at_start.find(rollback.requested, Action.ROLLBACK) is None:
            plan = read_rollback_plan(active, rollback)
            if plan is not None and plan.instant == requested:
                return rollback
    return None


def refuse_if_rolled_back(
    instant: Instant, expected: State, timeline_at_start: Timeline, active: ActiveTimeline
) -> None:
    """Refuse to continue a write that another writer has rolled back or started to roll back.

    ``expected`` is the state in which the write has left its instant, ``active`` the current timeline.

    Raises:
        ConflictError: The instant is rolled back.
    """
    current = active.timeline.find(instant.requested, instant.action)
    rollback = find_rollback(active, timeline_at_start, instant.requested)
    if rollback is not None or current is None or current.state is not expected:
        raise _rolled_back(instant, current, rollback, active)


def _rolled_back(
    instant: Instant, current: Instant | None, rollback: Instant | None, active: ActiveTimeline
) -> ConflictError:
    """Return the error for a writer whose instant was rolled back; ``current`` is its instant in the timeline now."""
    state = "removed from the timeline" if current is None else current.state.value.lower()
    by = "another writer"
    if rollback is not None:
        # A process that rolls back before a write creates its own instant next.
        later = (i for i in active.timeline.writes() if i.requested > rollback.requested)
        writer = next(later, None)
        by = f"the writer of {writer.action} {writer.requested}" if writer is not None else by
        by += f", by {rollback},"
    return ConflictError(
        f"{instant} of {active.storage.root} is {state}: {by} considered this writer dead and rolled it back "
        "completely, so it can be run again. Without hoodie.write.concurrency.mode a writer considers every "
        "pending write of others dead: with concurrent writers set "
        "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL in all of them"
    )
