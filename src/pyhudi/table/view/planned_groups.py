"""File groups in the pending plans of table services: compactions, log compactions and clusterings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.table.view.file_group_state import GROUP_INSTANT_SCHEMA
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.timeline import Timeline

if TYPE_CHECKING:
    from pyhudi.timeline.active_timeline import ActiveTimeline


def pending_compaction_groups(active: ActiveTimeline, timeline: Timeline | None = None) -> pa.Table:
    """Return the file groups of pending compaction plans (GROUP_INSTANT_SCHEMA), of the given or the active timeline.

    Raises:
        CorruptInstantError: A plan cannot be parsed.
        InstantNotFoundError: An instant has no requested file.
    """
    return _compacted(active, active.timeline if timeline is None else timeline, Action.COMPACTION)


def pending_log_compaction_groups(active: ActiveTimeline) -> pa.Table:
    """Return the file groups of pending log compaction plans (GROUP_INSTANT_SCHEMA).

    Raises:
        CorruptInstantError: A plan cannot be parsed.
        InstantNotFoundError: An instant has no requested file.
    """
    return _compacted(active, active.timeline, Action.LOG_COMPACTION)


def pending_clustering_groups(active: ActiveTimeline) -> pa.Table:
    """Return the file groups of pending clustering plans (GROUP_INSTANT_SCHEMA).

    Raises:
        CorruptInstantError: A plan cannot be parsed.
    """
    rows: list[tuple[str, str, str]] = []
    for instant in active.timeline.pending().of_actions(Action.CLUSTERING, Action.REPLACE_COMMIT):
        plan = _clustering_plan(active, instant) or {}
        slices = (s for group in plan.get("inputGroups") or () for s in group["slices"] or ())
        rows += [(s["partitionPath"], s["fileId"], instant.requested) for s in slices]
    return _table(rows)


def planned_groups(active: ActiveTimeline, *actions: str) -> pa.Table:
    """Return the file groups of pending clusterings, and of the pending compactions of these actions
    (GROUP_INSTANT_SCHEMA): another plan may not contain them.

    Raises:
        CorruptInstantError: A plan cannot be parsed.
        InstantNotFoundError: A compaction has no requested file.
    """
    compacted = (_compacted(active, active.timeline, action) for action in actions)
    return pa.concat_tables([*compacted, pending_clustering_groups(active)])


def is_clustering(active: ActiveTimeline, instant: Instant) -> bool:
    """Return True if a pending replacecommit is a clustering, which in layout 1 only the plan shows."""
    if instant.action == Action.CLUSTERING:
        return True
    return instant.action == Action.REPLACE_COMMIT and _clustering_plan(active, instant) is not None


def _compacted(active: ActiveTimeline, timeline: Timeline, action: str) -> pa.Table:
    rows: list[tuple[str, str, str]] = []
    for instant in timeline.pending().of_actions(action):
        data = active.read_state(instant, State.REQUESTED)
        with active.parsing(active.in_state(instant, State.REQUESTED) or instant):
            plan = decode_record(action, State.REQUESTED, data)
        rows += [(op["partitionPath"] or "", op["fileId"], instant.requested) for op in plan["operations"] or ()]
    return _table(rows)


def _clustering_plan(active: ActiveTimeline, instant: Instant) -> dict[str, Any] | None:
    """Return the plan of a pending clustering or replacecommit, None if it has none."""
    requested = active.in_state(instant, State.REQUESTED)
    data = b"" if requested is None else active.read(requested)
    if requested is None or not data:
        return None  # In old releases the requested file of insert_overwrite is empty.
    with active.parsing(requested):
        plan: dict[str, Any] | None = decode_record(instant.action, State.REQUESTED, data)["clusteringPlan"]
    return plan


def _table(rows: list[tuple[str, str, str]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.Table.from_arrays([pa.array(column, pa.string()) for column in columns], schema=GROUP_INSTANT_SCHEMA)
