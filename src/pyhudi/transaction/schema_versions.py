"""Schema version recorded by a commit, in tables with a schema history.

Every write records in its commit metadata (``latest_schema``) the version of its files, and stores the whole history in
``.hoodie/.schema``, like Apache Hudi's `BaseHoodieWriteClient.saveInternalSchema`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from pyhudi.schema.converters.arrow_avro import from_avro
from pyhudi.schema.evolution.internal_schema import InternalSchema
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.table.schema_history import LATEST_SCHEMA, SchemaHistory
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Instant
from pyhudi.transaction.commit_outcome import Conflicted


@dataclass(frozen=True, slots=True)
class RecordedSchema:
    """Metadata of a commit, and the history to store with it (None: nothing)."""

    metadata: CommitMetadata
    history: SchemaHistory | None = None


def add_schema_version(
    metadata: CommitMetadata,
    instant: str,
    planned_on: str | None,
    *,
    active: ActiveTimeline,
    newest: tuple[Instant, CommitMetadata] | None,
    schema_history: SchemaHistory | None,
) -> RecordedSchema | Conflicted:
    """Return the metadata with the schema version, if the table has or starts a history.

    ``planned_on`` are the columns (Avro JSON) with which the write was planned (None: there were none). ``active`` is
    the timeline just loaded under the lock of the table, and ``newest`` the newest write that recorded columns.
    ``schema_history``: the history with the version that this commit adds. Table services record themselves which
    version applied at their instant.
    """
    recorded = None if newest is None else newest[1].extra.get(LATEST_SCHEMA)
    if not (recorded or schema_history):
        return RecordedSchema(metadata)
    if newest is not None and planned_on != newest[1].schema_json:
        return Conflicted(
            instant, newest[0], f"{newest[0].action} {newest[0].requested} has changed the columns of the table"
        )
    if schema_history is not None:
        later = _later_write(active, instant)
        if later is not None:
            return Conflicted(
                instant, later, f"{later.action} {later.requested} was started after it, with other columns"
            )
        return RecordedSchema(_with_version(metadata, schema_history.versions[-1]), schema_history)
    history = SchemaHistory.load(active)
    if history is None:
        assert recorded is not None
        history = SchemaHistory.from_schema(InternalSchema.from_json(json.loads(recorded)))
    before = history.as_of(instant)
    schema = add_meta_columns(from_avro(metadata.schema_json))
    version = before.evolved(schema, int(instant))
    if version is not before:
        history = history.with_version(version)
    return RecordedSchema(_with_version(metadata, version), history)


def _with_version(metadata: CommitMetadata, version: InternalSchema) -> CommitMetadata:
    return replace(metadata, extra={**metadata.extra, LATEST_SCHEMA: version.to_json()})


def _later_write(active: ActiveTimeline, instant: str) -> Instant | None:
    """Return a write that was started after an instant: its files have the previous columns."""
    return next((one for one in active.timeline.writes() if one.requested > instant), None)
