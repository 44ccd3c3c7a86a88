"""Active timelines in the other layout: the files that an upgrade or a downgrade makes of those that are there.

Names change, and the content of commits (JSON in layout 1, Avro in layout 2); plans and results of other actions are
the same in both. Layout 2 says in the name when an instant was completed; layout 1 leaves that to the time at which its
file was last changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyhudi.format.avro.container import is_container
from pyhudi.timeline.action_metadata import decode_record
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

if TYPE_CHECKING:
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.timeline_layout import Layout

_PLAIN = (Action.COMMIT, Action.DELTA_COMMIT)


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """An instant file of the other layout.

    Attributes:
        path: relative to the table's root.
        source: the instant file that it is made of.
        changed_ms: epoch milliseconds of its last change, where that says when the instant was completed.
    """

    path: str
    source: Instant
    changed_ms: int | None = None


def converted_files(
    active: ActiveTimeline, target: Layout, timezone: str = "LOCAL", *, copied: bool = False
) -> list[ConvertedFile]:
    """Return the files of a timeline in the layout ``target``, in the order of requested times.

    ``timezone`` is ``hoodie.table.timeline.timezone``; ``copied`` as of `completion_times`.

    Raises:
        CorruptInstantError: the plan of a replacement cannot be read.
    """
    states = sorted(state for instant in active.timeline for state in active.states(instant))
    completions = {} if active.layout.version >= 2 else completion_times(active, timezone, copied=copied)
    found = []
    for state in states:
        completion = state.completion or completions.get(state.file_name)
        if state.is_completed and completion is None:
            completion = earliest_completion(state.requested)
        name = target.file_name(state.requested, _action(active, state, target), state.state, completion)
        changed = None
        if completion is not None and state.is_completed and target.version < 2:
            changed = millis_of_instant(completion, timezone)
        found.append(ConvertedFile(target.path(name), state, changed))
    return found


def converted_content(active: ActiveTimeline, state: Instant, table_version: int) -> bytes:
    """Return the content of an instant file as a table of the given version has it.

    Raises:
        CorruptInstantError: it cannot be parsed.
        InstantNotFoundError: it has gone.
    """
    data = active.read(state)
    if not data or state.family not in WRITE_ACTIONS:
        return data
    if state.state is State.REQUESTED:
        # releases that upgraded the table may have made an empty record of an empty file
        return b"" if state.action in _PLAIN else data
    if not state.is_completed and not _is_commit(data):
        return data
    with active.parsing(state):
        return decode_commit(data).encode(table_version, state.action)


def was_copied(active: ActiveTimeline, timezone: str) -> bool:
    """Return True if all files of a timeline of layout 1 were changed after the last instant was requested: somebody
    has copied the table, and the times of its files say nothing."""
    changed = _changed(active, timezone)
    last = max((i.requested for i in active.timeline), default="")
    return len(changed) > 1 and min(changed.values()) > last


def completion_times(active: ActiveTimeline, timezone: str, *, copied: bool = False) -> dict[str, str]:
    """Return the completion times of a timeline of layout 1, by file name: the times of the last change, as Apache Hudi
    takes them, later than the requested time, and no two the same. ``copied``: they say nothing, and instants count as
    completed when they were requested.
    """
    times = _changed(active, timezone)
    if copied:
        times = dict.fromkeys(times, "")
    found: dict[str, str] = {}
    used: set[str] = set()
    for instant in sorted(active.timeline.completed(), key=lambda i: (times[i.file_name] or i.requested, i.requested)):
        time = max(times[instant.file_name], earliest_completion(instant.requested))
        while time in used:
            time = next_instant(time)
        used.add(time)
        found[instant.file_name] = time
    return found


def _changed(active: ActiveTimeline, timezone: str) -> dict[str, str]:
    """Modification times of the files of completed instants, as instant times by file name."""
    listed = active.storage.list(active.layout.folder)
    changed: dict[str, int] = dict(zip(listed["path"].to_pylist(), listed["mtime_ms"].to_pylist(), strict=True))
    done = active.timeline.completed()
    return {i.file_name: instant_of_millis(changed.get(active.path(i), 0), timezone) for i in done}


def earliest_completion(requested: str) -> str:
    """Return the earliest completion time of an instant: the next one. Instants that are no times, of builds of a
    metadata table, stand for themselves."""
    try:
        return next_instant(requested)
    except ValueError:
        return requested


def _action(active: ActiveTimeline, state: Instant, target: Layout) -> str:
    """The action under which layout 2 knows a pending state: clusterings have one of their own there."""
    if target.version < 2 or state.is_completed or state.action != Action.REPLACE_COMMIT:
        return state.action
    requested = active.in_state(state, State.REQUESTED)
    data = active.read(requested) if requested is not None else b""
    if not data or requested is None:
        return state.action
    with active.parsing(requested):
        plan = decode_record(Action.REPLACE_COMMIT, State.REQUESTED, data)
    return Action.CLUSTERING if plan["clusteringPlan"] is not None else state.action


def _is_commit(data: bytes) -> bool:
    """True if an inflight file is a workload profile, and no plan that was copied."""
    if is_container(data):
        return b"partitionToWriteStats" in data[:4096]
    try:
        return isinstance(found := json.loads(data), Mapping) and "partitionToWriteStats" in found
    except ValueError:
        return False
