"""Serializable changes: the data read by a statement must be unchanged when its rows are committed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action
from pyhudi.timeline.operation_types import COMPACTIONS
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.conflicts.conflict_detection import GROUP_SCHEMA, common_group, touched_groups


@dataclass(frozen=True, slots=True)
class ReadSet:
    """File groups read by an UPDATE, DELETE or MERGE.

    Attributes:
        seen: Requested times of the instants that were completed in the snapshot.
        groups: The file groups that were read (partition, file_id).
        replan: Returns the file groups that the same condition would read on another timeline. Called under the lock of
            the table, and only if another writer changed file groups that were not read.
    """

    seen: frozenset[str]
    groups: pa.Table
    replan: Callable[[ActiveTimeline], pa.Table]

    def union(self, other: ReadSet) -> ReadSet:
        """Return what two parts of one statement have read, on the same snapshot."""
        groups = pa.concat_tables([self.groups, other.groups])
        return ReadSet(self.seen, groups, lambda active: pa.concat_tables([self.replan(active), other.replan(active)]))

    def find_conflict(self, requested: str, active: ActiveTimeline) -> Conflicted | None:
        """Return the first write completed since the snapshot that changed data that were read, or would have been
        read, or the first rollback of a write of the snapshot; None if there is none."""
        now: pa.Table | None = None
        for other in active.timeline.completed():
            if other.requested in self.seen or other.requested == requested:
                continue
            if other.action == Action.RESTORE:
                return Conflicted(requested, other, f"restore {other.requested} removed rows that were read")
            if other.action == Action.ROLLBACK:
                undone = self.seen.intersection(active.completed_record(other)["commitsRollback"])
                if undone:
                    reason = f"rollback {other.requested} removed the rows of {min(undone)}, which were read"
                    return Conflicted(requested, other, reason)
            if not other.is_write:
                continue
            other_metadata = active.commit_metadata(other)
            if other_metadata.operation in COMPACTIONS:
                continue
            touched = touched_groups(other_metadata)
            common = common_group(self.groups, touched)
            if common is None and touched.num_rows:
                now = self.replan(active) if now is None else now
                common = common_group(now, touched)
            if common is not None:
                return Conflicted(
                    requested, other, f"{other.action} {other.requested} concurrently changed {common}, which was read"
                )
        return None


def partition_reads(table: TableSnapshot, is_read: Callable[[str], bool]) -> ReadSet:
    """Return the read set of a statement that reads all rows of some partitions.

    Args:
        table: The snapshot that is read.
        is_read: Returns True for the path of a partition that is read.
    """

    def groups(active: ActiveTimeline) -> pa.Table:
        now = FileSystemView.load(TableSnapshot(table.storage, table.config, active)).latest_slices()
        paths = [path for path in pc.unique(now["partition"]).to_pylist() if is_read(path)]
        read = now.filter(pc.is_in(now["partition"], pa.array(paths, pa.string())))
        return read.select(GROUP_SCHEMA.names).cast(GROUP_SCHEMA)

    return ReadSet(completed_instants(table.active.timeline), groups(table.active), groups)


def completed_instants(timeline: Timeline) -> frozenset[str]:
    """Return the requested times of all completed instants."""
    return frozenset(instant.requested for instant in timeline.completed())
