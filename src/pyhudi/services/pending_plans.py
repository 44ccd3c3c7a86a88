"""Pending plans of table services in the timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Instant, State

Plan = TypeVar("Plan")


def read_plans(
    active: ActiveTimeline, instants: Iterable[Instant], decode: Callable[[str, str, State, bytes], Plan]
) -> list[Plan]:
    """Return the plans of pending instants, in their order.

    Args:
        active: The active timeline.
        instants: The instants, requested or inflight.
        decode: Decodes a plan from action, requested time, state, and content of the requested file.

    Raises:
        CorruptInstantError: A plan cannot be parsed.
        InstantNotFoundError: An instant has no requested file.
    """
    plans = []
    for instant in instants:
        data = active.read_state(instant, State.REQUESTED)
        with active.parsing(active.in_state(instant, State.REQUESTED) or instant):
            plans.append(decode(instant.action, instant.requested, instant.state, data))
    return plans
