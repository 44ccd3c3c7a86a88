from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from pyhudi.errors import (
    AlreadyExistsError,
    ConflictError,
    InstantNotFoundError,
    InvalidOptionError,
    NonRetryableConflictError,
    StorageError,
    TransactionError,
)
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.action_avro import decode_record, encode_record
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.heartbeat import heartbeat_path
from pyhudi.timeline.instant import Instant, State
from pyhudi.timeline.markers import IOType
from pyhudi.transaction.commit_conditions import CommitConditions
from pyhudi.transaction.commit_outcome import Committed, Conflicted
from pyhudi.transaction.transaction import Transaction
from tests.fault_injection import Fault, FaultyStorage
from tests.unit.transaction.tables import (
    MULTI_WRITER,
    OPTIONS,
    Write,
    active,
    add_metadata_table,
    check_clean,
    client,
    data_files,
    make_table,
)


def snapshot(storage: Storage) -> dict[str, bytes]:
    return {path: storage.read(path) for path in storage.list("", recursive=True)["path"].to_pylist()}


def test_a_commit(storage: Storage, version: int):
    write = Write()
    tx = write.begin(storage)
    assert not tx.timeline
    outcome = tx.commit(write.write_files(tx))
    assert isinstance(outcome, Committed)
    assert (outcome.completion is None) == (version == 6)
    check_clean(storage)
    now = active(storage)
    done = now.timeline.last
    assert done == outcome.instant
    assert done is not None
    assert done.requested == tx.instant
    assert now.commit_metadata(done).stats.num_rows == 2
    assert now.read_state(done, State.REQUESTED) == b""


@pytest.mark.parametrize("error", [StorageError, AlreadyExistsError])
def test_a_commit_whose_answer_was_lost(storage: Storage, error: type[StorageError]):
    """The file was made, and the network, or a retry that met it, says otherwise."""
    lost = FaultyStorage(storage, [Fault("create", 1, "after", error, path=r"\d\.commit$")])
    assert isinstance(Write().run(lost), Committed)
    check_clean(storage)


def test_a_write_that_cannot_be_rolled_back_gives_no_more_signs_of_life(storage: Storage):
    """Else no other writer would ever take it for dead, as long as this process lives."""
    write = Write(options=MULTI_WRITER)
    full = FaultyStorage(storage, [Fault("create", path=r"rollback\.requested$")])
    tx = write.begin(full)

    def fail() -> None:
        with tx:
            write.write_files(tx)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not storage.exists(heartbeat_path(tx.instant))
    assert not [t for t in threading.enumerate() if t.name.endswith(tx.instant)]
    write.run(storage)
    check_clean(storage)


def test_instants_follow_each_other(storage: Storage):
    first, second = Write().run(storage), Write().run(storage)
    assert first.instant.order_time < second.instant.requested
    check_clean(storage)


def test_files_of_retried_tasks_go(storage: Storage):
    outcome = Write(retried="0-0-1").run(storage)
    check_clean(storage)
    assert len(data_files(storage)) == 2
    assert all("_0-1-2_" in path for path in data_files(storage))
    assert outcome.instant.is_completed


def test_change_data_files_are_not_taken_for_leftovers(storage: Storage):
    write = Write(("a",))
    tx = write.begin(storage)
    metadata = write.write_files(tx)
    cdc = f".f0-{tx.instant}_{tx.instant}.log.1_0-1-2.cdc"
    tx.markers.create("a", cdc, IOType.CREATE)
    storage.write(f"a/{cdc}", b"x")
    rows = metadata.stats.to_pylist()
    rows[0]["cdcStats"] = {f"a/{cdc}": 1}
    tx.commit(CommitMetadata("UPSERT", write_stats(rows), metadata.extra))
    assert storage.exists(f"a/{cdc}")


def test_change_data_files_of_a_dead_writer_go(storage: Storage):
    Write().run(storage)
    dead = Write(("a",)).leave(storage)
    cdc = f".f0-{dead.instant}_{dead.instant}.log.1_0-1-2.cdc"
    dead.markers.create("a", cdc, IOType.CREATE)
    storage.write(f"a/{cdc}", b"x")
    Write().run(storage)
    check_clean(storage)
    assert not storage.exists(f"a/{cdc}")


def test_a_replacecommit(storage: Storage):
    old = Write(("a",), file_ids={"a": "old"}).run(storage)
    write = Write(("a",), "replacecommit", "INSERT_OVERWRITE", replaced=(("a", "old"),))
    done = write.run(storage).instant
    now = active(storage)
    plan = decode_record("replacecommit", State.REQUESTED, now.read_state(done, State.REQUESTED))
    assert set(plan.values()) == {None}
    replaced = now.commit_metadata(done).replaced
    assert replaced is not None
    assert replaced.to_pylist() == [{"partition": "a", "file_id": "old"}]
    assert old.instant.requested < done.requested


def test_a_replacecommit_that_replaces_nothing_says_so(storage: Storage):
    done = Write(("a",), "replacecommit", "INSERT_OVERWRITE").run(storage).instant
    replaced = active(storage).commit_metadata(done).replaced
    assert replaced is not None
    assert replaced.num_rows == 0


def test_abort(storage: Storage):
    Write().run(storage)
    before = data_files(storage)
    tx = Write().leave(storage)
    assert data_files(storage) > before
    tx.abort()
    tx.abort()
    check_clean(storage)
    assert data_files(storage) == before
    rollbacks = active(storage).timeline.of_actions("rollback")
    assert len(rollbacks) == 1
    with pytest.raises(TransactionError):
        tx.commit(CommitMetadata("UPSERT"))


def test_a_with_block_aborts_what_was_not_committed(storage: Storage):
    def fail() -> None:
        with Write().begin(storage) as tx:
            Write().write_files(tx)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    check_clean(storage)
    with Write().begin(storage):
        pass
    check_clean(storage)
    write = Write()
    with write.begin(storage) as tx:
        tx.commit(write.write_files(tx))
    check_clean(storage)
    assert len(active(storage).timeline.writes()) == 1


def test_a_with_block_tells_that_it_was_begun(storage: Storage):
    """Whoever meets an instant that was archived before that begins again, which must not be after it."""
    write = Write()

    def fail() -> None:
        with write.begin(storage) as tx:
            write.write_files(tx)
            raise InstantNotFoundError("the commit was archived")

    with pytest.raises(TransactionError, match="not committed: the commit was archived"):
        fail()
    check_clean(storage)
    assert not data_files(storage)


def test_commit_before_inflight_is_refused(storage: Storage):
    with Write().begin(storage) as tx, pytest.raises(TransactionError, match="inflight"):
        tx.commit(CommitMetadata("UPSERT"))


def test_the_next_writer_rolls_back_a_dead_one(storage: Storage):
    Write().run(storage)
    dead = Write().leave(storage)
    done = Write().run(storage)
    check_clean(storage)
    timeline = active(storage).timeline
    assert dead.instant not in timeline
    assert [i.action for i in timeline] == ["commit", "rollback", "commit"]
    assert timeline.last == done.instant


def test_a_dead_writer_that_only_announced_itself(storage: Storage):
    Write().begin(storage)
    Write().run(storage)
    check_clean(storage)


class TestSeveralWriters:
    def test_different_file_groups(self, storage: Storage):
        Write(file_ids={"a": "A", "b": "B"}).run(storage)
        one, two = (Write((p,), options=MULTI_WRITER, file_ids={p: p.upper()}) for p in "ab")
        first, second = one.begin(storage), two.begin(storage)
        assert isinstance(second.commit(two.write_files(second)), Committed)
        assert isinstance(first.commit(one.write_files(first)), Committed)
        check_clean(storage)
        assert len(active(storage).timeline.writes()) == 3

    def test_the_same_file_group(self, storage: Storage):
        Write(("a",), file_ids={"a": "A"}).run(storage)
        write = Write(("a",), options=MULTI_WRITER, file_ids={"a": "A"})
        first, second = write.begin(storage), write.begin(storage)
        winner = second.commit(write.write_files(second))
        assert isinstance(winner, Committed)
        loser = first.commit(write.write_files(first))
        assert isinstance(loser, Conflicted)
        assert loser.other == winner.instant
        assert "'A'" in loser.reason
        with pytest.raises(ConflictError, match="can be run again"):
            raise loser.error()
        check_clean(storage)
        assert first.instant not in active(storage).timeline

    def test_a_write_that_another_writer_has_committed(self, storage: Storage):
        one, two = (Write(("a",), options=MULTI_WRITER, file_ids={"a": name}) for name in "AB")
        first, second = one.begin(storage), two.begin(storage)
        winner = second.commit(two.write_files(second))
        conditions = CommitConditions(already_committed=lambda now: now.timeline.writes().completed().last)
        loser = first.commit(one.write_files(first), conditions=conditions)
        assert isinstance(winner, Committed)
        assert isinstance(loser, Conflicted)
        assert loser.other == winner.instant
        assert isinstance(loser.error(), NonRetryableConflictError)
        check_clean(storage)
        assert first.instant not in active(storage).timeline

    def test_a_replaced_file_group(self, storage: Storage):
        Write(("a",), file_ids={"a": "A"}).run(storage)
        update = Write(("a",), options=MULTI_WRITER, file_ids={"a": "A"})
        overwrite = Write(("a",), "replacecommit", "INSERT_OVERWRITE", options=MULTI_WRITER, replaced=(("a", "A"),))
        first, second = update.begin(storage), overwrite.begin(storage)
        assert isinstance(second.commit(overwrite.write_files(second)), Committed)
        assert isinstance(first.commit(update.write_files(first)), Conflicted)
        check_clean(storage)

    def test_the_living_are_left_alone(self, storage: Storage):
        write = Write(options=MULTI_WRITER)
        living = write.begin(storage)
        metadata = write.write_files(living)
        assert storage.exists(heartbeat_path(living.instant))
        Write(options=MULTI_WRITER).run(storage)
        assert isinstance(living.commit(metadata), Committed)
        check_clean(storage)

    def test_the_dead_are_not(self, storage: Storage, tmp_path: Path):
        dead = Write(options=MULTI_WRITER).leave(storage)
        beat = tmp_path / heartbeat_path(dead.instant)
        past = time.time() - 3600
        os.utime(beat, (past, past))
        Write(options=MULTI_WRITER).run(storage)
        assert dead.instant not in active(storage).timeline
        with pytest.raises(ConflictError, match="rolled it back"):
            dead.commit(CommitMetadata("UPSERT"))
        dead.abort()
        check_clean(storage)

    def test_never(self, storage: Storage):
        dead = Write().leave(storage)
        Write(options=OPTIONS | {"hoodie.clean.failed.writes.policy": "NEVER"}).run(storage)
        assert dead.instant in active(storage).timeline
        Write().run(storage)
        check_clean(storage)

    def test_an_unknown_policy(self, storage: Storage):
        before = snapshot(storage)
        with pytest.raises(InvalidOptionError, match="EAGER, LAZY, NEVER"):
            Write(options=OPTIONS | {"hoodie.clean.failed.writes.policy": "sometimes"}).begin(storage)
        assert snapshot(storage) == before


def plan_clustering(storage: Storage, requested: str, partition: str, file_id: str) -> Instant:
    slices = [{"partitionPath": partition, "fileId": file_id, "dataFilePath": "x", "deltaFilePaths": []}]
    record = {"operationType": "CLUSTER", "clusteringPlan": {"inputGroups": [{"slices": slices}]}}
    content = encode_record("clustering", State.REQUESTED, record, 9)
    return active(storage).create_requested("clustering", requested, content)


def test_a_pending_clustering_of_the_same_group(storage: Storage):
    Write(("a",), file_ids={"a": "A"}).run(storage)
    write = Write(("a",), file_ids={"a": "A"})
    tx = write.begin(storage)
    metadata = write.write_files(tx)
    planned = plan_clustering(storage, "29990101000000000", "a", "A")
    outcome = tx.commit(metadata)
    assert isinstance(outcome, Conflicted)
    assert outcome.other == planned
    assert [i.requested for i in active(storage).timeline.pending()] == [planned.requested]


def test_a_pending_clustering_is_not_a_failed_write(storage: Storage):
    Write(("a",), file_ids={"a": "A"}).run(storage)
    planned = plan_clustering(storage, "20240101000000000", "a", "A")
    active(storage).to_inflight(planned)
    Write(("b",)).run(storage)
    assert [i.requested for i in active(storage).timeline.pending()] == [planned.requested]


def test_a_pending_restore_is_refused(storage: Storage):
    Write().run(storage)
    active(storage).create_requested("restore", "20240101000000000", b"plan")
    before = snapshot(storage)
    with pytest.raises(TransactionError, match="restore"):
        Write().begin(storage)
    assert snapshot(storage) == before


def test_a_table_that_was_upgraded_meanwhile(storage: Storage, version: int):
    write = Write()
    tx = write.begin(storage)
    metadata = write.write_files(tx)
    other = {"hoodie.table.version": "9" if version == 8 else "8", "hoodie.timeline.layout.version": "2"}
    TableConfig.load(storage).updated(storage, set=other)
    with pytest.raises(TransactionError, match="open it again"):
        tx.commit(metadata)
    stale = client(storage)
    make_table(storage, version)
    with pytest.raises(TransactionError, match="open it again"):
        Transaction.begin(stale, "commit", "UPSERT", OPTIONS)


class TestMetadataTable:
    def test_it_is_out_of_use_before_anything_is_written(self, storage: Storage):
        add_metadata_table(storage)
        tx = Write().begin(storage)
        config = TableConfig.load(storage)
        assert not config.properties.get("hoodie.table.metadata.partitions")
        assert tx.config == config
        assert storage.list(".hoodie/metadata", recursive=True).num_rows == 0

    def test_one_that_was_built_meanwhile(self, storage: Storage):
        write = Write()
        tx = write.begin(storage)
        metadata = write.write_files(tx)
        add_metadata_table(storage)
        tx.commit(metadata)
        assert not TableConfig.load(storage).properties.get("hoodie.table.metadata.partitions")
        assert storage.list(".hoodie/metadata", recursive=True).num_rows == 0
        check_clean(storage)
