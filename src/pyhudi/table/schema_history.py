"""History of a table's schemas in ``.hoodie/.schema``, which exists for tables with schema-on-read evolution.

Files keep the column names with which they were written. Each version of the schema assigns every column a permanent
id, so a column of a query corresponds to the column with the same id in the version that applied when a file was
written. Every write stores a file with the whole history, newest version first, before it completes; only files of
completed writes are valid (`org.apache.hudi.internal.schema.io.FileBasedInternalSchemaStorageManager`).
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.errors import CorruptTableError
from pyhudi.format.file_names import file_name_of
from pyhudi.schema.evolution.internal_schema import InternalSchema
from pyhudi.schema.evolution.schema_projection import FileNames, file_names_of_columns
from pyhudi.storage.table_paths import SCHEMA_FOLDER
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.timeline_layout import LAYOUT_2

LATEST_SCHEMA = "latest_schema"
"""Key of the commit metadata of tables that keep a schema history."""

_BEGIN = '{"schemas":['


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """Versions of a table's schema, oldest first, and the text of the file from which they were read."""

    versions: tuple[InternalSchema, ...]
    text: str

    @classmethod
    def from_schema(cls, first: InternalSchema) -> SchemaHistory:
        """Start a history."""
        return cls((first,), f"{_BEGIN}{first.to_json()}]}}")

    @classmethod
    def load(cls, active: ActiveTimeline) -> SchemaHistory | None:
        """Load the newest history file of a completed write; None if the table has none.

        A write stores its file before it completes, so files of failed writes may exist.

        Raises:
            CorruptTableError: The file cannot be parsed.
        """
        counts = active.timeline.contains_or_before_start
        done = [i for i in _files(active) if i.is_completed and counts(i.requested)]
        if not done:
            return None
        newest = max(done, key=lambda i: i.requested).file_name
        text = active.storage.read(f"{SCHEMA_FOLDER}/{newest}").decode()
        try:
            versions = [InternalSchema.from_json(one) for one in json.loads(text)["schemas"]]
        except (ValueError, KeyError, TypeError) as error:
            file = active.storage.uri(f"{SCHEMA_FOLDER}/{newest}")
            raise CorruptTableError(
                f"cannot parse the schema history {file}: {type(error).__name__}: {error}"
            ) from error
        return cls(tuple(sorted(versions, key=lambda version: version.version_id)), text)

    def with_version(self, schema: InternalSchema) -> SchemaHistory:
        """Return the history with one more version; existing versions keep their text."""
        if not self.text.startswith(_BEGIN):
            texts = [version.to_json() for version in reversed(self.versions)]
            return SchemaHistory((*self.versions, schema), f"{_BEGIN}{','.join((schema.to_json(), *texts))}]}}")
        return SchemaHistory((*self.versions, schema), f"{_BEGIN}{schema.to_json()},{self.text[len(_BEGIN) :]}")

    def as_of(self, instant: str | None) -> InternalSchema:
        """Return the version that applied at a requested time (None: the newest)."""
        if instant is None:
            return self.versions[-1]
        since = [version.version_id for version in self.versions]
        return self.versions[max(bisect_right(since, int(instant)) - 1, 0)]

    def names(self, columns: pa.Schema | None, as_of: str | None, instant: str) -> FileNames:
        """Return the names in files of an instant for the columns of the version at ``as_of``.

        ``columns`` may include columns that no version has yet, as added by a write.
        """
        return file_names_of_columns(self.as_of(instant), self.as_of(as_of), columns)

    def column_names(self, columns: pa.Schema, as_of: str | None = None) -> ColumnNamesByInstant:
        """Return the names of columns by instant, without the text, which tasks do not need."""
        return ColumnNamesByInstant(replace(self, text=""), columns, as_of)

    def unchanged(self) -> frozenset[str]:
        """Return the names of top-level columns whose names, and those of their nested fields, have never changed or
        belonged to another column."""
        paths: dict[str, set[int]] = {}
        ids: dict[int, set[str]] = {}
        for version in self.versions:
            for path, id_ in version.paths().items():
                paths.setdefault(path, set()).add(id_)
                ids.setdefault(id_, set()).add(path)
        changed = {path.split(".")[0] for path, versions_names in paths.items() if len(versions_names) > 1}
        changed |= {
            path.split(".")[0] for versions_names in ids.values() if len(versions_names) > 1 for path in versions_names
        }
        return frozenset(path for path in paths if "." not in path) - changed

    @property
    def keeps_names(self) -> bool:
        """True if no column or nested field was ever renamed, or has the name of an earlier one: files of any instant
        can be read without the history."""
        every = {path.split(".")[0] for version in self.versions for path in version.paths()}
        return every <= self.unchanged()


@dataclass(frozen=True, slots=True)
class ColumnNamesByInstant:
    """Names of the columns of a query or write in the files of an instant. Can be pickled, for use in tasks."""

    history: SchemaHistory
    columns: pa.Schema
    as_of: str | None

    def __call__(self, instant: str) -> FileNames:
        return self.history.names(self.columns, self.as_of, instant)

    def recorded(self) -> dict[str, str]:
        """Return the entry `LATEST_SCHEMA` for commit metadata."""
        return {LATEST_SCHEMA: self.history.as_of(self.as_of).to_json()}

    def for_instants(self, instants: Iterable[str]) -> dict[str, FileNames]:
        """Return the names in files of those instants whose files have other names than the query."""
        names_by_instant = {instant: self(instant) for instant in instants}
        return {instant: names for instant, names in names_by_instant.items() if names}


def persist_history(active: ActiveTimeline, instant: str, completion: str | None, history: SchemaHistory) -> None:
    """Write the history file of a write that is about to complete, and delete files of failed writes.

    The caller holds the lock of the table. ``completion``: the completion time in the file name (None in layout 1).
    """
    storage, layout = active.storage, active.layout
    _delete_residual_files(active, instant)
    for state in (State.REQUESTED, State.INFLIGHT):
        storage.write(f"{SCHEMA_FOLDER}/{layout.file_name(instant, Action.SCHEMA_COMMIT, state)}", b"")
    name = layout.file_name(instant, Action.SCHEMA_COMMIT, State.COMPLETED, completion)
    storage.write(f"{SCHEMA_FOLDER}/{name}", history.text.encode())


def delete_history(active: ActiveTimeline, instant: str) -> None:
    """Delete the history file of a write that is rolled back: once the timeline starts later, it would count as
    completed."""
    for file in _files(active):
        if file.requested == instant:
            active.storage.delete(f"{SCHEMA_FOLDER}/{file.file_name}")


def _delete_residual_files(active: ActiveTimeline, instant: str) -> None:
    """Delete files of failed writes, and those of archived writes that no restore needs."""
    files, timeline = _files(active), active.timeline
    needed = _needed_by_restores(timeline, [file.requested for file in files])
    for file in files:
        dead = not timeline.contains_or_before_start(file.requested)
        old = timeline.is_before_start(file.requested) and file.requested not in needed
        if dead or old or file.requested == instant:
            active.storage.delete(f"{SCHEMA_FOLDER}/{file.file_name}")


def _needed_by_restores(timeline: Timeline, stored: list[str]) -> set[str]:
    """Return the instants of the files, stored at the instants ``stored``, that are the newest ones after a restore.

    Commits with savepoints are older than the start of the timeline if archival has come as far as to them. A restore
    to one of them deletes the files of all later writes.
    """
    valid = sorted(filter(timeline.contains_or_before_start, stored))
    saved = (i.requested for i in timeline if i.is_completed and i.is_write and timeline.is_before_start(i.requested))
    newest = (bisect_right(valid, limit) for limit in (*saved, valid[-1] if valid else ""))
    return {valid[count - 1] for count in newest if count}


def _files(active: ActiveTimeline) -> list[Instant]:
    """Return the history files, named as in either layout, because an upgrade does not rename them."""
    paths = active.storage.list(SCHEMA_FOLDER)["path"].to_pylist()
    names = [file_name_of(str(path)) for path in paths]
    parsed = (active.layout.parse(name) or LAYOUT_2.parse(name) for name in names)
    return [i for i in parsed if i is not None and i.action == Action.SCHEMA_COMMIT]
