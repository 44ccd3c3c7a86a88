from __future__ import annotations

import pytest

from pyhudi.errors import UnsupportedTableError
from pyhudi.format.file_names import base_file_name
from pyhudi.format.log import scan_blocks
from pyhudi.storage import Storage
from pyhudi.timeline.action_avro import decode_record, encode_record
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.heartbeat import heartbeat_path
from pyhudi.timeline.instant import Instant, State, next_instant
from pyhudi.timeline.markers import IOType, Markers
from pyhudi.timeline.plans.rollback_plan import RollbackPlan, RollbackRequest
from tests.unit.services.merge_on_read_table import FAST, MorTable, row
from tests.unit.transaction.tables import MULTI_WRITER, Write, active, check_clean, data_files

OLD, NEW = "20240101000000000", "20240101000000001"


def as_timeline_server(storage: Storage, markers: Markers) -> None:
    """Turn one-file-each markers into those of Apache Hudi's timeline server."""
    listed = markers.list().to_pylist()
    markers.delete()
    lines = [f"{m['data_path']}.marker.{m['io_type']}\n" for m in listed]
    storage.write(f"{markers.folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.write(f"{markers.folder}/MARKERS0", "".join(lines[:1]).encode())
    storage.write(f"{markers.folder}/MARKERS3", "".join(lines[1:]).encode())


@pytest.mark.parametrize("how", ["direct", "timeline server", "cut off", "none", "broken"])
def test_what_a_dead_writer_left_is_found(storage: Storage, how: str):
    Write().run(storage)
    before = data_files(storage)
    dead = Write().leave(storage)
    if how in ("timeline server", "cut off"):
        as_timeline_server(storage, dead.markers)
        if how == "cut off":  # the server was killed as it wrote a file anew
            storage.write(f"{dead.markers.folder}/MARKERS3", b"")
    elif how != "direct":
        dead.markers.delete()
    if how == "broken":
        storage.write(f"{dead.markers.folder}/MARKERS.type", b"TELEPATHY")
    Write().run(storage)
    check_clean(storage)
    assert before < data_files(storage)
    rollback = active(storage).timeline.of_actions("rollback").instants[0]
    record = decode_record("rollback", State.COMPLETED, active(storage).read(rollback))
    assert record["commitsRollback"] == [dead.instant]
    assert record["instantsRollback"] == [{"commitTime": dead.instant, "action": "commit"}]
    assert record["totalFilesDeleted"] == 2
    assert sorted(record["partitionMetadata"]) == ["a", "b"]
    deleted = record["partitionMetadata"]["a"]["successDeleteFiles"]
    assert deleted == [storage.uri(f"a/{base_file_name(f'f0-{dead.instant}', '0-1-2', dead.instant)}")]
    plan = RollbackPlan.decode(active(storage).read_state(rollback, State.REQUESTED))
    assert (plan.instant, plan.action) == (dead.instant, "commit")
    assert [(r.partition, len(r.files)) for r in sorted(plan.requests, key=str)] == [("a", 1), ("b", 1)]
    assert active(storage).read_state(rollback, State.INFLIGHT) == b""


def test_files_without_partition(storage: Storage):
    Write(("",)).leave(storage).markers.delete()
    Write(("",)).leave(storage)
    Write(("",)).run(storage)
    check_clean(storage)


def test_the_newest_failed_write_goes_first(storage: Storage):
    for requested in (OLD, NEW):
        active(storage).create_requested("commit", requested)
    Write().run(storage)
    check_clean(storage)
    now = active(storage)
    plans = [
        RollbackPlan.decode(now.read_state(i, State.REQUESTED)).instant for i in now.timeline.of_actions("rollback")
    ]
    assert plans == [NEW, OLD]


def log_marker(version: int, requested: str) -> tuple[str, IOType]:
    kind = IOType.APPEND if version < 8 else IOType.CREATE
    return f".f-1_{OLD if version < 8 else requested}.log.1_0-1-2", kind


def test_log_files(storage: Storage, version: int):
    """Version 8 and later delete them like base files; in version 6 they stay, and a command block voids them."""
    write = Write(("a",), "deltacommit")
    dead = write.leave(storage)
    name, kind = log_marker(version, dead.instant)
    dead.markers.create("a", name, kind)
    storage.write(f"a/{name}", b"")
    write.run(storage)
    if version >= 8:
        check_clean(storage)
        return
    check_voided(storage, dead.instant, name)
    check_clean(storage, besides={f"a/{name}", f"a/.f-1_{OLD}.log.2_1-0-1"})


def check_voided(storage: Storage, instant: str, name: str) -> None:
    """A command block stands against an instant in the slice of a log file, and the rollback says so."""
    command = f"a/.f-1_{OLD}.log.2_1-0-1"
    (block,) = scan_blocks(storage.read(command))
    rollback = active(storage).timeline.of_actions("rollback").instants[-1]
    assert (block.is_rollback, block.instant, block.target_instant) == (True, rollback.requested, instant)
    plan = RollbackPlan.decode(active(storage).read_state(rollback, State.REQUESTED))
    assert RollbackRequest("a", "f-1", OLD, (), {name: 1}) in plan.requests
    record = decode_record("rollback", State.COMPLETED, active(storage).read(rollback))
    done = record["partitionMetadata"]["a"]
    assert done["rollbackLogFiles"][storage.uri(command)] == len(storage.read(command))
    assert done["logFilesFromFailedCommit"][name] == 1


@pytest.mark.parametrize("version", [6], indirect=True)
def test_log_files_without_markers(storage: Storage):
    """The inflight file says which file groups were to get updates; slices that a compaction opened count, too."""
    profile = {"partitionPath": "a", "fileId": "f-1", "prevCommit": OLD, "numUpdateWrites": 3}
    tx = Write(action="deltacommit").begin(storage)
    tx.to_inflight(CommitMetadata("UPSERT", write_stats([profile])))
    name = f".f-1_{OLD}.log.1_0-1-2"
    kept = {f"a/{name}", f"a/.f-1_{NEW}.log.1_0-1-2", "a/.f-1_20230101000000000.log.1_0-1-2", "a/.g-1_1.log.1_0-1-2"}
    for path in kept:
        storage.write(path, b"")
    Write(("b",), "deltacommit").run(storage)
    check_voided(storage, tx.instant, name)
    check_clean(storage, besides=kept | {f"a/.f-1_{OLD}.log.2_1-0-1", f"a/.f-1_{NEW}.log.2_1-0-1"})


@pytest.mark.parametrize("version", [6], indirect=True)
def test_log_files_that_were_not_begun(storage: Storage):
    dead = Write(("a",), "deltacommit").leave(storage)
    dead.markers.create("a", log_marker(6, dead.instant)[0], IOType.APPEND)
    Write(("a",), "deltacommit").run(storage)
    check_clean(storage)


def interrupted(
    storage: Storage, plan: RollbackPlan | bytes, *, inflight: bool = False, at: str = "20240101000000005"
) -> Instant:
    """A rollback that somebody else began."""
    content = plan if isinstance(plan, bytes) else plan.encode()
    now = active(storage)
    requested = now.create_requested("rollback", at, content)
    return now.to_inflight(requested) if inflight else requested


@pytest.mark.parametrize("inflight", [False, True])
def test_a_rollback_of_a_moved_table_is_finished(storage: Storage, inflight: bool):
    dead = Write(("a",)).leave(storage)
    file = data_files(storage).pop()
    request = RollbackRequest("a", "f", dead.instant, (f"file:/somewhere/else/{file}",))
    begun = interrupted(storage, RollbackPlan(dead.instant, "commit", (request,)), inflight=inflight)
    Write(("b",)).run(storage)
    check_clean(storage)
    rollbacks = active(storage).timeline.of_actions("rollback")
    assert [i.requested for i in rollbacks] == [begun.requested]


def test_a_rollback_whose_target_has_gone_already(storage: Storage):
    interrupted(storage, RollbackPlan(OLD, "commit"), inflight=True)
    Write().run(storage)
    check_clean(storage)


def test_a_rollback_that_another_process_executes(storage: Storage):
    """Apache Hudi, which has a heartbeat for it, and would fail if it were done already."""
    dead = Write(("a",), options=MULTI_WRITER).leave(storage)
    storage.delete(heartbeat_path(dead.instant))
    begun = interrupted(storage, RollbackPlan(dead.instant, "commit"), inflight=True)
    storage.write(heartbeat_path(begun.requested), b"")
    Write(("b",), options=MULTI_WRITER).run(storage)
    assert {dead.instant, begun.requested} <= set(active(storage).timeline.pending().requested_times)
    storage.delete(heartbeat_path(begun.requested))
    Write(("b",), options=MULTI_WRITER).run(storage)
    check_clean(storage)
    assert [i.requested for i in active(storage).timeline.of_actions("rollback")] == [begun.requested]


def test_a_rollback_that_another_process_executes_beside_a_compaction(tmp_path):
    mor = MorTable(tmp_path / "t", options={**FAST, **MULTI_WRITER})
    mor.load([row("a1", "a", 0, "v0"), row("b1", "b", 0, "v0")])
    mor.delta([row("a1", "a", 1, "v1")])
    timeline = mor.client.active_timeline()
    dead = next_instant(timeline.latest_time)
    timeline.to_inflight(timeline.create_requested("deltacommit", dead, b""), b"{}")
    begun = next_instant(dead)
    timeline.to_inflight(timeline.create_requested("rollback", begun, RollbackPlan(dead, "deltacommit").encode()))
    mor.client.storage.write(heartbeat_path(begun), b"")
    assert mor.table.services.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    assert {dead, begun} <= set(mor.client.active_timeline().timeline.pending().requested_times)


@pytest.mark.parametrize("plan", [b"", b"Obj\x01half", b"{}"])
def test_a_plan_that_was_never_whole(storage: Storage, plan: bytes):
    dead = Write().leave(storage)
    begun = interrupted(storage, plan)
    Write().run(storage)
    check_clean(storage)
    now = active(storage).timeline
    assert begun.requested not in now
    assert dead.instant not in now
    assert len(now.of_actions("rollback")) == 1


def test_a_rollback_of_a_completed_write_is_finished(storage: Storage):
    """As by hudi-cli: the completed file goes too, and first."""
    bad = Write(("a",)).run(storage).instant
    request = RollbackRequest("a", "f", bad.requested, tuple(storage.uri(f) for f in data_files(storage)))
    # without completion times only one that was begun with is known to be meant for the completed write
    plan, inflight = RollbackPlan(bad.requested, "commit", (request,)), bad.completion is None
    interrupted(storage, plan, inflight=inflight, at=next_instant(bad.order_time))
    Write(("b",)).run(storage)
    check_clean(storage)
    assert bad.requested not in active(storage).timeline


def test_a_rollback_of_a_pending_write_that_was_completed_then_is_given_up(storage: Storage):
    """Who announced it died before it could look. The completion is the later one, so the rollback did not mean it."""
    done = Write(("a",)).run(storage).instant
    interrupted(storage, RollbackPlan(done.requested, "commit"), at=next_instant(done.requested))
    Write(("b",)).run(storage)
    check_clean(storage)
    assert done.requested in active(storage).timeline
    assert not active(storage).timeline.of_actions("rollback")


def test_a_plan_with_command_blocks(storage: Storage, version: int):
    """Version 6 does what it says, however it names the file; from version 8 on it is from before an upgrade."""
    name = f".f-1_{OLD}.log.1_0-0-0"
    request = RollbackRequest("a", "f-1", OLD, (), {f"file:/elsewhere/a/{name}": 12})
    interrupted(storage, RollbackPlan(NEW, "deltacommit", (request,)))
    storage.write(f"a/{name}", b"")
    before = sorted(storage.list("", recursive=True)["path"].to_pylist())
    if version >= 8:
        with pytest.raises(UnsupportedTableError, match="upgraded"):
            Write().run(storage)
        assert sorted(storage.list("", recursive=True)["path"].to_pylist()) == before
        return
    Write().run(storage)
    (block,) = scan_blocks(storage.read(f"a/.f-1_{OLD}.log.2_1-0-1"))
    assert (block.is_rollback, block.target_instant) == (True, NEW)
    check_clean(storage, besides={f"a/{name}", f"a/.f-1_{OLD}.log.2_1-0-1"})


@pytest.mark.parametrize("action", ["compaction", "clustering"])
def test_an_attempt_at_a_table_service_leaves_its_plan(storage: Storage, action: str):
    record = (
        {"operationType": "CLUSTER", "clusteringPlan": {"inputGroups": []}}
        if action == "clustering"
        else {"operations": []}
    )
    now = active(storage)
    plan = now.create_requested(action, OLD, encode_record(action, State.REQUESTED, record, 9))
    attempt = now.to_inflight(plan)
    storage.write(f"a/{base_file_name('f', '0-0-0', OLD)}", b"x")
    request = RollbackRequest("a", "f", OLD, (storage.uri(f"a/{base_file_name('f', '0-0-0', OLD)}"),))
    interrupted(storage, RollbackPlan(OLD, attempt.action, (request,)))
    Write(("b",)).run(storage)
    assert [(i.requested, i.state) for i in active(storage).timeline.pending()] == [(OLD, State.REQUESTED)]
    assert not storage.exists(f"a/{base_file_name('f', '0-0-0', OLD)}")


def test_markers_of_finished_writes_are_swept(storage: Storage):
    done = Write().run(storage).instant
    Markers(storage, done.requested).create("a", "x.parquet", IOType.CREATE)
    Write().run(storage)
    check_clean(storage)


def test_rollback_of_a_replacecommit(storage: Storage):
    dead = Write(("a",), "replacecommit", "INSERT_OVERWRITE").leave(storage)
    Write().run(storage)
    check_clean(storage)
    assert dead.instant not in active(storage).timeline


def test_plan_round_trip():
    request = RollbackRequest("a", "f", OLD, ("file:/x/a/b.parquet",), {"l": 3})
    plan = RollbackPlan(OLD, "commit", (request, RollbackRequest("")))
    assert RollbackPlan.decode(plan.encode()) == plan


def test_metadata_of_an_inflight_write_may_be_empty(storage: Storage):
    tx = Write().begin(storage)
    tx.to_inflight()
    Write().run(storage)
    check_clean(storage)
    assert CommitMetadata("UPSERT").stats.num_rows == 0
