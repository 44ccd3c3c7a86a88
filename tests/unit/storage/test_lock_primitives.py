from __future__ import annotations

import threading
import time
from pathlib import Path
from uuid import uuid4

import pytest

from pyhudi.errors import LockError, NotFoundError
from pyhudi.storage import InProcessLock, Lock, host_lock, lock_primitives, open_storage
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.storage.lock_primitives import DeferredReleaseLock, FolderLock
from pyhudi.transaction.locks.lock_provider import LocalLockProvider


@pytest.fixture(params=["folder", "process"])
def locks(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Lock, Lock]:
    if request.param == "folder":
        storage = LocalStorage(tmp_path)
        return FolderLock(storage, "", timeout=0.05), FolderLock(storage, "", timeout=0.05)
    name = str(uuid4())
    return InProcessLock(name, timeout=0.05), InProcessLock(name, timeout=0.05)


def test_exclusion(locks: tuple[Lock, Lock]) -> None:
    one, other = locks
    assert isinstance(one, Lock)
    with one:
        assert not other.acquire(0)
        begun = time.monotonic()
        assert not other.acquire(0.05)
        assert time.monotonic() - begun >= 0.05
        with pytest.raises(LockError, match=r"0\.05 s"), other:
            pass
    assert other.acquire(0)
    other.release()
    other.release()
    assert one.acquire(0)
    one.release()


def test_freed_when_the_block_fails(locks: tuple[Lock, Lock]) -> None:
    one, other = locks
    with pytest.raises(ZeroDivisionError), one:
        raise ZeroDivisionError
    assert other.acquire(0)
    other.release()


def test_threads_take_turns(locks: tuple[Lock, Lock]) -> None:
    inside, most, turns = 0, 0, []

    def work(lock: Lock) -> None:
        nonlocal inside, most
        for _ in range(20):
            while not lock.acquire(5):
                pass
            inside += 1
            most = max(most, inside)
            time.sleep(0.0005)
            inside -= 1
            turns.append(1)
            lock.release()

    threads = [threading.Thread(target=work, args=(lock,)) for lock in (*locks, locks[0])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, len(turns)) == (1, 60)


def test_conditional_replacement_works_under_the_host_lock(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    storage.write(".hoodie/f", b"1")
    with host_lock(storage):
        found = storage.stat(".hoodie/f")
        assert found is not None
        storage.replace(".hoodie/f", b"2", found.version)
    assert storage.read(".hoodie/f") == b"2"


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        host_lock(open_storage(tmp_path), "nope").acquire(0)


def test_who_takes_a_lingering_lock_again_goes_on_holding_it() -> None:
    """Without waiting for the moment at which it would have been given back; others still wait for that."""
    name = str(uuid4())
    lock, other = DeferredReleaseLock(InProcessLock(name)), InProcessLock(name)
    begun = time.monotonic()
    with lock:
        lock.keep_until(begun + 0.5)
    with lock:
        assert time.monotonic() - begun < 0.4
        assert not other.acquire(0)
    assert not other.acquire(0)
    assert other.acquire(5)
    assert time.monotonic() - begun >= 0.5
    other.release()


def test_a_lingering_lock_that_was_lost_is_taken_anew() -> None:
    name = str(uuid4())
    inner, other = InProcessLock(name), InProcessLock(name)
    lock = DeferredReleaseLock(inner)
    with lock:
        lock.keep_until(time.monotonic() + 0.5)
    inner.release()  # as a lease that runs out
    with other:
        threading.Timer(0.05, other.release).start()
        with lock:
            assert inner.held
    assert not inner.held or other.acquire(5)


@pytest.mark.parametrize(
    ("target", "name", "seconds"),
    [(time, "sleep", 0.004), (threading.Thread, "start", 30), (threading.Thread, "join", 30)],
)
def test_an_interrupt_of_a_wait_for_the_release_releases_the_lock(
    locks: tuple[Lock, Lock], monkeypatch: pytest.MonkeyPatch, target: object, name: str, seconds: float
) -> None:
    """Ctrl-C comes while a lock is held for the skew of clocks, while that begins, or while it is taken again."""
    one, other = locks
    lock = DeferredReleaseLock(one)
    real = getattr(target, name)

    def interrupted(*args: object) -> None:
        monkeypatch.setattr(target, name, real)
        if name == "start":
            real(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(target, name, interrupted)

    def use() -> None:
        for _ in range(2):
            with lock:
                lock.keep_until(time.monotonic() + seconds)

    with pytest.raises(KeyboardInterrupt):
        use()
    assert other.acquire(0)
    other.release()
    with lock:
        assert not other.acquire(0)


def test_an_interrupt_before_a_lock_is_noted_as_held_releases_it(tmp_path: Path) -> None:
    class Interrupted(FolderLock):
        def acquire(self, timeout: float) -> bool:
            if super().acquire(timeout):
                raise KeyboardInterrupt
            return False

    storage = LocalStorage(tmp_path)
    with pytest.raises(KeyboardInterrupt), LocalLockProvider(Interrupted(storage, ""), "t"):
        pass
    assert FolderLock(storage, "").acquire(0)


def test_a_folder_that_is_replaced_while_its_lock_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a process that drops a table and creates it again: the lock on the old folder excludes nobody."""
    storage, folder = LocalStorage(tmp_path), tmp_path / "t"
    folder.mkdir()
    holder, waiting, later = (FolderLock(storage, "t") for _ in range(3))
    assert holder.acquire(0)

    def replace_folder(_: float) -> None:
        monkeypatch.undo()
        folder.rmdir()
        folder.mkdir()
        holder.release()

    monkeypatch.setattr(lock_primitives.time, "sleep", replace_folder)
    assert waiting.acquire(60)
    assert not later.acquire(0)
    waiting.release()
    assert later.acquire(0)
    later.release()
