from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi.errors import (
    AlreadyExistsError,
    CorruptInstantError,
    InstantNotFoundError,
    StorageError,
    TimelineError,
    UnansweredError,
)
from pyhudi.storage import Storage, open_storage
from pyhudi.timeline.action_avro import encode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import State
from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2, Layout
from tests.fault_injection import Fault, FaultyStorage

T1, T2, T3 = "20240101000000001", "20240101000000002", "20240101000000003"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path)


@pytest.fixture(params=[LAYOUT_1, LAYOUT_2], ids=["layout 1", "layout 2"])
def layout(request: pytest.FixtureRequest) -> Layout:
    layout: Layout = request.param
    return layout


@pytest.fixture
def active(storage: Storage, layout: Layout) -> ActiveTimeline:
    return ActiveTimeline.load(storage, layout)


def test_a_table_without_instants(active: ActiveTimeline):
    assert not active.timeline


def test_the_life_of_a_commit(active: ActiveTimeline, layout: Layout):
    requested = active.create_requested("commit", T1)
    inflight = active.to_inflight(requested, b"{}")
    metadata = CommitMetadata("UPSERT", extra={"schema": "{}"})
    done = active.complete(inflight, metadata.encode(6 if layout.version == 1 else 9, "commit"), T2)
    assert done.completion == (None if layout.version == 1 else T2)
    for timeline in (active, active.reload()):
        assert [i.state for i in timeline.timeline] == [State.COMPLETED]
        assert [i.state for i in timeline.states(done)] == [State.COMPLETED, State.INFLIGHT, State.REQUESTED]
        assert timeline.commit_metadata(done).operation == "UPSERT"
        assert timeline.read_state(done, State.INFLIGHT) == b"{}"


def test_a_completed_file_is_read_once_but_another_in_its_place_again(storage: Storage, layout: Layout):
    counted = FaultyStorage(storage)
    version = 6 if layout.version == 1 else 9

    def publish(text: str) -> ActiveTimeline:
        active = ActiveTimeline.load(counted, layout)
        inflight = active.to_inflight(active.create_requested("commit", T1))
        active.complete(inflight, CommitMetadata("UPSERT", extra={"k": text}).encode(version, "commit"), T2)
        return active.reload()

    for seconds, text in enumerate("ab"):  # of the same size
        active = publish(text)
        (done,) = active.timeline
        storage.set_modified(active.path(done), 1_700_000_000_000 + 1000 * seconds)
        counted.operations.clear()
        for _ in range(2):
            assert active.reload().commit_metadata(done).extra == {"k": text}
        assert [operation for operation, _ in counted.operations] == ["list", "read", "list"]
        active.delete_states(active.states(done))


def test_clustering(active: ActiveTimeline, layout: Layout):
    requested = active.create_requested("clustering", T1, b"plan")
    inflight = active.to_inflight(requested)
    assert inflight.action == ("replacecommit" if layout.version == 1 else "clustering")
    done = active.complete(inflight, b"x", T2)
    assert done.action == "replacecommit"
    assert len(active.reload().timeline) == 1


def test_nobody_announces_the_same_instant_twice(active: ActiveTimeline):
    active.create_requested("commit", T1)
    with pytest.raises(AlreadyExistsError):
        active.reload().create_requested("commit", T1)


def test_a_transition_is_made_once(active: ActiveTimeline):
    requested = active.create_requested("commit", T1)
    other = active.reload()
    active.to_inflight(requested)
    with pytest.raises(AlreadyExistsError):
        other.to_inflight(requested)


def test_completing_twice_is_refused(active: ActiveTimeline):
    inflight = active.to_inflight(active.create_requested("commit", T1))
    active.complete(inflight, b"x", T2)
    with pytest.raises(TimelineError, match="already completed"):
        active.reload().complete(inflight, b"x", T3)


def test_completing_with_nothing_is_refused(active: ActiveTimeline):
    inflight = active.to_inflight(active.create_requested("commit", T1))
    with pytest.raises(TimelineError, match="empty"):
        active.complete(inflight, b"", T2)


def test_layout_2_needs_a_completion_time(storage: Storage):
    active = ActiveTimeline.load(storage, LAYOUT_2)
    inflight = active.to_inflight(active.create_requested("commit", T1))
    with pytest.raises(TimelineError, match="completion time"):
        active.complete(inflight, b"x")


def test_deleting_the_pending_files_leaves_a_completed_one(active: ActiveTimeline):
    done = active.complete(active.to_inflight(active.create_requested("commit", T1)), b"x", T2)
    active.delete_pending(T1, "commit")
    assert active.states(done) == [done]
    for _ in range(2):
        active.delete(done)
        assert not active.timeline
    assert not active.reload().timeline


def test_an_unknown_action_writes_nothing(active: ActiveTimeline):
    with pytest.raises(TimelineError, match="not a valid name"):
        active.create_requested("dance", T1)
    assert not active.reload().timeline


@pytest.mark.parametrize("content", [b"", b"{", b"Obj\x01half", b"[]", b'{"partitionToWriteStats": 5}', b"\xff\x00"])
def test_a_broken_completed_file(storage: Storage, layout: Layout, content: bytes):
    name = layout.file_name(T1, "commit", State.COMPLETED, T2)
    storage.write(layout.path(name), content)
    active = ActiveTimeline.load(storage, layout)
    instant = active.timeline.last
    assert instant is not None
    with pytest.raises(CorruptInstantError, match="a killed writer") as caught:
        active.commit_metadata(instant)
    assert name in str(caught.value)
    assert "rolls it back" in str(caught.value)


def test_a_plan_that_is_being_written_is_read_again(
    active: ActiveTimeline, layout: Layout, monkeypatch: pytest.MonkeyPatch
):
    plan = active.create_requested("compaction", T1)
    path = layout.path(plan.file_name)
    monkeypatch.setattr("pyhudi.timeline.active_timeline.time.sleep", lambda _: active.storage.write(path, b"plan"))
    assert active.read_state(plan, State.REQUESTED) == b"plan"


@pytest.mark.parametrize("action", ["commit", "clean"])
def test_a_file_that_is_being_written_is_read_again(
    storage: Storage, layout: Layout, action: str, monkeypatch: pytest.MonkeyPatch
):
    version = 6 if layout.version == 1 else 9
    record: dict[str, Any] = {"startCleanTime": T1, "timeTakenInMillis": 1, "totalFilesDeleted": 0}
    record |= {"earliestCommitToRetain": T1, "partitionMetadata": {}, "bootstrapPartitionMetadata": {}}
    record |= {"lastCompletedCommitTimestamp": T1, "version": 2, "extraMetadata": None}
    commit = CommitMetadata("UPSERT", extra={"schema": "s"})
    whole = (
        commit.encode(version, action)
        if action == "commit"
        else encode_record(action, State.COMPLETED, record, version)
    )
    path = layout.path(layout.file_name(T1, action, State.COMPLETED, T2))
    storage.write(path, b"")
    active = ActiveTimeline.load(storage, layout)
    instant = active.timeline.last
    assert instant is not None
    monkeypatch.setattr("pyhudi.timeline.active_timeline.time.sleep", lambda _: storage.write(path, whole))
    if action == "commit":
        assert active.commit_metadata(instant).operation == "UPSERT"
    else:
        assert active.completed_record(instant)["startCleanTime"] == T1


def test_a_cut_file_is_corrupt_wherever_it_is_cut(storage: Storage, layout: Layout, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pyhudi.timeline.active_timeline._PAUSES", ())
    whole = CommitMetadata("UPSERT", extra={"schema": "s"}).encode(6 if layout.version == 1 else 9, "commit")
    name = layout.file_name(T1, "commit", State.COMPLETED, T2)
    for length in (*range(0, len(whole) - 1, 7), len(whole) - 1):
        storage.write(layout.path(name), whole[:length])
        active = ActiveTimeline.load(storage, layout)
        with pytest.raises(CorruptInstantError):
            active.commit_metadata(active.timeline.instants[0])


def test_an_instant_that_has_gone(active: ActiveTimeline, storage: Storage):
    requested = active.create_requested("commit", T1)
    storage.delete(active.path(requested))
    with pytest.raises(InstantNotFoundError, match="load the table again"):
        active.read(requested)
    with pytest.raises(InstantNotFoundError):
        active.read_state(requested, State.INFLIGHT)


@pytest.mark.parametrize("error", [StorageError, UnansweredError, AlreadyExistsError])
def test_a_publication_whose_answer_was_lost(storage: Storage, layout: Layout, error: type[StorageError]):
    lost = FaultyStorage(storage, [Fault("create", 3, "after", error)])
    active = ActiveTimeline.load(lost, layout)
    done = active.complete(active.to_inflight(active.create_requested("commit", T1)), b"{}", T2)
    assert active.reload().timeline.last == active.timeline.last == done
    assert done.is_completed


@pytest.mark.parametrize("error", [StorageError, UnansweredError])
def test_a_publication_that_was_not_done(storage: Storage, layout: Layout, error: type[StorageError]):
    active = ActiveTimeline.load(FaultyStorage(storage, [Fault("create", 3, error=error)]), layout)
    inflight = active.to_inflight(active.create_requested("commit", T1))
    with pytest.raises(error) as raised:
        active.complete(inflight, b"{}", T2)
    assert type(raised.value) is error
    assert active.timeline.last == inflight


def test_a_publication_by_somebody_else(storage: Storage):
    active = ActiveTimeline.load(storage, LAYOUT_1)
    inflight = active.to_inflight(active.create_requested("commit", T1))
    storage.create(LAYOUT_1.path(f"{T1}.commit"), b"theirs")
    with pytest.raises(AlreadyExistsError):
        active.complete(inflight, b"mine")
