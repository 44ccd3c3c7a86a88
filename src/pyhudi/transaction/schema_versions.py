"""Version of the table's schema that a commit records, in tables that keep a history of their schemas.

Every write says in its commit metadata (``latest_schema``) which version its files are of, and leaves the whole history
in ``.hoodie/.schema``, as Apache Hudi's `BaseHoodieWriteClient.saveInternalSchema` does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyhudi.schema.arrow_avro import from_avro
from pyhudi.schema.internal_schema import InternalSchema
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.table.schema_history import LATEST_SCHEMA, SchemaHistory
from pyhudi.transaction.commit_outcome import Conflicted

if TYPE_CHECKING:
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.commit_metadata import CommitMetadata
    from pyhudi.timeline.instant import Instant

ALTER_SCHEMA = "ALTER_SCHEMA"
"""The operation of a commit that changes columns and writes no rows."""


@dataclass(frozen=True, slots=True)
class RecordedSchema:
    """The metadata of a commit, and the history that it leaves (None: nothing is to be written)."""

    metadata: CommitMetadata
    history: SchemaHistory | None = None


def record_schema(
    metadata: CommitMetadata,
    instant: str,
    planned_on: str | None,
    active: ActiveTimeline,
    found: tuple[Instant, CommitMetadata] | None,
    altered: SchemaHistory | None = None,
) -> RecordedSchema | Conflicted:
    """Return the metadata with the version of the schema, where the table keeps a history or begins one.

    ``planned_on`` are the columns (Avro JSON) that the write was planned on (None: the table had none). ``active`` is
    the timeline just loaded under the table's lock, and ``found`` the newest write that recorded columns. ``altered``:
    the history with the version that this commit is to bring. Table services say themselves which version was in force
    at their instant.
    """
    kept = None if found is None else found[1].extra.get(LATEST_SCHEMA)
    if not (kept or altered):
        return RecordedSchema(metadata)
    if found is not None and planned_on != found[1].schema_json:
        return Conflicted(instant, found[0], f"{found[0].action} {found[0].requested} has changed the table's columns")
    if altered is not None:
        later = _later_write(active, instant)
        if later is not None:
            return Conflicted(instant, later, f"{later.action} {later.requested} was begun after it, on other columns")
        return RecordedSchema(_with_version(metadata, altered.versions[-1]), altered)
    history = SchemaHistory.load(active)
    if history is None:
        assert kept is not None
        history = SchemaHistory.of(InternalSchema.from_json(json.loads(kept)))
    before = history.as_of(instant)
    schema = add_meta_columns(from_avro(metadata.schema_json))
    version = before.evolved(schema, int(instant))
    if version is not before:
        history = history.with_version(version)
    return RecordedSchema(_with_version(metadata, version), history)


def _with_version(metadata: CommitMetadata, version: InternalSchema) -> CommitMetadata:
    return replace(metadata, extra={**metadata.extra, LATEST_SCHEMA: version.to_json()})


def _later_write(active: ActiveTimeline, instant: str) -> Instant | None:
    """A write that was begun after an instant: its files have the columns that there were before."""
    return next((one for one in active.timeline.writes() if one.requested > instant), None)
