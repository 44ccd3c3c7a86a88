"""Triggers of compaction and log compaction, evaluated on the timeline alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyhudi.config import Options, options
from pyhudi.config.enums import CompactionTrigger
from pyhudi.services.trigger_result import TriggerResult
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant, State, parse_instant
from pyhudi.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class DeltaCommits:
    """Number of delta commits since an instant, and that instant."""

    count: int
    since: str

    def seconds_until(self, now: str) -> int:
        """Return the seconds from ``since`` to ``now``, both truncated to seconds."""
        begin, end = (parse_instant(text).replace(microsecond=0) for text in (self.since, now))
        return int((end - begin).total_seconds())


def since_compaction(timeline: Timeline) -> DeltaCommits | None:
    """Return the completed delta commits since the last completed compaction, or since the first delta commit; None for
    a table without delta commits that was never compacted.

    From table version 8 on these are the ones completed after the compaction was planned, before it those requested
    later.
    """
    deltas = [i for i in timeline if i.action == Action.DELTA_COMMIT]
    last = _last(i for i in timeline if i.action == Action.COMMIT and i.is_completed)
    if last is not None:
        later = [i for i in deltas if i.is_completed and i.order_time > last.requested]
        return DeltaCommits(len(later), last.requested)
    if not deltas:
        return None
    return DeltaCommits(sum(i.is_completed for i in deltas), deltas[0].requested)


def since_request(timeline: Timeline) -> DeltaCommits | None:
    """Return the delta commits, including pending ones, since the last compaction was planned, whether it was executed
    or not."""
    deltas = [i for i in timeline if i.action == Action.DELTA_COMMIT]
    compactions = (i for i in timeline if i.action == Action.COMPACTION or (i.action == Action.COMMIT))
    last = _last(i for i in compactions if i.is_completed or i.action == Action.COMPACTION)
    if last is not None:
        return DeltaCommits(sum(i.requested > last.requested for i in deltas), last.requested)
    return DeltaCommits(len(deltas), deltas[0].requested) if deltas else None


def since_log_compaction(active: ActiveTimeline) -> int:
    """Return the number of delta commits since the last log compaction was planned; 0 while it is pending."""
    deltas = [i for i in active.timeline if i.family == Action.DELTA_COMMIT]
    last = _last(i for i in deltas if is_log_compaction(active, i))
    if last is None:
        return len(deltas)
    if not last.is_completed:
        return 0
    return sum(i.action == Action.DELTA_COMMIT and i.is_completed and i.order_time > last.requested for i in deltas)


def is_log_compaction(active: ActiveTimeline, instant: Instant) -> bool:
    """Return True if a delta commit is a log compaction, which has a plan."""
    if instant.action == Action.LOG_COMPACTION:
        return True
    planned = active.in_state(instant, State.REQUESTED)
    return planned is not None and planned.action == Action.LOG_COMPACTION


def evaluate_compaction_trigger(timeline: Timeline, now: str, opts: Options) -> TriggerResult:
    """Return whether a compaction is to be planned at the instant ``now``, by
    `hoodie.compact.inline.trigger.strategy`."""
    trigger = opts.get_typed(options.COMPACT_TRIGGER)
    after_request = trigger is CompactionTrigger.NUM_COMMITS_AFTER_LAST_REQUEST
    commits = since_request(timeline) if after_request else since_compaction(timeline)
    if commits is None:
        return TriggerResult(False, "there are no delta commits")
    least = opts.get_typed(options.COMPACT_MAX_DELTA_COMMITS)
    patience = opts.get_typed(options.COMPACT_MAX_DELTA_SECONDS)
    elapsed = commits.seconds_until(now)
    enough, late = commits.count >= least, elapsed >= patience
    by_number = f"{commits.count} of {least} delta commits since {commits.since}"
    by_time = f"{elapsed} of {patience} seconds since {commits.since}"
    match trigger:
        case CompactionTrigger.TIME_ELAPSED:
            return TriggerResult(late, by_time)
        case CompactionTrigger.NUM_AND_TIME:
            return TriggerResult(enough and late, f"{by_number}; {by_time}")
        case CompactionTrigger.NUM_OR_TIME:
            return TriggerResult(enough or late, f"{by_number}; {by_time}")
    return TriggerResult(enough, by_number)


def evaluate_log_compaction_trigger(active: ActiveTimeline, opts: Options) -> TriggerResult:
    """Return whether a log compaction is to be planned: `hoodie.log.compaction.blocks.threshold` delta commits since
    the last compaction and since the last log compaction."""
    commits = since_compaction(active.timeline)
    if commits is None:
        return TriggerResult(False, "there are no delta commits")
    least = opts.get_typed(options.LOG_COMPACTION_BLOCKS_THRESHOLD)
    count = min(commits.count, since_log_compaction(active))
    return TriggerResult(
        count >= least, f"{count} of {least} delta commits since the last compaction or log compaction"
    )


def _last(instants: Iterable[Instant]) -> Instant | None:
    return max(instants, key=lambda i: i.requested, default=None)
