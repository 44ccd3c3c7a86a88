"""Partitions of the metadata table that are being built, and must not be read yet."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pyhudi.errors import CorruptInstantError, MetadataTableError
from pyhudi.timeline.index_plan import pending_index_plans
from pyhudi.timeline.instant import State

if TYPE_CHECKING:
    from pyhudi.timeline.active_timeline import ActiveTimeline


def inflight_partitions(data: ActiveTimeline) -> Collection[str]:
    """Partitions that somebody is building, or has begun to build and died: not to be read, even if they are declared.
    (Apache Hudi declares a partition before it completes the indexing instant, without which nobody counts its base
    files.)

    Raises:
        MetadataTableError: a plan cannot be read.
    """
    try:
        plans = [plan for plan in pending_index_plans(data) if plan.state is State.INFLIGHT]
    except CorruptInstantError as unknown:
        raise MetadataTableError(f"which indexes are being built cannot be told: {unknown}") from unknown
    return frozenset(name for plan in plans for name in plan.partitions)
