"""Changes of file groups since a table service was planned, which prevent or end the execution of its plan."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.storage.concurrent_reads import read_each
from pyhudi.table.view.pending_file_groups import pending_compaction_groups
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.operation_types import COMPACTIONS
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.conflicts.changed_groups import common_group, touched_groups


def find_later_compaction(groups: pa.Table, requested: str, active: ActiveTimeline) -> Conflicted | None:
    """Return the first compaction, planned or completed later than ``requested``, of one of the file groups
    (GROUP_SCHEMA)."""
    pending = pending_compaction_groups(active)
    for other in active.timeline:
        if other.requested <= requested or other.family != Action.COMMIT:
            continue
        if other.is_completed:
            other_groups = touched_groups(active.commit_metadata(other))
        else:
            other_groups = pending.filter(pc.equal(pending["instant"], other.requested))
        common = common_group(groups, other_groups)
        if common is not None:
            return Conflicted(requested, other, f"{other.action} {other.requested} compacts {common}")
    return None


def find_concurrent_change(
    groups: pa.Table, requested: str, timeline_at_start: Timeline, active: ActiveTimeline
) -> Conflicted | None:
    """Return the first write completed since ``timeline_at_start`` was loaded that has changed the records of one of
    the file groups (GROUP_SCHEMA). Compactions change only files."""
    done = active.timeline.completed().writes()
    later = [i for i in done if not timeline_at_start.is_completed(i.requested)]
    return _first_change(groups, requested, later, active)


def find_change_since(groups: pa.Table, requested: str, active: ActiveTimeline) -> Conflicted | None:
    """Return the first write completed since the instant ``requested`` that has changed the records of one of the file
    groups (GROUP_SCHEMA)."""
    done = active.timeline.completed().writes()
    return _first_change(groups, requested, [i for i in done if i.order_time > requested], active)


def _first_change(
    groups: pa.Table, requested: str, others: Sequence[Instant], active: ActiveTimeline
) -> Conflicted | None:
    others = [other for other in others if other.requested != requested]
    for other, metadata in read_each(active.commit_metadata, others):
        if metadata.operation in COMPACTIONS:
            continue
        common = common_group(groups, touched_groups(metadata))
        if common is not None:
            return Conflicted(requested, other, f"{other.action} {other.requested} concurrently changed {common}")
    return None


def run_method(instant: Instant) -> str:
    """Return the name of the method of ``services`` that executes a pending plan."""
    names = {Action.COMPACTION: "run_compaction", Action.LOG_COMPACTION: "run_log_compaction"}
    return names.get(instant.action, "run_clustering")
