"""Archival of chosen instants."""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.storage import host_lock
from pyhudi.storage.lock_primitives import DeferredReleaseLock
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archiver import ArchiveOptions, archive
from pyhudi.timeline.instant import Instant


def archive_instants(active: ActiveTimeline, instants: Sequence[Instant], timezone: str = "LOCAL") -> None:
    """Archive completed instants, whatever archival would retain."""
    with DeferredReleaseLock(host_lock(active.storage)) as lock:
        archive(active, instants, ArchiveOptions(timezone), lock)
