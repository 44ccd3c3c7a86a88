from __future__ import annotations

import pickle
import time
from pathlib import Path

import pytest

from pyhudi.errors import NotFoundError, PreconditionFailedError, StorageError
from pyhudi.storage import Storage, host_lock, open_storage
from pyhudi.storage.lock_primitives import FolderLock
from tests.fault_injection import WRITES, Fault, FaultyStorage, Killed
from tests.unit.storage.suite import StorageTests


class TestFaultyStorageIsTransparent(StorageTests):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return FaultyStorage(open_storage(tmp_path / "t"), [Fault("write", nth=1_000_000)])


def faulty(folder: Path, *faults: Fault) -> FaultyStorage:
    return FaultyStorage(open_storage(folder), faults)


def test_before_and_after(tmp_path: Path) -> None:
    storage = faulty(tmp_path, Fault("create", 1, "before"), Fault("create", 2, "after"))
    with pytest.raises(StorageError, match="injected before create 'a'"):
        storage.create("a", b"1")
    with pytest.raises(StorageError, match="injected after"):
        storage.create("b", b"1")
    storage.create("c", b"1")
    assert sorted(storage.list()["path"].to_pylist()) == ["b", "c"]
    assert storage.operations == [("create", "a"), ("create", "b"), ("create", "c"), ("list", "")]


def test_path_and_error(tmp_path: Path) -> None:
    storage = faulty(tmp_path, Fault("*", 2, error=NotFoundError, path=r"\.commit$"))
    storage.write("1.commit", b"1")
    storage.write("x", b"1")
    with pytest.raises(NotFoundError):
        storage.read("1.commit")
    assert storage.read("1.commit") == b"1"
    with pytest.raises(PreconditionFailedError, match="mine"):
        faulty(tmp_path, Fault("replace", error=PreconditionFailedError("mine"))).replace("y", b"", None)


def test_the_killed_stay_dead(tmp_path: Path) -> None:
    storage = faulty(tmp_path, Fault("writes", 2, "after", Killed))
    storage.write("a", b"1")
    cleaned = False

    def work() -> None:
        nonlocal cleaned
        try:
            storage.delete("a")
        except Exception:
            cleaned = True
        finally:
            storage.write("b", b"1")

    with pytest.raises(Killed):
        work()
    assert not cleaned
    assert storage.inner.list(recursive=True).num_rows == 0
    with pytest.raises(Killed):
        storage.exists("a")


@pytest.mark.parametrize("when", ["before", "after"])
def test_streams(tmp_path: Path, when: str) -> None:
    storage = faulty(tmp_path, Fault("close_output", 1, when))  # type: ignore[arg-type]
    with pytest.raises(StorageError, match="close_output 'f'"), storage.open_output("f") as out:
        out.write(b"1")
    assert storage.exists("f") is (when == "after")
    assert [entry.name for entry in tmp_path.iterdir()] == (["f"] if when == "after" else [])
    assert ("open_output", "f") in storage.operations


def test_every_changing_operation_can_fail(tmp_path: Path) -> None:
    def work(storage: Storage) -> None:
        storage.make_dirs("d")
        storage.write("d/a", b"1")
        storage.set_modified("d/a", 1_000)
        storage.create("d/b", b"1")
        storage.replace("d/c", b"1", None)
        with storage.open_output("d/o") as out:
            out.write(b"1")
        storage.delete("d/a")
        storage.delete_many(["d/b"])
        storage.delete_tree("d")

    learned = faulty(tmp_path)
    work(learned)
    count = sum(name in WRITES for name, _ in learned.operations)
    assert count == len(WRITES) == 9
    for nth in range(1, count + 1):
        for when in ("before", "after"):
            storage = faulty(tmp_path / f"{nth}{when}", Fault("writes", nth, when, Killed))  # type: ignore[arg-type]
            with pytest.raises(Killed):
                work(storage)
            assert sum(name in WRITES for name, _ in storage.operations) == nth


def test_latency(tmp_path: Path) -> None:
    storage = FaultyStorage(open_storage(tmp_path), latency=0.001, latencies={"read": 0.05})
    storage.write("a", b"1")
    begun = time.perf_counter()
    storage.read("a")
    assert time.perf_counter() - begun >= 0.05


def test_a_copy_counts_anew(tmp_path: Path) -> None:
    storage = faulty(tmp_path, Fault("write", 2))
    storage.write("a", b"1")
    copy = pickle.loads(pickle.dumps(storage))
    copy.write("a", b"1")
    for each in (storage, copy):
        with pytest.raises(StorageError):
            each.write("a", b"1")


def test_the_host_lock_is_that_of_the_storage_inside(tmp_path: Path) -> None:
    assert isinstance(host_lock(FaultyStorage(faulty(tmp_path)), ""), FolderLock)
