"""Publication of a write: one file in the timeline, followed by a check for a concurrent rollback."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pyhudi.errors import AlreadyExistsError, CommitStateUnknownError, ConflictError, UnansweredError
from pyhudi.metadata.maintenance.metadata_compaction_job import MetadataCompactionJob
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Instant
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.rollback.rollback_status import find_rollback

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Publication:
    """A write that is published.

    Attributes:
        instant: The completed instant.
        metadata_job: Compaction of the metadata table that is to follow; None: none is due.
        warnings: Failures of the work under the lock that followed.
    """

    instant: Instant
    metadata_job: MetadataCompactionJob | None = None
    warnings: tuple[str, ...] = ()


def complete_instant(
    active: ActiveTimeline, instant: Instant, content: bytes, completion: str | None, timeline_at_start: Timeline
) -> Instant:
    """Complete an inflight instant. The caller holds the lock of the table.

    Args:
        active: The active timeline.
        instant: The instant.
        content: The encoded commit metadata.
        completion: The completion time; None in timeline layout 1.
        timeline_at_start: The timeline when the requested file was created.

    Returns:
        The completed instant.

    Raises:
        ConflictError: Another process completed the instant.
        CommitStateUnknownError: The storage did not respond, or another writer started to roll back the write
            concurrently.
    """
    try:
        done = active.complete(instant, content, completion)
    except UnansweredError as failure:
        raise _unknown(active, instant, f"the storage did not respond ({failure})") from failure
    except AlreadyExistsError as failure:
        raise ConflictError(f"{instant} was completed by another process; run the write again") from failure
    _check_published(active, instant, timeline_at_start)
    return done


def _check_published(active: ActiveTimeline, instant: Instant, timeline_at_start: Timeline) -> None:
    """Check that no other process, unaware of the publication, has started to roll back the write."""
    try:
        # Listed again: one that was requested since the listing under the lock has seen a pending write.
        rollback = find_rollback(active.reload(), timeline_at_start, instant.requested)
    except Exception as failure:
        _log.warning("checking again for a rollback of %s: %s", instant, failure)
        try:  # The lock is no proof: a process may have lost it without knowing.
            rollback = find_rollback(active.reload(), timeline_at_start, instant.requested)
        except Exception as again:
            raise _unknown(active, instant, f"the check for a rollback failed ({again})") from again
    if rollback is not None:
        why = f"another writer, which considered this one dead, started to roll it back ({rollback})"
        raise _unknown(active, instant, why)


def _unknown(active: ActiveTimeline, instant: Instant, why: str) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"it is unknown whether {instant.action} {instant.requested} of {active.storage.root} is committed: {why}. "
        "Nothing was rolled back. Check the timeline before you run the write again: if the instant is "
        "completed, the write is committed; if it is pending, the next writer rolls it back (with concurrent "
        "writers: as soon as its heartbeat has expired), and then it can be run again"
    )
