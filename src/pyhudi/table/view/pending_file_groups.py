"""File groups in the pending plans of table services: compactions, log compactions and clusterings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial

import pyarrow as pa

from pyhudi.storage.byte_bounded_cache import ByteBoundedCache
from pyhudi.table.view.file_group_state import GROUP_INSTANT_SCHEMA
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.plans.clustering_plan import ClusteringPlan, contains_clustering
from pyhudi.timeline.plans.compaction_plan import CompactionPlan
from pyhudi.timeline.timeline import Timeline

_CACHE = ByteBoundedCache(16 * 1024 * 1024)
"""File groups of plans by action, instant and digest of the content: a write asks several times for those of all
pending plans, and parsing takes 30 microseconds for each file slice."""
_ENTRY_BYTES = 1024
"""Bytes of an entry without its rows."""


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
    groups = []
    for instant in active.timeline.pending().of_actions(Action.CLUSTERING, Action.REPLACE_COMMIT):
        requested = active.in_state(instant, State.REQUESTED)
        data = b"" if requested is None else active.read(requested)
        if requested is None or not data:
            continue  # In old releases the requested file of insert_overwrite is empty.
        with active.parsing(requested):
            groups.append(_cached_groups(instant, data, partial(_clustered_groups, instant, data)))
    return pa.concat_tables([GROUP_INSTANT_SCHEMA.empty_table(), *groups]).combine_chunks()


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
    requested = active.in_state(instant, State.REQUESTED)
    if instant.action != Action.REPLACE_COMMIT or requested is None:
        return False
    with active.parsing(requested):
        return contains_clustering(active.read(requested))


def _compacted(active: ActiveTimeline, timeline: Timeline, action: str) -> pa.Table:
    groups = []
    for instant in timeline.pending().of_actions(action):
        data = active.read_state(instant, State.REQUESTED)
        with active.parsing(active.in_state(instant, State.REQUESTED) or instant):
            groups.append(_cached_groups(instant, data, partial(_compacted_groups, instant, data)))
    return pa.concat_tables([GROUP_INSTANT_SCHEMA.empty_table(), *groups]).combine_chunks()


def _cached_groups(instant: Instant, data: bytes, parse: Callable[[], pa.Table]) -> pa.Table:
    """Return the file groups of a plan, which is parsed unless it was before."""

    def make() -> tuple[pa.Table, int]:
        groups = parse()
        return groups, groups.nbytes + _ENTRY_BYTES

    return _CACHE.get((instant.action, instant.requested, hashlib.blake2b(data, digest_size=16).digest()), make)


def _clustered_groups(instant: Instant, data: bytes) -> pa.Table:
    """Return the file groups of a clustering plan; none for another replacecommit."""
    plan = ClusteringPlan.find(instant.action, instant.requested, State.REQUESTED, data)
    return GROUP_INSTANT_SCHEMA.empty_table() if plan is None else _with_instant(plan.file_groups, instant)


def _compacted_groups(instant: Instant, data: bytes) -> pa.Table:
    plan = CompactionPlan.decode(instant.action, instant.requested, State.REQUESTED, data)
    return _with_instant(plan.operations.select(["partition", "file_id"]), instant)


def _with_instant(groups: pa.Table, instant: Instant) -> pa.Table:
    instants = pa.repeat(pa.scalar(instant.requested, pa.string()), groups.num_rows)
    return groups.append_column("instant", instants).cast(GROUP_INSTANT_SCHEMA)
