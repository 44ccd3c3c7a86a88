"""Serializable changes: the data read by a statement must be unchanged when its rows are committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.storage.concurrent_reads import read_each
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.commit_metadata import CommitMetadata, decode_commit
from pyhudi.timeline.instant import WRITE_ACTIONS, Action, Instant, State, just_before
from pyhudi.timeline.operation_types import COMPACTIONS
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.conflicts.changed_groups import GROUP_SCHEMA, common_group, touched_groups

_Write: TypeAlias = tuple[Instant, Callable[[], CommitMetadata]]
"""A completed write, and a function that reads its metadata."""
_Undo: TypeAlias = tuple[Instant, Callable[[], dict[str, Any]]]
"""A completed rollback or restore, and a function that reads its record."""


@dataclass(frozen=True, slots=True)
class ReadSet:
    """File groups read by an UPDATE, DELETE or MERGE.

    Attributes:
        seen: Requested times of the instants that were completed in the snapshot.
        groups: The file groups that were read (partition, file_id).
        replan: Returns the file groups that the same condition would read on another timeline. Called under the lock of
            the table, and only if another writer changed file groups that were not read.
        first: Requested time of the first write on the active timeline of the snapshot, which may have been pending.
            Everything before it had been archived.
    """

    seen: frozenset[str]
    groups: pa.Table
    replan: Callable[[ActiveTimeline], pa.Table]
    first: str | None = None

    @classmethod
    def of_snapshot(cls, timeline: Timeline, groups: pa.Table, replan: Callable[[ActiveTimeline], pa.Table]) -> ReadSet:
        """Return the read set of file groups that were read from a snapshot with this timeline."""
        pending = timeline.pending().writes().first
        starts = [timeline.start, None if pending is None else pending.requested]
        first = min((start for start in starts if start is not None), default=None)
        return cls(frozenset(instant.requested for instant in timeline.completed()), groups, replan, first)

    def union(self, other: ReadSet) -> ReadSet:
        """Return what two parts of one statement have read, on the same snapshot."""
        groups = pa.concat_tables([self.groups, other.groups])
        return replace(self, groups=groups, replan=lambda now: pa.concat_tables([self.replan(now), other.replan(now)]))

    def find_conflict(self, requested: str, active: ActiveTimeline) -> Conflicted | None:
        """Return the first write completed since the snapshot that changed data that were read, or would have been
        read, or the first rollback of a write of the snapshot; None if there is none."""
        archived = self._archived(active)
        undone = self._find_undone(requested, active, archived)
        if undone is not None:
            return undone
        now: pa.Table | None = None
        writes: list[_Write] = list(self._active_writes(requested, active))
        writes += [(i, partial(decode_commit, data)) for i, data in archived if i.is_write]
        for (other, _), other_metadata in read_each(lambda write: write[1](), writes):
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

    def _find_undone(
        self, requested: str, active: ActiveTimeline, archived: Sequence[tuple[Instant, bytes]]
    ) -> Conflicted | None:
        """Return the first restore since the snapshot, or rollback of one of its writes."""
        timeline = active.timeline.completed().of_actions(Action.RESTORE, Action.ROLLBACK)
        undoing: list[_Undo] = [(i, partial(active.completed_record, i)) for i in timeline]
        decode = partial(decode_record, Action.ROLLBACK, State.COMPLETED)
        undoing += [(i, partial(decode, data)) for i, data in archived if not i.is_write]
        for other, record in undoing:
            if other.requested in self.seen:
                continue
            if other.action == Action.RESTORE:
                return Conflicted(requested, other, f"restore {other.requested} removed rows that were read")
            undone = self.seen.intersection(record()["commitsRollback"])
            if undone:
                reason = f"rollback {other.requested} removed the rows of {min(undone)}, which were read"
                return Conflicted(requested, other, reason)
        return None

    def _active_writes(self, requested: str, active: ActiveTimeline) -> Iterator[_Write]:
        for instant in active.timeline.completed().writes():
            if instant.requested not in self.seen and instant.requested != requested:
                yield instant, partial(active.commit_metadata, instant)

    def _archived(self, active: ActiveTimeline) -> list[tuple[Instant, bytes]]:
        """Return the writes and rollbacks that were completed and archived since the snapshot, with their contents: a
        statement may read for so long that archival passes it before its own instant is pending. Restores are archived
        as rollbacks."""
        if self.first is None or active.timeline.start == self.first:
            return []
        since, actions = just_before(self.first), {*WRITE_ACTIONS, Action.ROLLBACK}
        archived = read_archived_timeline(active.storage, active.layout, after=since, actions=actions)
        names = ("requested", "action", "completion", "metadata")
        return [
            (Instant(requested, action, State.COMPLETED, completion, ""), data)
            for requested, action, completion, data in zip(*(archived[n].to_pylist() for n in names), strict=True)
            if requested not in self.seen and data is not None
        ]


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

    return ReadSet.of_snapshot(table.active.timeline, groups(table.active), groups)
