"""Plans that are being executed by other programs.

Compactions of Apache Hudi have a heartbeat in release 1.2, regardless of the concurrency mode, and none in 0.15 and
1.0. Without a heartbeat, an inflight compaction that is running cannot be distinguished from a killed one. It is not
touched, unless the user requests it by its instant, or it has been inactive for so long that it must be dead.
"""

from __future__ import annotations

import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.errors import BusyError
from pyhudi.storage import Storage
from pyhudi.storage.clock import now_ms
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.fencing.attempt_claim import AttemptClaim
from pyhudi.timeline.heartbeat import HeartbeatPolicy, heartbeat_path
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.markers import Markers
from pyhudi.transaction.conflicts.plan_conflicts import run_method
from pyhudi.transaction.rollback.rollback_status import read_rollback_plan


def newest_rollback(active: ActiveTimeline) -> str:
    """Return the requested time of the last rollback in the timeline; empty without one."""
    return max((i.requested for i in active.timeline.of_actions(Action.ROLLBACK)), default="")


def check_no_heartbeat(storage: Storage, instant: Instant, opts: Options) -> None:
    """Raise BusyError if the heartbeat shows that an inflight instant is being executed."""
    policy = HeartbeatPolicy.from_options(opts)
    if not policy.is_dead(storage, instant.requested):
        raise BusyError(
            f"{instant} is being executed by another process with a current heartbeat; wait for it, or, if that "
            f"process was killed, try again in {policy.longest_silence_ms / 1000:g} s"
        )


def check_not_running_elsewhere(active: ActiveTimeline, instant: Instant, opts: Options, *, take_over: bool) -> None:
    """Refuse to take over an inflight instant that another program may be executing. The caller holds the lock of the
    table.

    ``take_over``: the user has requested it by its instant.

    Raises:
        BusyError: It was not started by pyhudi, and was active recently.
    """
    if not _is_foreign(active, instant):
        return
    if _has_heartbeat(active, instant):
        check_no_heartbeat(active.storage, instant, opts)
        return
    if take_over:
        return
    silent_ms = now_ms() - _last_activity(active, instant)
    limit = opts.get_typed(options.COMPACTION_ABANDONED_MINUTES)
    if silent_ms <= limit * 60_000:
        raise BusyError(
            f"{instant} was started by another program, which may still be running: it was active "
            f"{silent_ms / 60_000:.0f} minutes ago, and has no heartbeat, like compactions of Apache Hudi before "
            "1.2. Wait for it; or, if it is certainly dead, take over its plan with "
            f"services.{run_method(instant)}({instant.requested!r}). Otherwise it is considered dead after "
            f"{limit} minutes without activity ({options.COMPACTION_ABANDONED_MINUTES.key})"
        )


def _is_foreign(active: ActiveTimeline, instant: Instant) -> bool:
    """Return True if the current attempt was not started by pyhudi: it has no claim, or it was rolled back and started
    again since. A rollback that is not completed is one of the claimed attempt."""
    claimed_after = AttemptClaim(active.storage, instant.requested).last_rollback()
    if claimed_after is None:
        return True
    rollbacks = active.timeline.completed().of_actions(Action.ROLLBACK)
    later = (i for i in rollbacks if i.requested > claimed_after)
    plans = (read_rollback_plan(active, rollback) for rollback in later)
    return any(plan is not None and plan.instant == instant.requested for plan in plans)


def _has_heartbeat(active: ActiveTimeline, instant: Instant) -> bool:
    """Return True if the other program has or had a heartbeat. The heartbeat of an attempt of pyhudi that was killed
    before it started remains, too, and is not that of a program that started later without one."""
    stat = active.storage.stat(heartbeat_path(instant.requested))
    if stat is None or not AttemptClaim(active.storage, instant.requested).exists():
        return stat is not None
    return stat.mtime_ms > _begun_at(active, instant)


def _begun_at(active: ActiveTimeline, instant: Instant) -> int:
    """Return the start of the attempt in epoch milliseconds."""
    inflight = active.in_state(instant, State.INFLIGHT)
    stat = None if inflight is None else active.storage.stat(active.path(inflight))
    return 0 if stat is None else stat.mtime_ms


def _last_activity(active: ActiveTimeline, instant: Instant) -> int:
    """Return the start of the attempt, or the creation of its last marker, in epoch milliseconds."""
    markers = active.storage.list(Markers(active.storage, instant.requested).folder, recursive=True)["mtime_ms"]
    return max(pc.max(markers).as_py() or 0, _begun_at(active, instant))
