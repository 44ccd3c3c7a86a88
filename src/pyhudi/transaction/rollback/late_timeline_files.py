"""Completed files in the timeline of writes that are rolled back: those that are there, and those that delayed requests
create."""

from __future__ import annotations

import logging

from pyhudi.storage.lock_primitives import DeferredReleaseLock
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.instant import WRITE_ACTIONS, Action, Instant, State, just_before
from pyhudi.transaction.rollback.rollback_status import read_rollback_plan

REMOVED_WITH_PLAN = WRITE_ACTIONS | {Action.LOG_COMPACTION}
"""Actions that are removed completely by a rollback. For others the plan remains, to be retried. So it does for
clusterings of version 6, which are replacecommits."""
_log = logging.getLogger(__name__)


def delete_completed_files(active: ActiveTimeline, target: Instant | None) -> None:
    """Delete the completed files of an instant that is rolled back."""
    if target is not None and target.is_completed:
        for instant in active.states(target):
            if instant.is_completed:
                active.delete(instant)


def delete_late_completed_files(active: ActiveTimeline, lock: DeferredReleaseLock) -> None:
    """Delete completed files that appeared after their writes had been rolled back, by delayed requests.

    Such a file has no inflight file, because the rollback has deleted it, or it is older than a rollback of the
    attempt that created it. Rollbacks are read only if there is such a file. Interrupted archival leaves files without
    others, too, which may belong to a later attempt; those of archived instants are kept.

    Raises:
        LockError: The lock of the table was lost, so that a later attempt may have created a valid file of the same
            name.
    """
    late = [(files, files[0].requested) for files in active.inconsistent_instants()]
    late_writes = {requested for files, requested in late if files[0].is_write}
    if not late_writes:
        return
    for rollback in active.timeline.completed().of_actions(Action.ROLLBACK):
        plan = read_rollback_plan(active, rollback)
        if plan is None or plan.instant not in late_writes:
            continue
        for files in (files for files, requested in late if requested == plan.instant):
            for instant in _invalidated_files(files, rollback, forgets=plan.action in REMOVED_WITH_PLAN):
                if _is_archived(active, instant):
                    continue
                lock.ensure_held()
                _log.warning("deleting %s, which appeared after its rollback %s", instant, rollback.requested)
                active.delete(instant)


def _invalidated_files(files: list[Instant], rollback: Instant, *, forgets: bool) -> list[Instant]:
    """Return the completed files of an instant that a rollback makes invalid. ``forgets``: all of them; otherwise a
    later attempt may have created a valid one."""
    states = {instant.state for instant in files}
    undone = State.INFLIGHT not in states and (State.REQUESTED in states or forgets)
    return [
        instant
        for instant in files
        if instant.is_completed
        and (undone or (instant.completion is not None and instant.completion < rollback.requested))
    ]


def _is_archived(active: ActiveTimeline, instant: Instant) -> bool:
    """Return True if the attempt that has created a completed file is archived, and not only another one at its
    instant."""
    archived = read_archived_timeline(
        active.storage,
        active.layout,
        after=just_before(instant.requested),
        up_to=instant.requested,
        actions=(instant.action,),
        metadata=False,
    )
    return instant.completion in archived["completion"].to_pylist()
