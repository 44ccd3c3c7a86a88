"""Conversion of active timelines between layouts, for upgrades and downgrades.

Names change, and so does the content of commits (JSON in layout 1, Avro in layout 2). Plans and results of other
actions are the same in both. In layout 2 the completion time is part of the name; in layout 1 it is the modification
time of the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.format.avro.container import is_container
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.instant import (
    WRITE_ACTIONS,
    Action,
    Instant,
    State,
    instant_of_millis,
    millis_of_instant,
    next_instant,
)
from pyhudi.timeline.plans.clustering_plan import contains_clustering
from pyhudi.timeline.timeline_layout import Layout

_PLAIN = (Action.COMMIT, Action.DELTA_COMMIT)


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """An instant file of the target layout.

    Attributes:
        path: Path relative to the root of the table.
        source: Instant file from which it is created.
        changed_ms: Modification time in epoch milliseconds, if it denotes the completion time.
    """

    path: str
    source: Instant
    changed_ms: int | None


def converted_files(active: ActiveTimeline, target: Layout, timezone: str, *, copied: bool) -> list[ConvertedFile]:
    """Return the files of a timeline in the layout ``target``, in the order of requested times.

    ``timezone`` is ``hoodie.table.timeline.timezone``; ``copied`` as in `completion_times`.

    Raises:
        CorruptInstantError: The plan of a replacement cannot be parsed.
    """
    states = sorted(state for instant in active.timeline for state in active.states(instant))
    completions = {} if active.layout.version >= 2 else completion_times(active, timezone, copied=copied)
    files = []
    for state in states:
        completion = state.completion or completions.get(state.file_name)
        if state.is_completed and completion is None:
            completion = earliest_completion(state.requested)
        name = target.file_name(state.requested, _action(active, state, target), state.state, completion)
        changed = None
        if completion is not None and state.is_completed and target.version < 2:
            changed = millis_of_instant(completion, timezone)
        files.append(ConvertedFile(target.path(name), state, changed))
    return files


def converted_content(active: ActiveTimeline, state: Instant, table_version: int) -> bytes:
    """Return the content of an instant file in the form of the given table version.

    Raises:
        CorruptInstantError: The file cannot be parsed.
        InstantNotFoundError: The file no longer exists.
    """
    data = active.read(state)
    if not data or state.family not in WRITE_ACTIONS:
        return data
    if state.state is State.REQUESTED:
        # Releases that upgraded the table may have converted an empty file to an empty record.
        return b"" if state.action in _PLAIN else data
    if not state.is_completed and not _is_commit(data):
        return data
    with active.parsing(state):
        return decode_commit(data).encode(table_version, state.action)


def was_copied(active: ActiveTimeline, timezone: str) -> bool:
    """Return True if all files of a timeline of layout 1 were modified after the last instant was requested: the table
    was copied, and modification times are meaningless."""
    changed = _changed(active, timezone)
    last = max((i.requested for i in active.timeline), default="")
    return len(changed) > 1 and min(changed.values()) > last


def completion_times(active: ActiveTimeline, timezone: str, *, copied: bool) -> dict[str, str]:
    """Return the completion times of a timeline of layout 1, by file name.

    They are the modification times, as in Apache Hudi, but later than the requested times and unique. ``copied``:
    modification times are meaningless, and the requested times are used.
    """
    times = _changed(active, timezone)
    if copied:
        times = dict.fromkeys(times, "")
    completions: dict[str, str] = {}
    used: set[str] = set()
    for instant in sorted(active.timeline.completed(), key=lambda i: (times[i.file_name] or i.requested, i.requested)):
        time = max(times[instant.file_name], earliest_completion(instant.requested))
        while time in used:
            time = next_instant(time)
        used.add(time)
        completions[instant.file_name] = time
    return completions


def _changed(active: ActiveTimeline, timezone: str) -> dict[str, str]:
    """Return modification times of the files of completed instants, as instant times by file name."""
    listed = active.storage.list(active.layout.folder)
    changed: dict[str, int] = dict(zip(listed["path"].to_pylist(), listed["mtime_ms"].to_pylist(), strict=True))
    done = active.timeline.completed()
    return {i.file_name: instant_of_millis(changed.get(active.path(i), 0), timezone) for i in done}


def earliest_completion(requested: str) -> str:
    """Return the earliest possible completion time of an instant: the next instant time. Instants that are not times,
    from builds of a metadata table, are returned unchanged."""
    try:
        return next_instant(requested)
    except ValueError:
        return requested


def _action(active: ActiveTimeline, state: Instant, target: Layout) -> str:
    """Return the action of a pending state in layout 2, which has a separate action for clusterings."""
    if target.version < 2 or state.is_completed or state.action != Action.REPLACE_COMMIT:
        return state.action
    requested = active.in_state(state, State.REQUESTED)
    if requested is None:
        return state.action
    with active.parsing(requested):
        return Action.CLUSTERING if contains_clustering(active.read(requested)) else state.action


def _is_commit(data: bytes) -> bool:
    """Return True if an inflight file is a workload profile, and not a copied plan."""
    if is_container(data):
        return b"partitionToWriteStats" in data[:4096]
    try:
        return isinstance(parsed := json.loads(data), Mapping) and "partitionToWriteStats" in parsed
    except ValueError:
        return False
