"""Archived timeline of layout 1; docs/format/core.md, section 3.1.

It consists of log files ``.commits_.archive.<N>_1-0-1`` of Avro blocks, with one record per state file of an instant. A
run writes its instants to a new file, which appears atomically.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyhudi.errors import FormatError, TimelineError
from pyhudi.format.avro.container import encode_datum, is_container, load_schema, schema_json, with_java_strings
from pyhudi.format.log import BlockType, Header
from pyhudi.format.log.block_framing import Buffer, frame
from pyhudi.format.log.encoding.data_block_encoder import avro_content
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import read_ahead
from pyhudi.storage.lock_primitives import DeferredReleaseLock
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archive_log_reader import (
    ARCHIVE_PREFIX,
    archive_datums,
    archive_files,
    archive_number,
    completed_in_archive_file,
    last_of_archive_file,
)
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.instant import Action, Instant, State, instant_of_millis
from pyhudi.timeline.timeline_layout import Layout

BATCH = 10
"""Number of records in a block (``hoodie.commits.archival.batch``)."""
ACTIONS = frozenset(
    {
        Action.COMMIT,
        Action.DELTA_COMMIT,
        Action.REPLACE_COMMIT,
        Action.CLEAN,
        Action.ROLLBACK,
        Action.SAVEPOINT,
    }
)
"""Actions, by their completed names, whose instants Apache Hudi archives; restores and indexing are not among them."""
_TOKEN = "1-0-1"
_PENDING = frozenset((a, s) for a in (Action.COMMIT, Action.DELTA_COMMIT) for s in (State.REQUESTED, State.INFLIGHT))
_COMMITS = {
    (Action.COMMIT, State.COMPLETED): "hoodieCommitMetadata",
    (Action.DELTA_COMMIT, State.COMPLETED): "hoodieCommitMetadata",
    **dict.fromkeys(_PENDING, "hoodieCommitMetadata"),
    (Action.REPLACE_COMMIT, State.INFLIGHT): "HoodieInflightReplaceMetadata",
    (Action.REPLACE_COMMIT, State.COMPLETED): "hoodieReplaceCommitMetadata",
}
"""Fields for commit metadata, by action and state."""
_OTHERS = {
    (Action.REPLACE_COMMIT, State.REQUESTED): "hoodieRequestedReplaceMetadata",
    (Action.CLEAN, State.REQUESTED): "hoodieCleanerPlan",
    (Action.CLEAN, State.INFLIGHT): "hoodieCleanerPlan",
    (Action.CLEAN, State.COMPLETED): "hoodieCleanMetadata",
    (Action.ROLLBACK, State.COMPLETED): "hoodieRollbackMetadata",
    (Action.SAVEPOINT, State.COMPLETED): "hoodieSavePointMetadata",
    (Action.COMPACTION, State.REQUESTED): "hoodieCompactionPlan",
    (Action.LOG_COMPACTION, State.REQUESTED): "hoodieCompactionPlan",
}
"""Fields for plans and results. Of other state files only the name is archived."""
_ROLLING_STAT = {"ROLLING_STAT": ""}
"""Entry that Apache Hudi adds to the extra metadata of every archived commit."""


def archived(storage: Storage, layout: Layout, instants: Sequence[Instant]) -> list[Instant]:
    """Return the completed instants that are in the newest archive file, as left behind by a killed run.

    Raises:
        CorruptInstantError: The file cannot be parsed.
    """
    files = archive_files(storage, layout)
    # Instants leave the timeline in the order of their records.
    if not files or last_of_archive_file(storage, files[-1]) not in {i.requested for i in instants}:
        return []
    completed = completed_in_archive_file(storage, files[-1])
    return [i for i in instants if (i.requested, i.action) in completed]


def add(
    active: ActiveTimeline, instants: Sequence[Instant], timezone: str, lock: DeferredReleaseLock, batch: int = BATCH
) -> None:
    """Archive completed instants, a sorted and non-empty sequence.

    ``timezone`` is that of the timeline, ``batch`` the number of records per block.

    Raises:
        LockError: The lock of the table was lost: an instant that was rolled back since must not be archived.
        CorruptInstantError: The file of an instant cannot be parsed.
        InstantNotFoundError: An instant has disappeared from the active timeline.
        TimelineError: The action of an instant is not one of `ACTIONS`.
    """
    for instant in instants:
        if instant.family not in ACTIONS:
            raise TimelineError(f"{instant} cannot be archived in layout 1; leave it in the active timeline")
    changed = _change_times(active.storage, active.layout, timezone)
    states = [state for instant in instants for state in reversed(active.states(instant))]
    schema = _schema()
    records = list(read_ahead(lambda state: _record(active, state, schema, changed.get(active.path(state))), states))
    lock.ensure_held()
    _write(active.storage, active.layout, schema, records, batch)


def append(storage: Storage, layout: Layout, entries: Iterable[tuple[Instant, bytes, str | None]]) -> None:
    """Write the state files of archived instants to one archive file.

    Each entry is an instant, its content as of version 6, and the time at which the state was reached.

    Raises:
        FormatError: The content of a state file cannot be parsed.
    """
    schema = _schema()
    _write(storage, layout, schema, [_encoded(state, schema, changed, data) for state, data, changed in entries], BATCH)


def _schema() -> str:
    return schema_json(with_java_strings(load_schema("HoodieArchivedMetaEntry.v6")))


def _write(storage: Storage, layout: Layout, schema: str, records: Sequence[bytes], batch: int) -> None:
    blocks = [part for at in range(0, len(records), batch) for part in _block(schema, records[at : at + batch])]
    storage.create(_next_path(storage, layout), b"".join(blocks))


@dataclass(frozen=True, slots=True)
class SmallFiles:
    """Condition for merging archive files: at least ``count`` files of fewer than ``limit`` bytes."""

    count: int
    limit: int


def merge_small_files(storage: Storage, layout: Layout, small: SmallFiles, batch: int) -> None:
    """Merge the oldest small archive files into a new one, each record once.

    If a run is killed before the old files are deleted, records occur twice, which readers and the next run handle.

    Raises:
        CorruptInstantError: A file cannot be parsed.
    """
    listed = storage.list(layout.history)
    sizes = dict(zip(listed["path"].to_pylist(), listed["size"].to_pylist(), strict=True))
    paths = [path for path in archive_files(storage, layout) if sizes.get(path, 0) < small.limit]
    if len(paths) < max(small.count, 2):
        return
    merged = paths[: max(small.count, 2)]
    by_schema: dict[str, dict[bytes, None]] = {}
    for path in merged:
        for schema, record in archive_datums(storage, path):
            by_schema.setdefault(schema, {})[record] = None
    blocks: list[Buffer] = []
    for schema, records in by_schema.items():
        records_to_write = list(records)
        blocks += [
            part
            for at in range(0, len(records_to_write), batch)
            for part in _block(schema, records_to_write[at : at + batch])
        ]
    storage.create(_next_path(storage, layout), b"".join(blocks))
    storage.delete_many(merged)


def _change_times(storage: Storage, layout: Layout, timezone: str) -> dict[str, str]:
    """Return the modification times of the files of the active timeline, as instant times by path."""
    listed = storage.list(layout.folder)
    millis = zip(listed["path"].to_pylist(), listed["mtime_ms"].to_pylist(), strict=True)
    return {path: instant_of_millis(moment, timezone) for path, moment in millis}


def _record(active: ActiveTimeline, state: Instant, schema: str, changed: str | None) -> bytes:
    with active.parsing(state):
        return _encoded(state, schema, changed, active.read(state))


def _encoded(state: Instant, schema: str, changed: str | None, data: bytes) -> bytes:
    entry = {
        "commitTime": state.requested,
        "actionType": state.action,
        "version": None,
        "actionState": state.state.value,
        "stateTransitionTime": changed,
    }
    try:
        return encode_datum(schema, entry | _payload(state, data))
    except (ValueError, TypeError, AttributeError) as error:
        raise FormatError(str(error)) from error


def _payload(state: Instant, data: bytes) -> dict[str, Any]:
    """Return the content of a state file under its field; nothing for a state without one, or for most empty files."""
    key = (state.action, state.state)
    if key in _COMMITS and is_container(data):  # Apache Hudi's downgrade to version 6 leaves some inflight files so.
        data = decode_commit(data).encode(6, state.action)
    if key in _COMMITS and (data or key in _PENDING):
        return {_COMMITS[key]: _commit(json.loads(data) if data else {})}
    return {_OTHERS[key]: decode_record(state.action, state.state, data)} if key in _OTHERS and data else {}


def _commit(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return commit metadata in the form of archives."""
    extra = {name: value for name, value in (metadata.get("extraMetadata") or {}).items() if value is not None}
    commit = {"partitionToWriteStats": {}, "operationType": "UNKNOWN", **metadata}
    return commit | {"extraMetadata": extra | _ROLLING_STAT, "version": None}


def _block(schema: str, records: Sequence[bytes]) -> Sequence[Buffer]:
    framed = b"".join(struct.pack(">i", len(record)) + record for record in records)
    return frame(BlockType.AVRO_DATA, {Header.SCHEMA: schema}, avro_content([(len(records), memoryview(framed))])).parts


def _next_path(storage: Storage, layout: Layout) -> str:
    files = archive_files(storage, layout)
    number = archive_number(files[-1]) + 1 if files else 1
    return f"{layout.history}/{ARCHIVE_PREFIX}{number}_{_TOKEN}"
