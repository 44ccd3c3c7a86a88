"""Commits of others against what a statement has read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.storage import Storage
from pyhudi.timeline.action_avro import encode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, State
from pyhudi.transaction.conflicts.changed_groups import GROUP_SCHEMA
from pyhudi.transaction.conflicts.serializable_reads import ReadSet
from tests.archival import archive_instants
from tests.unit.transaction.conflicts.test_conflict_detection import EARLIER, LATER, ME, completed, metadata
from tests.unit.transaction.tables import active

BEFORE, BETWEEN = "20240101000000000", "20240101000000003"


def groups(*names: str) -> pa.Table:
    pairs = [name.split(":") for name in names]
    return pa.table({"partition": [p for p, _ in pairs], "file_id": [f for _, f in pairs]}, schema=GROUP_SCHEMA)


def reads(*names: str, now: tuple[str, ...] = (), seen: tuple[str, ...] = ()) -> ReadSet:
    def replan(_: ActiveTimeline) -> pa.Table:
        return groups(*(now or names))

    return ReadSet(frozenset(seen), groups(*names), replan)


@pytest.mark.parametrize(
    ("read", "conflicts"),
    [
        (reads("a:1"), True),  # what was read has been changed
        (reads("a:2"), False),
        (reads("a:2", now=("a:1", "a:2")), True),  # what was left out would be read now
        (reads("a:1", seen=(EARLIER,)), False),  # it was in the snapshot
        (reads("b:1").union(reads("a:2", now=("a:1",))), True),
        (reads("b:1").union(reads("a:2")), False),
    ],
)
def test_writes_of_others(storage: Storage, read: ReadSet, conflicts: bool):
    completed(storage, EARLIER, ["a:1"])
    found = read.find_conflict(ME, active(storage))
    assert (found is not None) == conflicts
    if found is not None:
        assert found.other.requested == EARLIER
        assert "file group '1' of partition 'a'" in found.reason


def test_a_commit_that_came_later_counts_too_and_compactions_do_not(storage: Storage):
    completed(storage, EARLIER, ["a:1"], "COMPACT")
    assert reads("a:1").find_conflict(ME, active(storage)) is None
    completed(storage, LATER, ["a:1"])
    assert reads("a:1").find_conflict(ME, active(storage)) is not None


def rolled_back(storage: Storage, requested: str, undone: str) -> None:
    """Add a rollback of a commit."""
    timeline = active(storage)
    version = 6 if timeline.layout.version == 1 else 9
    record = {
        "startRollbackTime": requested,
        "timeTakenInMillis": 1,
        "totalFilesDeleted": 1,
        "commitsRollback": [undone],
        "partitionMetadata": {},
        "version": 1,
    }
    inflight = timeline.to_inflight(timeline.create_requested(Action.ROLLBACK, requested, b"plan"))
    timeline.complete(inflight, encode_record(Action.ROLLBACK, State.COMPLETED, record, version), LATER)


@pytest.mark.parametrize(("undone", "stands_against"), [(EARLIER, True), ("20240101000000000", False)])
def test_rollbacks_of_what_was_read(storage: Storage, undone: str, stands_against: bool):
    """Those of failed writes removed no rows."""
    rolled_back(storage, LATER, undone)
    found = reads("a:1", seen=(EARLIER,)).find_conflict(ME, active(storage))
    assert (found is not None) == stands_against


@pytest.mark.parametrize("was_pending", [False, True])
def test_a_write_that_was_archived_since_the_snapshot(storage: Storage, was_pending: bool) -> None:
    """A statement may read for longer than archival leaves commits on the active timeline."""
    if was_pending:
        active(storage).create_requested("commit", BEFORE, b"")
    completed(storage, EARLIER, ["a:1"])
    timeline = active(storage)
    read = ReadSet.of_snapshot(timeline.timeline, groups("a:1"), lambda _: groups("a:1"))
    if was_pending:
        pending = timeline.to_inflight(timeline.timeline.instants[0])
        version = 6 if timeline.layout.version == 1 else 9
        timeline.complete(pending, metadata(["a:1"]).encode(version, "commit"), LATER)
    else:
        completed(storage, BETWEEN, ["a:1"])
    completed(storage, LATER, ["b:1"])
    gone = [i for i in active(storage).timeline.completed().writes() if i.requested <= BETWEEN]
    archive_instants(active(storage), gone)
    now = active(storage)
    assert now.timeline.start == LATER
    found = read.find_conflict(ME, now)
    assert found is not None
    assert found.other.requested == (BEFORE if was_pending else BETWEEN)
    unread = ReadSet.of_snapshot(timeline.timeline, groups("c:1"), lambda _: groups("c:1"))
    assert unread.find_conflict(ME, now) is None


@pytest.mark.parametrize("undone", [EARLIER, "20240101000000000"])
def test_a_rollback_that_was_archived_since_the_snapshot(storage: Storage, undone: str) -> None:
    completed(storage, EARLIER, ["a:1"])
    read = ReadSet.of_snapshot(active(storage).timeline, groups("a:1"), lambda _: groups("a:1"))
    rolled_back(storage, BETWEEN, undone)
    completed(storage, LATER, ["b:1"])
    gone = [i for i in active(storage).timeline.completed() if i.requested <= BETWEEN]
    archive_instants(active(storage), gone)
    now = active(storage)
    assert not now.timeline.of_actions(Action.ROLLBACK)
    found = read.find_conflict(ME, now)
    assert (None if found is None else found.other.requested) == (BETWEEN if undone == EARLIER else None)
