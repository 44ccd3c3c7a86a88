"""Request of a writer to commit, and conflicts other than changes of the same file groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.table.schema_history import LATEST_SCHEMA, SchemaHistory
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Instant
from pyhudi.timeline.latest_schema import newest_columns
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.conflicts import schema_conflicts
from pyhudi.transaction.conflicts.conflict_detection import find_concurrent_write
from pyhudi.transaction.conflicts.key_conflicts import find_key_conflict
from pyhudi.transaction.conflicts.serializable_reads import ReadSet
from pyhudi.transaction.schema_versions import RecordedSchema, add_schema_version


@dataclass(frozen=True, slots=True)
class CommitConditions:
    """State of the table on which a write depends, besides the file groups that it changes.

    Attributes:
        planned_on: Columns of the table (Avro JSON) with which the write was planned; None: it is the first write, or
            does not depend on columns.
        agree_on_columns: They may have changed since (`pyhudi.transaction.conflicts.schema_conflicts`).
        reads: Data that the write has read; a change of it is a conflict.
        already_committed: Returns another writer's commit that contains what this one would commit again, which is a
            conflict.
    """

    planned_on: str | None = None
    agree_on_columns: bool = False
    reads: ReadSet | None = None
    already_committed: Callable[[ActiveTimeline], Instant | None] | None = None


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """A commit as requested from `Transaction.commit`, which documents the fields."""

    metadata: CommitMetadata
    exchange_table: Callable[[Instant], None] | None
    index: IndexDelta | None
    conditions: CommitConditions
    schema_history: SchemaHistory | None

    def find_conflict(self, instant: str, timeline_at_start: Timeline, active: ActiveTimeline) -> Conflicted | None:
        """Find another writer's commit that contains this one, adds the same keys, or changes file groups that this one
        has read; any commit, if the table is exchanged. ``active`` was loaded under the lock of the table."""
        committed = self.conditions.already_committed
        other = committed(active) if committed is not None else None
        if other is not None:
            reason = f"{other} of another writer already contains its rows"
            return Conflicted(instant, other, reason, is_retryable=False)
        conflict = find_key_conflict(self.index, instant, timeline_at_start, active)
        if conflict is None and self.conditions.reads is not None:
            conflict = self.conditions.reads.find_conflict(instant, active)
        if conflict is None and self.exchange_table is not None:
            conflict = find_concurrent_write(instant, timeline_at_start, active)
        return conflict

    def agreed_metadata(self, instant: str, active: ActiveTimeline) -> RecordedSchema | Conflicted:
        """Return the metadata of the commit with the current columns of the table, and the schema history after the
        commit; or the conflict between the columns."""
        kept = (
            self.conditions.planned_on is not None or self.schema_history is not None
        )  # Otherwise a first write, or a service.
        if self.metadata.schema_json is None or not (kept or self.conditions.agree_on_columns):
            return RecordedSchema(self.metadata)
        latest = newest_columns(active)
        if kept:
            recorded = add_schema_version(
                self.metadata,
                instant,
                self.conditions.planned_on,
                active=active,
                newest=latest,
                schema_history=self.schema_history,
            )
            if isinstance(recorded, Conflicted) or LATEST_SCHEMA in recorded.metadata.extra:
                return recorded
        if not self.conditions.agree_on_columns:
            return RecordedSchema(self.metadata)
        agreed = schema_conflicts.resolve_schema_conflict(self.metadata, instant, self.conditions.planned_on, latest)
        return agreed if isinstance(agreed, Conflicted) else RecordedSchema(agreed)
