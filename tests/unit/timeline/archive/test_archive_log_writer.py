"""The archived timeline of layout 1: one record for each state file, under the field that Apache Hudi fills."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyhudi.errors import CorruptInstantError, TimelineError
from pyhudi.format.avro.container import decode_datum as decode_avro
from pyhudi.format.avro.container import load_schema, schema_json
from pyhudi.format.log import avro_datums, scan_blocks
from pyhudi.storage import Storage
from pyhudi.timeline.action_avro import decode_record, encode_record, requested_replace
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archive_log_reader import archive_files
from pyhudi.timeline.archive.archive_log_writer import BATCH
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.archive.archiver import can_archive, finish_archival
from pyhudi.timeline.commit_metadata import CommitMetadata, decode_commit, write_stats
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.timeline_layout import LAYOUT_1
from tests.archival import archive_instants
from tests.golden.expected import unpack
from tests.unit.transaction.test_writer_death import opened

TABLES = ["v6_mor_compaction", "v6_mor_rollback", "v6_cow_cluster", "v6_cow_nonpart_clean", "v6_cow_archived_replace"]
FIELDS = {
    ("commit", "REQUESTED"): "hoodieCommitMetadata",
    ("commit", "INFLIGHT"): "hoodieCommitMetadata",
    ("commit", "COMPLETED"): "hoodieCommitMetadata",
    ("deltacommit", "REQUESTED"): "hoodieCommitMetadata",
    ("deltacommit", "INFLIGHT"): "hoodieCommitMetadata",
    ("deltacommit", "COMPLETED"): "hoodieCommitMetadata",
    ("replacecommit", "REQUESTED"): "hoodieRequestedReplaceMetadata",
    ("replacecommit", "INFLIGHT"): "HoodieInflightReplaceMetadata",
    ("replacecommit", "COMPLETED"): "hoodieReplaceCommitMetadata",
    ("clean", "REQUESTED"): "hoodieCleanerPlan",
    ("clean", "INFLIGHT"): "hoodieCleanerPlan",
    ("clean", "COMPLETED"): "hoodieCleanMetadata",
    ("compaction", "REQUESTED"): "hoodieCompactionPlan",
    ("rollback", "COMPLETED"): "hoodieRollbackMetadata",
}
"""As Apache Hudi 0.15.0 fills them; the inflight file of a clustering is empty, and has none."""
NAMES = {"commitTime", "actionType", "actionState", "stateTransitionTime", "version"}


def records(storage: Storage, path: str) -> list[list[dict[str, Any]]]:
    """The records of an archive file, block by block."""
    blocks = list(scan_blocks(storage.read(path)))
    assert all(block.schema and block.instant is None for block in blocks)
    schema = schema_json(load_schema("HoodieArchivedMetaEntry.v6"))
    return [[decode_avro(schema, bytes(d)) for d in avro_datums(block.content())] for block in blocks]


@pytest.mark.parametrize("table", TABLES)
def test_what_was_active_is_archived(tmp_path: Path, table: str) -> None:
    storage = opened(Path(unpack(table, tmp_path).path))
    before = read_archived_timeline(storage, LAYOUT_1)
    files = len(archive_files(storage, LAYOUT_1))
    active = ActiveTimeline.load(storage, LAYOUT_1)
    done = list(active.timeline.completed())
    content = {i.requested: active.read(i) for i in done}
    states = [(i.requested, s.action, s.state.value, active.read(s)) for i in done for s in reversed(active.states(i))]
    archive_instants(active, done, "UTC")
    assert ActiveTimeline.load(storage, LAYOUT_1).timeline == active.timeline.pending()
    after = read_archived_timeline(storage, LAYOUT_1)
    assert (
        after.slice(0, before.num_rows).select(["requested", "action"]).equals(before.select(["requested", "action"]))
    )
    assert after.num_rows == before.num_rows + len(done)
    for row in after.slice(before.num_rows).to_pylist():
        if row["action"] in ("commit", "deltacommit", "replacecommit"):
            same_commit(decode_commit(row["metadata"]), decode_commit(content[row["requested"]]))
        else:
            found = (
                decode_record(row["action"], State.COMPLETED, d) for d in (row["metadata"], content[row["requested"]])
            )
            assert next(found) == next(found)
    names = archive_files(storage, LAYOUT_1)
    assert names[-1] == f"{LAYOUT_1.history}/.commits_.archive.{files + 1}_1-0-1"
    blocks = records(storage, names[-1])
    assert [len(block) for block in blocks[:-1]] == [BATCH] * (len(blocks) - 1)
    rows = [row for block in blocks for row in block]
    assert [(r["commitTime"], r["actionType"], r["actionState"]) for r in rows] == [state[:3] for state in states]
    for row, (requested, action, state, data) in zip(rows, states, strict=True):
        filled = {name for name, value in row.items() if value is not None} - NAMES
        field = FIELDS.get((action, state))
        assert filled == ({field} if field and (data or field == "hoodieCommitMetadata") else set())
        assert len(row["stateTransitionTime"]) == len(requested)
        assert row["version"] is None


def test_the_schema_is_that_of_apache_hudi(tmp_path: Path) -> None:
    """With Java's properties, without which Apache Hudi does not read it; only texts for people are left out."""
    storage = opened(Path(unpack("v6_cow_archived_replace", tmp_path).path))
    active = ActiveTimeline.load(storage, LAYOUT_1)
    archive_instants(active, list(active.timeline))
    theirs, *_, ours = (
        json.loads(block.schema or "")
        for path in archive_files(storage, LAYOUT_1)
        for block in scan_blocks(storage.read(path))
    )
    assert ours == without_docs(theirs)


def without_docs(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_docs(item) for item in schema]
    if isinstance(schema, dict):
        return {key: without_docs(value) for key, value in schema.items() if key != "doc"}
    return schema


def same_commit(found: CommitMetadata, meant: CommitMetadata) -> None:
    assert (found.operation, found.schema_json, found.replaced) == (meant.operation, meant.schema_json, meant.replaced)
    columns = ["fileId", "path", "prevCommit", "numWrites", "numDeletes", "fileSizeInBytes", "partitionPath"]
    assert found.stats.select(columns).equals(meant.stats.select(columns))


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    storage = opened(tmp_path)
    active = ActiveTimeline.load(storage, LAYOUT_1)
    for n, state in enumerate((b"", b"{}"), 1):
        entry = active.to_inflight(active.create_requested(Action.COMMIT, f"2026010100000000{n}"), state)
        active.complete(entry, CommitMetadata("UPSERT", write_stats([])).encode(6, Action.COMMIT))
    return storage


def test_savepoints(storage: Storage) -> None:
    active = ActiveTimeline.load(storage, LAYOUT_1)
    record = {"savepointedBy": "u", "savepointedAt": 1, "comments": "c", "partitionMetadata": {}, "version": 1}
    (first, _) = active.timeline
    saved = active.to_inflight(first.__class__(first.requested, Action.SAVEPOINT, State.REQUESTED, None, ""))
    saved = active.complete(saved, encode_record(Action.SAVEPOINT, State.COMPLETED, record, 6))
    archive_instants(active, [saved])
    (row,) = read_archived_timeline(storage, LAYOUT_1).to_pylist()
    assert (row["requested"], row["action"]) == (first.requested, "savepoint")
    assert decode_record(Action.SAVEPOINT, State.COMPLETED, row["metadata"]) == record
    assert first in active.reload().timeline.instants


def test_inflight_files_as_the_downgrade_of_apache_hudi_leaves_them(storage: Storage) -> None:
    """It copies those of inserts that overwrite, which are Avro in version 8."""
    active = ActiveTimeline.load(storage, LAYOUT_1)
    stats = write_stats([{"fileId": "f", "partitionPath": "p", "numInserts": 3}])
    profile = CommitMetadata("INSERT_OVERWRITE", stats).encode(8, Action.REPLACE_COMMIT)
    requested = active.create_requested(Action.REPLACE_COMMIT, "20260101000000003", requested_replace(6))
    entry = active.to_inflight(requested, profile)
    done = active.complete(entry, CommitMetadata("INSERT_OVERWRITE", stats).encode(6, Action.REPLACE_COMMIT))
    archive_instants(active, [done])
    (path,) = archive_files(storage, LAYOUT_1)
    (_, archived, _) = (row["HoodieInflightReplaceMetadata"] for block in records(storage, path) for row in block)
    assert archived["operationType"] == "INSERT_OVERWRITE"
    assert [stat["numInserts"] for stat in archived["partitionToWriteStats"]["p"]] == [3]


def test_restores_stay(storage: Storage) -> None:
    active = ActiveTimeline.load(storage, LAYOUT_1)
    entry = active.to_inflight(active.create_requested(Action.RESTORE, "20260101000000003", b"x"))
    restore = active.complete(entry, b"x")
    assert not can_archive(LAYOUT_1, restore)
    with pytest.raises(TimelineError, match="20260101000000003 restore completed cannot be archived"):
        archive_instants(active, list(active.timeline))
    assert not archive_files(storage, LAYOUT_1)
    assert len(active.reload().timeline) == 3


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"partitionToWriteStats": 1}', b"Obj\x01"])
def test_a_file_that_cannot_be_parsed(storage: Storage, content: bytes) -> None:
    active = ActiveTimeline.load(storage, LAYOUT_1)
    (first, _) = active.timeline
    storage.write(active.path(first), content)
    with pytest.raises(CorruptInstantError, match=first.file_name):
        archive_instants(active, [first])
    assert not archive_files(storage, LAYOUT_1)
    assert len(active.reload().timeline) == 2


def test_a_run_of_apache_hudi_that_died_within_a_file(storage: Storage) -> None:
    """An instant of which only the first states are archived stays."""
    active = ActiveTimeline.load(storage, LAYOUT_1)
    for n in (3, 4):
        entry = active.to_inflight(active.create_requested(Action.DELTA_COMMIT, f"2026010100000000{n}"))
        active.complete(entry, CommitMetadata("UPSERT", write_stats([])).encode(6, Action.DELTA_COMMIT))
    every = list(active.timeline)
    content = {active.path(state): active.read(state) for i in every for state in active.states(i)}
    archive_instants(active, every)
    (path,) = archive_files(storage, LAYOUT_1)
    data = storage.read(path)
    assert [len(block) for block in records(storage, path)] == [BATCH, 2]
    for whole in (False, True):
        storage.write(path, data if whole else data[:-1])
        for file, before in content.items():
            storage.write(file, before)
        left = ActiveTimeline.load(storage, LAYOUT_1)
        assert finish_archival(left) == (every if whole else every[:3])
        assert list(left.reload().timeline) == ([] if whole else every[3:])
