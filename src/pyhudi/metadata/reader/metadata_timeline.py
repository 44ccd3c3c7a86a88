"""Opening of a metadata table for reading, with checks that it is valid; see docs/format/metadata.md, 1.7 and 6.3.

Readers rely on the content of the metadata table, so all reasons against its use are detected here: a missing folder,
the folder of another table, and writes of the table that it lacks.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from pyhudi.config import property_keys
from pyhudi.errors import FormatError, MetadataTableAheadError, MetadataTableError, NotFoundError
from pyhudi.metadata.metadata_layout import PROPERTIES
from pyhudi.metadata.reader.file_completeness_check import written_by
from pyhudi.metadata.reader.initial_instants import FIRST_INSTANTS, V1_LENGTH, is_initial_instant
from pyhudi.metadata.reader.restored_writes import undone_since_built
from pyhudi.storage import Storage
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.config.properties_text import parse_properties
from pyhudi.table.moved_instants import refuse_moved_instants
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.timeline_layout import Layout

_FILES = "files/"


@dataclass(frozen=True, slots=True)
class MetadataTimeline:
    """Timeline of a metadata table. ``effective``: its instants as readers see them, which are pending as long as they
    are pending in the data table. ``data_timeline``: the timeline of the data table."""

    active: ActiveTimeline
    effective: Timeline
    data_timeline: Timeline


def open_timeline(table: TableSnapshot) -> MetadataTimeline:
    """Open the timeline of the metadata table of a table.

    Raises:
        MetadataTableAheadError: The snapshot is older than the metadata table; reload it.
        MetadataTableError: The metadata table cannot be used. The message has the reason.
        TransactionError: Apache Hudi has changed the version of the table halfway.
    """
    storage, config, data = table.storage, table.config, table.active.timeline
    properties = _properties(storage)
    if properties.get(property_keys.VERSION) != str(config.version):
        refuse_moved_instants(table.active)  # Apache Hudi changes the version of the metadata table first.
        raise _property_error(storage, properties, property_keys.VERSION, str(config.version))
    active = ActiveTimeline.load(storage, _layout(properties))
    if not active.timeline.completed():
        raise MetadataTableError(f"{storage.uri(METADATA_FOLDER)} has no completed instant in its timeline")
    name = f"{config.name}_metadata"
    if properties.get(property_keys.NAME) != name and not _has_last_write(active, data):
        raise _property_error(storage, properties, property_keys.NAME, name)
    missing = unknown_writes(active, table.active)
    if missing:
        shown = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise MetadataTableError(
            f"{storage.uri(METADATA_FOLDER)} lacks {len(missing)} completed writes of the table: {shown}"
        )
    if undone := undone_since_built(active, table.active):
        raise MetadataTableError(
            f"{storage.uri(METADATA_FOLDER)} has indexes that were built from files of {undone}, which a restore has "
            "undone since"
        )
    pending = set(data.pending().requested_times) | _begun_since(active.timeline, table.active)
    _refuse_compacted(active.timeline, pending)
    return MetadataTimeline(active, Timeline(_with_pending_state(i, pending) for i in active.timeline), data)


def unknown_writes(active: ActiveTimeline, data: ActiveTimeline) -> list[str]:
    """Return completed writes of the table (``data``: its timeline) without a completed instant in its metadata table
    (``active``: its timeline), although required.

    Raises:
        MetadataTableError: The files written by initial instants cannot be determined.
        CorruptInstantError: A rollback cannot be parsed.
    """
    done = [i for i in active.timeline.completed() if i.action in (Action.DELTA_COMMIT, Action.COMMIT)]
    completed = {i.requested for i in done}
    missing = [i for i in data.timeline.completed() if i.requested not in completed and _may_be_recorded(i)]
    if missing:
        missing = _later_than_build(active, done, missing)
    return [i.requested for i in missing if i.is_write or _is_recorded_rollback(data, i, completed)]


def _may_be_recorded(instant: Instant) -> bool:
    """Return True for writes and, without completion times, as before version 8, rollbacks."""
    return instant.is_write or (instant.action == Action.ROLLBACK and instant.completion is None)


def _later_than_build(active: ActiveTimeline, done: list[Instant], instants: list[Instant]) -> list[Instant]:
    """Return instants of the table that its metadata table did not get when it was built.

    Args:
        active: Timeline of the metadata table.
        done: Its completed commits and delta commits.
        instants: Instants of the table.

    Raises:
        MetadataTableError: The files written by initial instants cannot be determined.
    """
    builds = _builds_of_files(active, [i for i in done if is_initial_instant(i)])
    if not builds:
        # The timeline has been archived up to its first instant.
        first = min((i.requested for i in active.timeline if not is_initial_instant(i)), default="")
        return [i for i in instants if i.requested >= first]
    until = max(i.completion or "" for i in builds)
    named = [i.requested[:V1_LENGTH] for i in builds if not i.requested.startswith(FIRST_INSTANTS)]
    built_at = max(named, default="")
    return [i for i in instants if i.requested > built_at and (i.completion is None or i.completion > until)]


def _is_recorded_rollback(data: ActiveTimeline, instant: Instant, completed: Container[str]) -> bool:
    """Return True for a rollback of a version before 8 that must be in the metadata table: one that leaves log files,
    or delta commits of writes that are gone; 1.2.0 does not record others."""
    record = data.completed_record(instant)
    partitions = record["partitionMetadata"].values()
    has_logs = any(part["rollbackLogFiles"] or part.get("logFilesFromFailedCommit") for part in partitions)
    return has_logs or any(
        undone in completed and data.timeline.find(undone) is None for undone in record["commitsRollback"]
    )


def _builds_of_files(active: ActiveTimeline, builds: list[Instant]) -> list[Instant]:
    """Return those of the instants that built the list of files. Other partitions may have been built later, while the
    list lacked some writes."""
    return [
        build
        for build in builds
        if any(path.startswith(_FILES) for path in written_by(active, build)["path"].to_pylist())
    ]


def _begun_since(metadata_timeline: Timeline, table: ActiveTimeline) -> set[str]:
    """Return writes that began after the timeline of the table was read, but are in the metadata table.

    Its own delta commits (after a restore) look the same, but never occur in the timeline of the table.
    """
    last = max((i.requested for i in table.timeline), default="")
    newer = [i for i in metadata_timeline.completed() if i.requested[:V1_LENGTH] > last and not is_initial_instant(i)]
    if not any(i.action == Action.DELTA_COMMIT for i in newer):
        return set()
    now = set(table.reload().timeline.requested_times)
    return {i.requested for i in newer if i.requested in now}


def _refuse_compacted(metadata_timeline: Timeline, pending: set[str]) -> None:
    """Check whether a compaction has merged an instant that is pending in the timeline of the table, so that it cannot
    be excluded. Compactions merge instants that are completed in both timelines, so it was completed after that
    timeline was read.

    Raises:
        MetadataTableAheadError: A compaction has merged such an instant.
    """
    done = metadata_timeline.completed()
    last = done.of_actions(Action.COMMIT).last
    if last is None:
        return
    waiting = (i for i in done if i.action == Action.DELTA_COMMIT and i.requested in pending)
    compacted = next((i for i in waiting if (i.completion or i.requested) < last.requested), None)
    if compacted is not None:
        raise MetadataTableAheadError(
            f"the table was written concurrently: its metadata table was compacted ({last.requested}) with the "
            f"write {compacted.requested}, which was pending when the timeline was read; read again"
        )


def _with_pending_state(instant: Instant, pending: set[str]) -> Instant:
    if instant.is_completed and instant.requested in pending:
        return replace(instant, state=State.INFLIGHT, completion=None)
    return instant


def _properties(storage: Storage) -> dict[str, str]:
    try:
        return parse_properties(storage.read(PROPERTIES))
    except NotFoundError as error:
        raise MetadataTableError(f"{storage.uri(PROPERTIES)} does not exist") from error
    except FormatError as error:
        raise MetadataTableError(f"cannot parse {storage.uri(PROPERTIES)}: {error}") from error


def _property_error(storage: Storage, properties: Mapping[str, str], key: str, expected: str) -> MetadataTableError:
    return MetadataTableError(
        f"{storage.uri(PROPERTIES)} has {key}={properties.get(key)}, but this table requires {key}={expected}"
    )


def _has_last_write(active: ActiveTimeline, data_timeline: Timeline) -> bool:
    """Return True if a metadata table (``active``: its timeline) was told the last completed write of a table, so that
    it is that table's, also under another name: ALTER TABLE … RENAME of Apache Hudi does not rename it, and that of
    pyhudi may have been interrupted."""
    last = data_timeline.completed().writes().last
    return last is not None and active.timeline.is_completed(last.requested)


def _layout(properties: Mapping[str, str]) -> Layout:
    """Return the layout with paths relative to the table."""
    layout = Layout.from_properties(properties)
    return Layout(layout.version, f"{METADATA_FOLDER}/{layout.folder}", f"{METADATA_FOLDER}/{layout.history}")
