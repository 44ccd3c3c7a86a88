"""Locks that are a lease in an object of the table."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from pyhudi.errors import InvalidOptionError, LockError, PreconditionFailedError, StorageError, UnansweredError
from pyhudi.storage import Storage, open_storage
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from pyhudi.transaction.locks.storage_based_lock import LOCK_PATH, Lease, StorageBasedLockProvider
from tests.fault_injection import Fault, FaultyStorage, Killed
from tests.unit.transaction.lock_suite import QUICK
from tests.unit.transaction.locks.lock_leases import lease


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


def leaser(storage: Storage, clock: Clock) -> StorageBasedLockProvider:
    return StorageBasedLockProvider(storage, validity_s=300, renew_s=299, retry_policy=QUICK, clock=clock)


def test_the_object_is_as_apache_hudi_has_it(storage: Storage) -> None:
    clock = Clock()
    one = leaser(storage, clock)
    with one:
        held = lease(storage)
        assert held == {"expired": False, "validUntil": clock.now + 300_000, "owner": held["owner"]}
        assert storage.read(LOCK_PATH).startswith(b'{"expired":false,"validUntil":1700000300000,"owner":"')
    assert lease(storage) == {"expired": True, "validUntil": clock.now, "owner": held["owner"]}
    assert LOCK_PATH == ".hoodie/.locks/table_lock.json"


def test_a_lease_of_somebody_else_runs_out(storage: Storage) -> None:
    clock = Clock()
    storage.create(LOCK_PATH, Lease(False, clock.now + 1000, "a JVM").encode())
    one = leaser(storage, clock)
    assert not one.try_acquire()
    assert "a JVM" in one.describe()
    clock.now += 1499
    assert not one.try_acquire()
    clock.now += 1
    assert one.try_acquire()
    one.release()


def test_an_expired_lease_is_free_at_once(storage: Storage) -> None:
    clock = Clock()
    storage.create(LOCK_PATH, Lease(True, clock.now + 100_000, "a JVM").encode())
    with leaser(storage, clock) as one:
        assert one.held


def test_renewal(storage: Storage) -> None:
    clock = Clock()
    one = leaser(storage, clock)
    with one:
        clock.now += 200_000
        assert one.renew()
        assert lease(storage)["validUntil"] == clock.now + 300_000
        clock.now += 299_500
        with pytest.raises(LockError):
            one.ensure_held()
    assert not one.renew()


def test_a_lease_that_ends_soon_is_renewed_before_a_commit(storage: Storage) -> None:
    """The request of the commit may be sent several times."""
    clock = Clock()
    one = leaser(FaultyStorage(storage, [Fault("replace", 3)]), clock)
    with one:
        clock.now += 140_000
        one.ensure_held()
        assert lease(storage)["validUntil"] == clock.now + 160_000
        clock.now += 20_000
        one.ensure_held()
        assert lease(storage)["validUntil"] == clock.now + 300_000
        clock.now += 200_000
        with pytest.raises(LockError, match=r"could not be renewed.*ends soon"):
            one.ensure_held()
        one.ensure_held()
        storage.write(LOCK_PATH, Lease(False, clock.now + 300_000, "a JVM").encode())
        clock.now += 200_000
        with pytest.raises(LockError, match="no longer held"):
            one.ensure_held()


def test_the_thread_renews(storage: Storage) -> None:
    one = StorageBasedLockProvider(storage, validity_s=60, renew_s=0.02)
    with one:
        first, end = lease(storage)["validUntil"], time.monotonic() + 10
        while lease(storage)["validUntil"] == first:
            assert time.monotonic() < end
            time.sleep(0.01)
        one.ensure_held()


def test_a_lease_whose_thread_cannot_start_is_released(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError, match="can't start"), leaser(storage, Clock()):
            pass
    assert lease(storage)["expired"]
    with leaser(storage, Clock()) as other:
        assert other.held


def test_a_lease_that_was_taken_over_is_lost(storage: Storage, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    one, other = leaser(storage, clock), leaser(storage, clock)
    one.try_acquire()
    clock.now += 300_500
    assert other.try_acquire()
    assert not one.held
    assert not one.renew()
    one.release()
    other.ensure_held()
    assert "lost" in caplog.text
    other.release()
    assert one.try_acquire()
    one.release()


@pytest.mark.parametrize("error", [StorageError, PreconditionFailedError])
def test_answers_that_are_lost(storage: Storage, error: type[StorageError]) -> None:
    faulty = FaultyStorage(storage, [Fault("replace", nth, "after", error) for nth in (1, 2, 3)])
    one = leaser(faulty, Clock())
    assert one.try_acquire()
    assert one.renew()
    one.release()
    assert lease(storage)["expired"] is True


@pytest.mark.parametrize("last", ["renew", "release"])
def test_a_renewal_that_takes_effect_late(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """It is stored after the object has been read again, and has still the same owner."""
    slow = open_storage(tmp_path)
    lock = StorageBasedLockProvider(slow, validity_s=300, renew_s=200)
    assert lock.try_acquire()
    late: list[tuple[str, bytes, str | None]] = []

    def unanswered(path: str, data: bytes, version: str | None) -> str:
        late.append((path, data, version))
        raise UnansweredError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(slow, "replace", unanswered)
        time.sleep(0.005)  # a lease of the same millisecond would be the stored one
        with pytest.raises(UnansweredError):
            lock.renew()
    storage.replace(*late[0])
    if last == "renew":
        assert lock.renew()
        lock.ensure_held()
    lock.release()
    assert StorageBasedLockProvider(storage, validity_s=300, renew_s=200).try_acquire()


def test_requests_that_fail(storage: Storage) -> None:
    with pytest.raises(StorageError):
        leaser(FaultyStorage(storage, [Fault("replace", 1)]), Clock()).try_acquire()
    assert not storage.exists(LOCK_PATH)
    clock = Clock()
    one = leaser(FaultyStorage(storage, [Fault("replace", 2), Fault("replace", 3)]), clock)
    with one:
        clock.now += 1
        with pytest.raises(StorageError):
            one.renew()
        one.ensure_held()
    assert lease(storage)["expired"] is False  # given back by nobody, it runs out


def test_the_dead_do_not_renew(storage: Storage) -> None:
    faulty = FaultyStorage(storage, [Fault("replace", 2, error=Killed)])
    one = StorageBasedLockProvider(faulty, validity_s=2, renew_s=0.01)
    assert one.try_acquire()
    other = StorageBasedLockProvider(storage, retry_policy=QUICK)
    assert not other.try_acquire()
    assert other.acquire(30)
    other.release()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"expired":false}', b'{"expired":0,"validUntil":1,"owner":"x"}'])
def test_a_lock_object_that_cannot_be_read(storage: Storage, data: bytes) -> None:
    storage.write(LOCK_PATH, data)
    one = leaser(storage, Clock())
    with pytest.raises(LockError, match=r"table_lock\.json"):
        one.try_acquire()
    assert "unreadable" in one.describe()
    assert storage.read(LOCK_PATH) == data


def test_options_of_the_lease(storage: Storage) -> None:
    options = {
        "hoodie.write.lock.provider": "StorageBasedLockProvider",
        "hoodie.write.lock.storage.validity.timeout.secs": "40",
        "hoodie.write.lock.storage.renew.interval.secs": "4",
    }
    with make_lock_provider(storage, options):
        left = lease(storage)["validUntil"]
        assert isinstance(left, int)
        assert 39_000 <= left - time.time() * 1000 <= 40_100
    with pytest.raises(InvalidOptionError, match=r"5.*renew.*from 1 to 4, a tenth of"):
        make_lock_provider(storage, {**options, "hoodie.write.lock.storage.renew.interval.secs": "5"})
