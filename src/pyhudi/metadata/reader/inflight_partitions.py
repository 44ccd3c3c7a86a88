"""Partitions of the metadata table that are being built, which must not be read yet."""

from __future__ import annotations

from collections.abc import Collection

from pyhudi.errors import CorruptInstantError, MetadataTableError
from pyhudi.metadata.indexes.pending_index_plans import pending_index_plans
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import State


def inflight_partitions(active: ActiveTimeline) -> Collection[str]:
    """Return the partitions that are being built, also by a killed process. They must not be read, even if they are
    declared, because Apache Hudi declares a partition before it completes the indexing instant, without which its base
    files are not committed.

    Raises:
        MetadataTableError: A plan cannot be read.
    """
    try:
        plans = [plan for plan in pending_index_plans(active) if plan.state is State.INFLIGHT]
    except CorruptInstantError as unknown:
        raise MetadataTableError(f"cannot determine which indexes are being built: {unknown}") from unknown
    return frozenset(name for plan in plans for name in plan.partitions)
