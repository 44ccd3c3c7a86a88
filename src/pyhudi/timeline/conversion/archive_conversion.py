"""Conversion of the archived timeline between layouts, for upgrades and downgrades; docs/format/core.md, section 3.

Archived instants are copied in parts and never deleted here. Both directions can be repeated.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptInstantError, FormatError
from pyhudi.format.avro.container import load_schema, single_record, write_container
from pyhudi.storage import Storage
from pyhudi.timeline.action_avro import schema_name
from pyhudi.timeline.archive import archive_log_writer
from pyhudi.timeline.archive.archive_log_reader import (
    archive_files,
    archive_records,
    archived_content,
    is_completed_record,
)
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.archive.lsm_timeline_writer import LSM_SCHEMA, ROW_VERSION, LsmTimelineWriter
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.conversion.layout_conversion import earliest_completion
from pyhudi.timeline.instant import WRITE_ACTIONS, Action, Instant, State, completed_action
from pyhudi.timeline.timeline_layout import Layout

_PART = 500
"""Number of instants that are converted at once."""
_PLAN_FIELDS = {
    "hoodieCompactionPlan": Action.COMPACTION,
    "hoodieCleanerPlan": Action.CLEAN,
    "hoodieRequestedReplaceMetadata": Action.REPLACE_COMMIT,
}
_PLANNED_AS = {Action.COMMIT: Action.COMPACTION, Action.DELTA_COMMIT: Action.LOG_COMPACTION}
"""Actions of the plans of instants that complete as another action."""
_log = logging.getLogger(__name__)


def archive_to_lsm(storage: Storage, source: Layout, target: Layout) -> None:
    """Copy the archive of layout 1 into the (empty) one of layout 2.

    Raises:
        CorruptInstantError: An archive file cannot be parsed.
    """
    writer = LsmTimelineWriter(storage, target)
    writer.append(_lsm_parts(storage, source))
    writer.compact_and_clean()


def archive_to_log(storage: Storage, source: Layout, target: Layout) -> None:
    """Copy the archive of layout 2 into that of layout 1. Instants that exist there are not added again.

    Restores and index builds are omitted, because layout 1 cannot archive them.

    Raises:
        CorruptInstantError: An archive file cannot be parsed.
    """
    archived = read_archived_timeline(storage, target, metadata=False)
    archived_instants = set(zip(archived["requested"].to_pylist(), archived["action"].to_pylist(), strict=True))
    instants = sorted(set(read_archived_timeline(storage, source, metadata=False)["requested"].to_pylist()))
    after: str | None = None
    for start in range(0, len(instants), _PART):
        up_to = instants[min(start + _PART, len(instants)) - 1]
        rows = read_archived_timeline(storage, source, after=after, up_to=up_to).to_pylist()
        after = up_to
        missing = [row for row in rows if (row["requested"], row["action"]) not in archived_instants]
        left_out = [row["requested"] for row in missing if row["action"] not in archive_log_writer.ACTIONS]
        if left_out:
            _log.warning("not archived in layout 1: %s", ", ".join(left_out))
        entries = [
            e for row in missing if row["action"] in archive_log_writer.ACTIONS for e in _log_entries(storage, row)
        ]
        if entries:
            archive_log_writer.append(storage, target, entries)


def _log_entries(storage: Storage, row: dict[str, Any]) -> Iterator[tuple[Instant, bytes, str | None]]:
    requested, action, data = row["requested"], row["action"], row["metadata"] or b""
    try:
        if row["plan"]:
            state, plan_action, plan = _planned(action, row["plan"])
            yield Instant(requested, plan_action, state, None, ""), plan, requested
        content = decode_commit(data).encode(6, action) if action in WRITE_ACTIONS and data else data
    except FormatError as error:
        raise CorruptInstantError(
            f"cannot parse the archived {action} {requested} of {storage.root} ({error}); restore the archive from a "
            "backup"
        ) from error
    yield Instant(requested, action, State.COMPLETED, None, ""), content, row["completion"]


def _planned(action: str, plan: bytes) -> tuple[State, str, bytes]:
    """Return the state, action and content of the state file that is archived as a plan. For inserts that overwrite,
    Apache Hudi 1.2 archives the inflight file, which has commit metadata."""
    if action == Action.REPLACE_COMMIT and json.loads(single_record(plan)[0]).get("name") == "HoodieCommitMetadata":
        return State.INFLIGHT, action, decode_commit(plan).encode(6, action)
    return State.REQUESTED, _PLANNED_AS.get(action, action), plan


def _lsm_parts(storage: Storage, source: Layout) -> Iterator[pa.Table]:
    """Yield the instants of the archive, each once, in sorted parts."""
    plans: dict[tuple[str, str], bytes] = {}
    seen: set[tuple[str, str]] = set()
    rows: list[dict[str, Any]] = []
    for path in archive_files(storage, source):
        for record in archive_records(storage, path):
            key = (record["commitTime"], completed_action(record["actionType"]))
            if not is_completed_record(record):
                plan = _plan(record)
                if plan is not None:
                    plans[key] = plan
            elif key not in seen:
                seen.add(key)
                rows.append(_lsm_row(record, key[1], plans.pop(key, None)))
            if len(rows) >= _PART:
                yield _sorted(rows)
                rows = []
    if rows:
        yield _sorted(rows)


def _lsm_row(record: dict[str, Any], action: str, plan: bytes | None) -> dict[str, Any]:
    requested = record["commitTime"]
    return {
        "instantTime": requested,
        "completionTime": max(record.get("stateTransitionTime") or "", earliest_completion(requested)),
        "action": action,
        "metadata": archived_content(record, 8),
        "plan": plan,
        "version": ROW_VERSION,
    }


def _plan(record: dict[str, Any]) -> bytes | None:
    """Return the content of the requested file of a service."""
    if record.get("actionState") != State.REQUESTED:
        return None
    for name, action in _PLAN_FIELDS.items():
        plan = record.get(name)
        if plan is None or (action == Action.REPLACE_COMMIT and plan.get("clusteringPlan") is None):
            continue
        return write_container(load_schema(schema_name(action, State.REQUESTED, 8)), [plan])
    return None


def _sorted(rows: list[dict[str, Any]]) -> pa.Table:
    table = pa.Table.from_pylist(rows, schema=LSM_SCHEMA)
    return table.take(pc.sort_indices(table, [("instantTime", "ascending")]))
