"""Locks in DynamoDB, with a server."""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from pyhudi.errors import LockError
from pyhudi.storage import open_storage
from pyhudi.transaction.commit_outcome import Committed
from pyhudi.transaction.locks.dynamodb.dynamodb_client import DynamoDbEndpoint
from pyhudi.transaction.locks.dynamodb.dynamodb_lock import DynamoDBBasedLockProvider, time_with_suspension
from pyhudi.transaction.locks.dynamodb.dynamodb_lock_table import DynamoDbLockTable
from tests.dynamodb_server import CREDENTIALS, DynamoDbServer
from tests.processes import run_together, separate_processes
from tests.unit.transaction.lock_suite import LockProviderTests, Owners
from tests.unit.transaction.locks.dynamodb.dynamodb_locks import TABLE, lock_of, options_of, stored
from tests.unit.transaction.tables import MULTI_WRITER, Write, active, check_clean, make_table

LEASE_S = 0.45


def left_by(server: DynamoDbServer, key: str, owner: str, lease_ms: int, **more: str) -> dict[str, dict[str, str]]:
    """Store an item as the client of Apache Hudi does."""
    texts = {"key": key, "ownerName": owner, "leaseDuration": str(lease_ms), "recordVersionNumber": str(uuid4())}
    item = {name: {"S": text} for name, text in {**texts, **more}.items()}
    server.client.put_item(TableName=TABLE, Item=item)
    return item


def forget(lock: DynamoDBBasedLockProvider) -> None:
    """End the heartbeats, as the death of the process does."""
    assert lock._heartbeat is not None
    lock._heartbeat.end()


class TestDynamoDb(LockProviderTests):
    heartbeat_s = 20.0

    @pytest.fixture
    def owners(self, server: DynamoDbServer, key: str) -> Iterator[Owners]:
        made: list[DynamoDBBasedLockProvider] = []

        def owner() -> DynamoDBBasedLockProvider:
            made.append(lock_of(server, key))
            made[-1]._heartbeat_s = self.heartbeat_s
            return made[-1]

        yield owner
        for lock in made:
            lock.release()


class TestQuickHeartbeats(TestDynamoDb):
    heartbeat_s = 0.01


def test_items_are_those_of_the_lock_client_of_aws(server: DynamoDbServer, key: str) -> None:
    """Attributes and types as Apache Hudi's writers store them (measured with the lock client 1.2.0 of AWS)."""
    with lock_of(server, key, lease_s=60):
        item = stored(server, key)
        assert item is not None
        owner, version = item["ownerName"]["S"], item["recordVersionNumber"]["S"]
        assert item == {
            "key": {"S": key},
            "ownerName": {"S": owner},
            "leaseDuration": {"S": "60000"},
            "recordVersionNumber": {"S": str(UUID(version))},
        }
        assert f"pyhudi on {socket.gethostname()}, process {os.getpid()}" in owner
    assert stored(server, key) is None


def test_heartbeats_change_the_version_only(server: DynamoDbServer, key: str) -> None:
    lock = lock_of(server, key)
    with lock:
        before = stored(server, key)
        assert lock.renew()
        after = stored(server, key)
        assert before is not None
        assert after is not None
        assert before.pop("recordVersionNumber") != after.pop("recordVersionNumber")
        assert before == after


@pytest.mark.parametrize("released", [True, False])
def test_items_that_were_released_and_kept_are_free(server: DynamoDbServer, key: str, released: bool) -> None:
    with lock_of(server, key):  # creates the table
        pass
    left_by(server, key, "host", 60_000, **({"isReleased": "1"} if released else {}))
    lock = lock_of(server, key)
    assert lock.try_acquire() is released
    assert ("isReleased" in (stored(server, key) or {})) is False
    lock.release()


def test_items_that_are_no_locks_are_refused(server: DynamoDbServer, key: str) -> None:
    with lock_of(server, key):
        pass
    server.client.put_item(TableName=TABLE, Item={"key": {"S": key}, "ownerName": {"S": "x"}})
    with pytest.raises(LockError, match=r"other attributes than those of a lock .*leaseDuration.*remove it"):
        lock_of(server, key).try_acquire()


def test_locks_without_heartbeats_are_taken_over_after_their_lease(server: DynamoDbServer, key: str) -> None:
    with lock_of(server, key):
        pass
    left_by(server, key, "a host that is no more", int(LEASE_S * 1000))
    lock = lock_of(server, key)
    begun = time.monotonic()
    assert not lock.try_acquire()
    assert lock.acquire(10)
    assert time.monotonic() - begun >= LEASE_S
    lock.ensure_held()
    lock.release()


def test_who_waits_for_half_of_a_lease_waits_for_its_end(server: DynamoDbServer, key: str) -> None:
    """Otherwise no one who waits for less than the lease would take over."""
    with lock_of(server, key):
        pass
    lease_s = 3 * LEASE_S  # long enough that a slow machine does not wait for half of it in the first attempt
    left_by(server, key, "a host that is no more", int(lease_s * 1000))
    lock = lock_of(server, key)
    assert not lock.acquire(lease_s * 0.1)
    assert lock.acquire(lease_s * 0.5)
    lock.release()


def test_locks_with_heartbeats_are_not_taken_over(server: DynamoDbServer, key: str) -> None:
    one, other = lock_of(server, key, lease_s=LEASE_S), lock_of(server, key)
    with one:
        assert not other.acquire(2 * LEASE_S)
        one.ensure_held()
        assert one.held


def test_owners_notice_that_their_lock_was_taken_over(server: DynamoDbServer, key: str) -> None:
    one, other = lock_of(server, key, lease_s=LEASE_S), lock_of(server, key)
    assert one.try_acquire()
    forget(one)
    assert other.acquire(10)
    item = stored(server, key)
    assert not one.held
    with pytest.raises(LockError, match=r"held by: .*is no longer held; another writer may hold it"):
        one.ensure_held()
    one.release()
    assert stored(server, key) == item
    assert not one.try_acquire()
    other.release()
    assert one.try_acquire()
    one.release()


def test_heartbeats_end_when_the_lock_is_lost(
    server: DynamoDbServer, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    lock = lock_of(server, key, lease_s=LEASE_S)
    assert lock.try_acquire()
    left_by(server, key, "a user", 60_000)
    assert lock._heartbeat is not None
    lock._heartbeat._thread.join(10)
    assert "lost: lock" in caplog.text
    assert not lock.held
    lock.release()
    assert (stored(server, key) or {})["ownerName"] == {"S": "a user"}


def test_release_keeps_what_others_have_put(server: DynamoDbServer, key: str, caplog: pytest.LogCaptureFixture) -> None:
    lock = lock_of(server, key)
    with lock:
        item = left_by(server, key, "a user", 60_000)
    assert stored(server, key) == item
    assert "lost before it was released" in caplog.text


def test_a_late_owner_goes_on_if_nobody_has_taken_over(
    server: DynamoDbServer, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one whose machine was suspended."""
    lock = lock_of(server, key)
    with lock:
        now = time_with_suspension() + 3600
        monkeypatch.setattr("pyhudi.transaction.locks.dynamodb.dynamodb_lock.time_with_suspension", lambda: now)
        assert not lock.held
        lock.ensure_held()
        assert lock.held


def test_wall_clocks_do_not_count(server: DynamoDbServer, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = lock_of(server, key), lock_of(server, key)
    with one:
        assert not other.try_acquire()
        later = time.time() + 86_400
        monkeypatch.setattr(time, "time", lambda: later)
        monkeypatch.setattr(time, "time_ns", lambda: int(later * 1e9))
        assert one.held
        assert not other.try_acquire()


def _hold(endpoint: str, key: str, held: Any) -> None:
    lock = DynamoDBBasedLockProvider(
        DynamoDbLockTable(TABLE, DynamoDbEndpoint(url=endpoint, credentials=CREDENTIALS)), key
    )
    assert lock.acquire(5)
    held.set()
    time.sleep(600)


def test_owners_that_are_killed(server: DynamoDbServer, key: str, caplog: pytest.LogCaptureFixture) -> None:
    """A process of this machine that is dead need not be waited for."""
    context = separate_processes()
    held = context.Event()
    process = context.Process(target=_hold, args=(server.endpoint, key, held))
    process.start()
    assert held.wait(60)
    lock = lock_of(server, key)
    assert not lock.try_acquire()
    process.kill()
    process.join()
    assert lock.acquire(10)
    assert "from a dead writer" in caplog.text
    lock.release()


WRITERS, WRITES = 3, 2


def _work(uri: str, options: dict[str, str]) -> None:
    write = Write(("all",), options=MULTI_WRITER | options, file_ids={"all": "F-all"})
    storage = open_storage(uri, {"pyhudi.storage.fsync": "none"})
    committed = 0
    while committed < WRITES:
        tx = write.begin(storage)
        committed += isinstance(tx.commit(write.write_files(tx)), Committed)


def test_writers_in_several_processes(server: DynamoDbServer, tmp_path: Path) -> None:
    """Each adds to the same file group."""
    storage = open_storage(tmp_path)
    make_table(storage, 9)
    context = separate_processes()
    options = options_of(server, partition_key=str(uuid4())) | {"hoodie.write.lock.wait_time_ms_between_retry": "20"}
    processes = [context.Process(target=_work, args=(tmp_path.as_uri(), options)) for _ in range(WRITERS)]
    run_together(processes)
    check_clean(storage)
    writes = active(storage).timeline.writes()
    assert len(writes) == WRITERS * WRITES
    spans = sorted((i.completion or "", i.requested) for i in writes)
    assert all(later[1] > earlier[0] for earlier, later in itertools.pairwise(spans))


def test_a_write_whose_lock_is_lost_is_not_committed(
    server: DynamoDbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(tmp_path)
    make_table(storage, 9)
    key = str(uuid4())
    write = Write(options=MULTI_WRITER | options_of(server, table=TABLE, partition_key=key))
    tx = write.begin(storage)
    files = write.write_files(tx)
    check = DynamoDBBasedLockProvider.ensure_held

    def lose(lock: DynamoDBBasedLockProvider) -> None:
        left_by(server, key, "a writer that took over", 60_000)
        check(lock)

    monkeypatch.setattr(DynamoDBBasedLockProvider, "ensure_held", lose)
    with pytest.raises(LockError, match="nothing may be committed"):
        tx.commit(files)
    assert not active(storage).timeline.writes().completed()
