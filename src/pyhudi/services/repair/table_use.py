"""Whether somebody is at work on a table that is to be repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.timeline.instant import State
from pyhudi.transaction.foreign_plans import refuse_while_alive

if TYPE_CHECKING:
    from pyhudi.config import Options
    from pyhudi.timeline.active_timeline import ActiveTimeline


def refuse_in_use(active: ActiveTimeline, opts: Options) -> None:
    """Refuse to repair a table while a write or a service shows by its heartbeat that it is alive.

    Raises:
        BusyError: names the instant.
    """
    for instant in active.timeline.pending():
        if instant.state is State.INFLIGHT:
            refuse_while_alive(active.storage, instant, opts)
