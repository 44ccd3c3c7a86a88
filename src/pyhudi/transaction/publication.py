"""Publication of a write: one file on the timeline, and a look afterwards whether another writer rolls it back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyhudi.errors import AlreadyExistsError, CommitStateUnknownError, ConflictError, UnansweredError
from pyhudi.transaction.rollback.rollback_status import find_rollback

if TYPE_CHECKING:
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.instant import Instant
    from pyhudi.timeline.timeline import Timeline

_log = logging.getLogger(__name__)


def publish_instant(
    active: ActiveTimeline, entry: Instant, content: bytes, completion: str | None, begun_on: Timeline
) -> Instant:
    """Complete an inflight instant. The table's lock is held.

    Args:
        active: The active timeline.
        entry: The instant.
        content: The commit metadata, encoded.
        completion: The completion time; None in timeline layout 1.
        begun_on: The timeline that the write was announced on.

    Returns:
        The completed instant.

    Raises:
        ConflictError: somebody else completed the instant.
        CommitStateUnknownError: the storage gave no answer, or another writer began to roll the write back just then.
    """
    try:
        done = active.complete(entry, content, completion)
    except UnansweredError as failure:
        raise _unknown(active, entry, f"the storage gave no answer ({failure})") from failure
    except AlreadyExistsError as failure:
        raise ConflictError(f"{entry} was completed by somebody else; run the write again") from failure
    _check_published(active, entry, begun_on)
    return done


def _check_published(active: ActiveTimeline, entry: Instant, begun_on: Timeline) -> None:
    """Check whether another process, unaware that the write is published, began to roll it back."""
    try:
        rollback = find_rollback(active.reload(), begun_on, entry.requested)
    except Exception as failure:
        _log.warning("looking again for a rollback of %s: %s", entry, failure)
        try:  # the lock tells nothing: somebody may have lost it and not know
            rollback = find_rollback(active.reload(), begun_on, entry.requested)
        except Exception as again:
            raise _unknown(active, entry, f"whether it is rolled back cannot be read ({again})") from again
    if rollback is not None:
        why = f"another writer, which took this one for dead, began to roll it back ({rollback})"
        raise _unknown(active, entry, why)


def _unknown(active: ActiveTimeline, entry: Instant, why: str) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"whether {entry.action} {entry.requested} of {active.storage.root} is committed is not known: {why}. Nothing "
        "of it was taken back. Look at the timeline before you run the write again: if the instant is completed, the "
        "write is done; as long as it is pending, the next writer (of several ones: as soon as its heartbeat has "
        "aged) rolls it back, and then it can be run again"
    )
