"""Opening a metadata table for reading, and the reasons not to trust it; see docs/format/metadata.md, 1.7 and 6.3.

What the metadata table says is taken for the truth by whoever reads it, so anything that makes it doubtful is found
here, before: a folder that is not there or is another table's, and writes of the table that it does not know of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyhudi.errors import FormatError, MetadataTableAheadError, MetadataTableError, NotFoundError
from pyhudi.metadata.disable_metadata import METADATA_FOLDER
from pyhudi.metadata.reader.completeness import written_by
from pyhudi.metadata.reader.initial_instants import FIRST_INSTANTS, V1_LENGTH, is_initial_instant
from pyhudi.table.config.properties_text import parse_properties
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.timeline_layout import Layout

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig

_FILES = "files/"
_OWN = f"{METADATA_FOLDER}/.hoodie"


@dataclass(frozen=True, slots=True)
class MetadataTimeline:
    """The timeline of a metadata table. ``counted``: its instants as readers see them, which are pending as long as
    they are pending on the table. ``table``: the table's own timeline."""

    active: ActiveTimeline
    counted: Timeline
    table: Timeline


def open_timeline(storage: Storage, config: TableConfig, table: ActiveTimeline) -> MetadataTimeline:
    """Open the timeline of the metadata table of a table; ``table`` is the table's own.

    Raises:
        MetadataTableAheadError: ``table`` is older than what it shows; look again.
        MetadataTableError: it must not be used, with the reason.
    """
    data = table.timeline
    layout = _layout(_properties(storage, config))
    active = ActiveTimeline.load(storage, layout)
    if not active.timeline.completed():
        raise MetadataTableError(f"{storage.uri(METADATA_FOLDER)} has no completed instant on its timeline")
    missing = unknown_writes(storage, active, data)
    if missing:
        shown = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise MetadataTableError(
            f"{storage.uri(METADATA_FOLDER)} does not know of {len(missing)} completed writes of the table: {shown}"
        )
    pending = {i.requested for i in data.pending()} | _begun_since(active.timeline, table)
    _refuse_folded(active.timeline, pending)
    return MetadataTimeline(active, Timeline(_as_seen(i, pending) for i in active.timeline), data)


def unknown_writes(storage: Storage, active: ActiveTimeline, data: Timeline) -> list[str]:
    """Completed writes of the table that its metadata table (``active``: its timeline) has no completed instant for,
    though it should.

    Raises:
        MetadataTableError: what the instants that built it have written cannot be told.
    """
    done = [i for i in active.timeline.completed() if i.action in (Action.DELTA_COMMIT, Action.COMMIT)]
    known = {i.requested for i in done}
    missing = []
    for instant in data.completed():
        # without completion times, rollbacks write log files, which it has to know
        rollback = instant.action == Action.ROLLBACK and instant.completion is None
        if (instant.action in WRITE_ACTIONS or rollback) and instant.requested not in known:
            missing.append(instant)
    if not missing:
        return []
    builds = _builds_of_files(storage, active, [i for i in done if is_initial_instant(i)])
    if not builds:
        # the timeline has been archived up to its first instant
        first = min((i.requested for i in active.timeline if not is_initial_instant(i)), default="")
        return [i.requested for i in missing if i.requested >= first]
    until = max(i.completion or "" for i in builds)
    named = [i.requested[:V1_LENGTH] for i in builds if not i.requested.startswith(FIRST_INSTANTS)]
    built_at = max(named, default="")
    return [i.requested for i in missing if i.requested > built_at and (i.completion is None or i.completion > until)]


def _builds_of_files(storage: Storage, active: ActiveTimeline, builds: list[Instant]) -> list[Instant]:
    """Those of the instants that built the list of files. Other partitions may have been built later, while the list
    did not know of all writes."""
    return [
        build
        for build in builds
        if any(path.startswith(_FILES) for path in written_by(storage, active, build)["path"].to_pylist())
    ]


def _begun_since(metadata: Timeline, table: ActiveTimeline) -> set[str]:
    """Writes that began after the table's timeline was read, and are in the metadata table already.

    Its own delta commits (after a restore) look the same, except that the table's timeline never has them.

    """
    last = max((i.requested for i in table.timeline), default="")
    newer = [i for i in metadata.completed() if i.requested[:V1_LENGTH] > last and not is_initial_instant(i)]
    if not any(i.action == Action.DELTA_COMMIT for i in newer):
        return set()
    now = {i.requested for i in table.reload().timeline}
    return {i.requested for i in newer if i.requested in now}


def _refuse_folded(metadata: Timeline, pending: set[str]) -> None:
    """Check whether a compaction has taken in what is pending on the table's timeline, so that it cannot be seen
    without it. Compactions take in what is completed on both, so it has been completed since that timeline was read.

    Raises:
        MetadataTableAheadError: one has.
    """
    done = metadata.completed()
    last = done.of_actions(Action.COMMIT).last
    if last is None:
        return
    waiting = (i for i in done if i.action == Action.DELTA_COMMIT and i.requested in pending)
    folded = next((i for i in waiting if (i.completion or i.requested) < last.requested), None)
    if folded is not None:
        raise MetadataTableAheadError(
            f"the table was written while it was being looked at: its metadata table was compacted ({last.requested}) "
            f"with the write {folded.requested}, which was pending a moment ago; look again"
        )


def _as_seen(instant: Instant, pending: set[str]) -> Instant:
    if instant.is_completed and instant.requested in pending:
        return replace(instant, state=State.INFLIGHT, completion=None)
    return instant


def _properties(storage: Storage, config: TableConfig) -> dict[str, str]:
    path = f"{_OWN}/hoodie.properties"
    try:
        properties = parse_properties(storage.read(path))
    except NotFoundError as e:
        raise MetadataTableError(f"there is no {storage.uri(path)}") from e
    except FormatError as e:
        raise MetadataTableError(f"{storage.uri(path)} cannot be parsed: {e}") from e
    expected = {"hoodie.table.name": f"{config.name}_metadata", "hoodie.table.version": str(config.version)}
    for key, value in expected.items():
        if properties.get(key) != value:
            raise MetadataTableError(
                f"{storage.uri(path)} has {key}={properties.get(key)}; that of this table has {key}={value}"
            )
    return properties


def _layout(properties: dict[str, str]) -> Layout:
    """The layout with paths relative to the table."""
    own = Layout.of(properties)
    return Layout(own.version, f"{METADATA_FOLDER}/{own.folder}", f"{METADATA_FOLDER}/{own.history}")
