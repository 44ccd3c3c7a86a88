"""Plans of indexes on the active timeline."""

from __future__ import annotations

from pyhudi.errors import FormatError
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.plans.index_plan import IndexPlan


def pending_index_plans(active: ActiveTimeline) -> list[IndexPlan]:
    """Return the plans that are not completed, oldest first.

    Raises:
        CorruptInstantError: A plan cannot be parsed.
    """
    return [read_index_plan(active, i) for i in active.timeline.pending().of_actions(Action.INDEXING)]


def read_index_plan(active: ActiveTimeline, instant: Instant) -> IndexPlan:
    """Return the plan of an indexing instant.

    Raises:
        CorruptInstantError: The plan cannot be parsed.
    """
    requested = active.in_state(instant, State.REQUESTED)
    with active.parsing(requested or instant):
        if requested is None:
            raise FormatError("the requested file with the plan does not exist")
        return IndexPlan.decode(instant, active.read(requested))
