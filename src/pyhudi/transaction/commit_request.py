"""What a writer asks for when it commits, and what may stand against that beside changes of the same file groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyhudi.table.schema_history import LATEST_SCHEMA, SchemaHistory
from pyhudi.timeline.latest_schema import newest_columns
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.conflicts import schema_conflicts
from pyhudi.transaction.conflicts.conflict_resolution import find_rival
from pyhudi.transaction.conflicts.key_conflicts import find_key_conflict
from pyhudi.transaction.schema_versions import RecordedSchema, record_schema

if TYPE_CHECKING:
    from pyhudi.metadata.indexes.index_delta import IndexDelta
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.commit_metadata import CommitMetadata
    from pyhudi.timeline.instant import Instant
    from pyhudi.timeline.timeline import Timeline
    from pyhudi.transaction.conflicts.serializable_reads import ReadSet


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """A commit as `Transaction.commit` is asked for it, which describes the fields."""

    metadata: CommitMetadata
    exclusively: Callable[[Instant], None] | None = None
    index: IndexDelta | None = None
    planned_on: str | None = None
    agree_on_columns: bool = False
    reads: ReadSet | None = None
    altered: SchemaHistory | None = None

    def find_conflict(self, instant: str, begun: Timeline, active: ActiveTimeline) -> Conflicted | None:
        """Find another writer's commit of keys that this one adds, of what it has read, or, if it is to be alone, any.
        ``begun`` is the timeline of when the write began, ``active`` was loaded under the table's lock."""
        found = find_key_conflict(self.index, instant, begun, active)
        if found is None and self.reads is not None:
            found = self.reads.find_conflict(instant, active)
        if found is None and self.exclusively is not None:
            found = find_rival(instant, begun, active)
        return found

    def agreed_metadata(self, instant: str, active: ActiveTimeline) -> RecordedSchema | Conflicted:
        """The commit's metadata, with the columns that the table has by now, and the history of schemas that the commit
        leaves; or why they do not agree."""
        kept = self.planned_on is not None or self.altered is not None  # else a first write, or a service
        if self.metadata.schema_json is None or not (kept or self.agree_on_columns):
            return RecordedSchema(self.metadata)
        found = newest_columns(active)
        if kept:
            recorded = record_schema(self.metadata, instant, self.planned_on, active, found, self.altered)
            if isinstance(recorded, Conflicted) or LATEST_SCHEMA in recorded.metadata.extra:
                return recorded
        if not self.agree_on_columns:
            return RecordedSchema(self.metadata)
        agreed = schema_conflicts.agree_on_columns(self.metadata, instant, self.planned_on, found)
        return agreed if isinstance(agreed, Conflicted) else RecordedSchema(agreed)
