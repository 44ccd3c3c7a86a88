"""Plans that programs other than this library are carrying out.

Compactions of Apache Hudi have a heartbeat in release 1.2, whatever the concurrency mode of others, and none in 0.15
and 1.0. Without one an inflight compaction looks the same whether its program is at work or dead. It is left alone,
unless somebody who knows asks for it by its instant, or it has done nothing for so long that it must be dead.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pyhudi.config import options
from pyhudi.errors import BusyError
from pyhudi.timeline import heartbeat
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.markers import Markers
from pyhudi.timeline.write_gate import Claim
from pyhudi.transaction.rollback.rollback_status import read_rollback_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyhudi.config import Options
    from pyhudi.storage import Storage
    from pyhudi.timeline.active_timeline import ActiveTimeline


def newest_rollback(active: ActiveTimeline) -> str:
    """The requested time of the last rollback on the timeline; empty without one."""
    return max((i.requested for i in active.timeline.of_actions(Action.ROLLBACK)), default="")


def refuse_while_alive(storage: Storage, entry: Instant, options: Mapping[str, str]) -> None:
    """Raise BusyError if somebody is carrying out the plan of an inflight instant, by the heartbeat."""
    policy = heartbeat.HeartbeatPolicy.of(options)
    if not policy.is_dead(storage, entry.requested):
        raise BusyError(
            f"{entry} is being carried out by another process, whose heartbeat is alive; wait for it, or, if that "
            f"process has died, try again in {policy.longest_silence_ms / 1000:g} s"
        )


def refuse_foreign(active: ActiveTimeline, entry: Instant, opts: Options, *, asked_for: bool) -> None:
    """Leave an inflight instant alone that another program may be carrying out. The table's lock is held.
    ``asked_for``: somebody who knows that nobody is at work has named it.

    Raises:
        BusyError: it is not of this library, and has shown a sign of life not long ago.
    """
    if not _is_foreign(active, entry):
        return
    if _has_heartbeat(active, entry):
        refuse_while_alive(active.storage, entry, opts)
        return
    if asked_for:
        return
    silent_ms = time.time_ns() // 1_000_000 - _last_sign_of_life(active, entry)
    limit = opts.get_typed(options.COMPACTION_ABANDONED_MINUTES)
    if silent_ms <= limit * 60_000:
        raise BusyError(
            f"{entry} was begun by another program, which may be at work: it did something {silent_ms / 60_000:.0f} "
            "minutes ago, and has no heartbeat, as compactions of Apache Hudi before 1.2. Wait for it; or, if it is "
            f"surely gone, take its plan over by services.{_taken_over_by(entry)}({entry.requested!r}). Without that "
            f"it counts as dead after {limit} minutes of silence ({options.COMPACTION_ABANDONED_MINUTES.key})"
        )


def _taken_over_by(entry: Instant) -> str:
    names = {Action.COMPACTION: "run_compaction", Action.LOG_COMPACTION: "run_log_compaction"}
    return names.get(entry.action, "run_clustering")


def _is_foreign(active: ActiveTimeline, entry: Instant) -> bool:
    """True if the attempt under way is not of this library: nobody here has claimed and begun it, or it was rolled back
    and begun anew since."""
    seen = Claim(active.storage, entry.requested).last_rollback()
    if seen is None:
        return True
    later = (i for i in active.timeline.of_actions(Action.ROLLBACK) if i.requested > seen)
    plans = (read_rollback_plan(active, rollback) for rollback in later)
    return any(plan is not None and plan.instant == entry.requested for plan in plans)


def _has_heartbeat(active: ActiveTimeline, entry: Instant) -> bool:
    """True if the other program gives a heartbeat, or has given one. That of an attempt of this library which died
    before it began stays, too, and says nothing of a program that began later and gives none."""
    found = active.storage.stat(heartbeat.heartbeat_path(entry.requested))
    if found is None or not Claim(active.storage, entry.requested).is_there():
        return found is not None
    return found.mtime_ms > _begun_at(active, entry)


def _begun_at(active: ActiveTimeline, entry: Instant) -> int:
    """Time at which the attempt was begun: epoch milliseconds."""
    inflight = active.in_state(entry, State.INFLIGHT)
    found = None if inflight is None else active.storage.stat(active.path(inflight))
    return 0 if found is None else found.mtime_ms


def _last_sign_of_life(active: ActiveTimeline, entry: Instant) -> int:
    """Time at which the attempt was begun, or its last marker made: epoch milliseconds."""
    markers = active.storage.list(Markers(active.storage, entry.requested).folder, recursive=True)["mtime_ms"]
    return max(pc.max(markers).as_py() or 0, _begun_at(active, entry))
