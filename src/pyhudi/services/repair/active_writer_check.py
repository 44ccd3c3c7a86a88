"""Check that no write or service is running on a table that is to be repaired."""

from __future__ import annotations

from pyhudi.config import Options
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import State
from pyhudi.transaction.plan_ownership import check_no_heartbeat


def check_not_in_use(active: ActiveTimeline, opts: Options) -> None:
    """Refuse to repair a table while the heartbeat of a write or a service is current.

    Raises:
        BusyError: The message has the instant.
    """
    for instant in active.timeline.pending():
        if instant.state is State.INFLIGHT:
            check_no_heartbeat(active.storage, instant, opts)
