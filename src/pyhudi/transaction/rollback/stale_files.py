"""Files of killed writers besides their data: markers, fences and heartbeats."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyhudi.format.file_names import file_name_of
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.fencing.write_fence import fenced_instants, remove_fences
from pyhudi.timeline.heartbeat import HEARTBEAT_FOLDER, HeartbeatPolicy
from pyhudi.timeline.markers import Markers, marked_instants


def delete_stale_files(active: ActiveTimeline, heartbeats: HeartbeatPolicy) -> None:
    """Remove markers, fences and expired heartbeats of killed writers whose instants are not pending."""
    storage = active.storage
    marked, fenced, beats = _instants_with_files(storage)
    if not marked and not fenced and not beats:
        return
    # Listed after these files: a writer that creates markers was in the timeline before.
    pending = set(active.reload().timeline.pending().requested_times)
    if not fenced <= pending:
        remove_fences(storage, fenced - pending)
    for instant in sorted(marked):
        if instant not in pending:
            Markers(storage, instant).delete()
    for path in sorted(beats):
        instant = file_name_of(path)
        if instant not in pending and heartbeats.is_dead(storage, instant):
            storage.delete(path)


def _instants_with_files(storage: Storage) -> list[frozenset[str]]:
    """Return the instants with markers, those with fences, and the paths of heartbeats, all listed at the same time."""
    listings: tuple[Callable[[], Iterable[str]], ...] = (
        lambda: marked_instants(storage),
        lambda: fenced_instants(storage),
        lambda: storage.list(HEARTBEAT_FOLDER)["path"].to_pylist(),
    )
    return concurrent_map(lambda listing: frozenset(listing()), listings)
