"""Triggers of compaction and log compaction, evaluated on the timeline alone."""

from __future__ import annotations

from pyhudi.config import Options, options
from pyhudi.config.enums import CompactionTrigger
from pyhudi.services.trigger_result import TriggerResult
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.delta_commits import delta_commits_since_compaction, delta_commits_since_plan, last_requested
from pyhudi.timeline.instant import Action, Instant, State, current_instant
from pyhudi.timeline.timeline import Timeline


def delta_commits_since_log_compaction(active: ActiveTimeline) -> int:
    """Return the number of delta commits since the last log compaction was planned; 0 while it is pending."""
    deltas = [i for i in active.timeline if i.family == Action.DELTA_COMMIT]
    last = last_requested(i for i in deltas if is_log_compaction(active, i))
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


def trigger_time(table: TableSnapshot) -> str:
    """Return the instant at which triggers are evaluated: now, or the latest time of the timeline if that is later."""
    return max(current_instant(table.config.timezone), table.active.latest_time or "")


def evaluate_compaction_trigger(timeline: Timeline, now: str, opts: Options) -> TriggerResult:
    """Return True if a compaction is to be planned at the instant ``now``, by
    `hoodie.compact.inline.trigger.strategy`."""
    trigger = opts.get_typed(options.COMPACT_TRIGGER)
    after_request = trigger is CompactionTrigger.NUM_COMMITS_AFTER_LAST_REQUEST
    commits = delta_commits_since_plan(timeline) if after_request else delta_commits_since_compaction(timeline)
    if commits is None:
        return TriggerResult(False, "there are no delta commits")
    min_commits = opts.get_typed(options.COMPACT_MAX_DELTA_COMMITS)
    min_seconds = opts.get_typed(options.COMPACT_MAX_DELTA_SECONDS)
    elapsed = commits.seconds_until(now)
    enough_commits, enough_time = commits.count >= min_commits, elapsed >= min_seconds
    by_commits = f"{commits.count} delta commits since {commits.since}, due at {min_commits}"
    by_time = f"{elapsed} seconds since {commits.since}, due at {min_seconds}"
    match trigger:
        case CompactionTrigger.TIME_ELAPSED:
            return TriggerResult(enough_time, by_time)
        case CompactionTrigger.NUM_AND_TIME:
            return TriggerResult(enough_commits and enough_time, f"{by_commits}; {by_time}")
        case CompactionTrigger.NUM_OR_TIME:
            return TriggerResult(enough_commits or enough_time, f"{by_commits}; {by_time}")
    return TriggerResult(enough_commits, by_commits)


def evaluate_log_compaction_trigger(active: ActiveTimeline, opts: Options) -> TriggerResult:
    """Return True if a log compaction is to be planned: `hoodie.log.compaction.blocks.threshold` delta commits since
    the last compaction and since the last log compaction."""
    commits = delta_commits_since_compaction(active.timeline)
    if commits is None:
        return TriggerResult(False, "there are no delta commits")
    min_commits = opts.get_typed(options.LOG_COMPACTION_BLOCKS_THRESHOLD)
    count = min(commits.count, delta_commits_since_log_compaction(active))
    return TriggerResult(
        count >= min_commits, f"{count} delta commits since the last compaction or log compaction, due at {min_commits}"
    )
