"""Common tests of storage backends. The tests of a backend subclass :class:`StorageTests` and provide a ``storage``
fixture."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import AlreadyExistsError, NotFoundError, PreconditionFailedError, StorageError
from pyhudi.storage import FileStat, Storage, open_storage
from pyhudi.storage.storage_protocol import LISTING_SCHEMA

#: names that real tables have, and some that only malice has
AWKWARD = [
    "day=2024-01-02/f.parquet",
    "q%2Fw%3Ae%3Dr é+%25/f.parquet",
    "__HIVE_DEFAULT_PARTITION__/f.parquet",
    "with blank/ümläut/日本.parquet",
    "plus+and&semi;comma,at@dollar$/f'quote\".txt",
    "brackets[1]{2}(3)/hash#question?star*.txt",
    "back\\slash|pipe^caret~tilde`tick<lt>gt",
    ".hidden_0-1-2_20240101000000000.log.1_0-1-2",
    "2024/01/05/f",
]


def race(count: int, work: Callable[[int], str]) -> list[str]:
    """Run ``work`` in many threads that start at the same time; return the results."""
    gate = threading.Barrier(count)

    def run(number: int) -> str:
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def write_and_fail(storage: Storage, path: str, data: bytes) -> None:
    """Write to a stream and fail before the end."""
    with storage.open_output(path) as out:
        out.write(data)
        raise ZeroDivisionError


class StorageTests:
    """Behaviour common to all backends. ``storage`` must be empty at the start of each test."""

    @pytest.fixture
    def storage(self) -> Storage:
        raise AssertionError("a backend's tests give a storage fixture")

    # -- whole contents --------------------------------------------------------------------------------------------

    def test_is_a_storage(self, storage: Storage) -> None:
        assert isinstance(storage, Storage)

    @pytest.mark.parametrize("data", [b"", b"x", os.urandom(300_000)], ids=["empty", "one", "many"])
    def test_write_then_read(self, storage: Storage, data: bytes) -> None:
        storage.write("a/b/c.bin", data)
        assert storage.read("a/b/c.bin") == data
        storage.write("a/b/c.bin", b"second")
        assert storage.read("a/b/c.bin") == b"second"

    @pytest.mark.parametrize("data", [b"", b"content"], ids=["empty", "content"])
    def test_create_only_once(self, storage: Storage, data: bytes) -> None:
        storage.create("t/1.commit", data)
        with pytest.raises(AlreadyExistsError, match=r"1\.commit"):
            storage.create("t/1.commit", b"other")
        with pytest.raises(FileExistsError):
            storage.create("t/1.commit", b"")
        assert storage.read("t/1.commit") == data

    def test_create_again_after_delete(self, storage: Storage) -> None:
        storage.create("a", b"1")
        storage.delete("a")
        storage.create("a", b"2")
        assert storage.read("a") == b"2"

    def test_missing(self, storage: Storage) -> None:
        storage.write("folder/file", b"1")
        for path in ("nope", "folder/nope", "nope/nope"):
            with pytest.raises(NotFoundError, match="nope"):
                storage.read(path)
            with pytest.raises(FileNotFoundError):
                storage.read_range(path, 0, 1)
            with pytest.raises(NotFoundError):
                storage.open_input(path)
            assert storage.stat(path) is None
            assert not storage.exists(path)
            storage.delete(path)

    def test_a_folder_is_no_file(self, storage: Storage) -> None:
        storage.write("folder/file", b"1")
        assert storage.stat("folder") is None
        assert not storage.exists("folder")
        with pytest.raises(NotFoundError):
            storage.read("folder")

    def test_read_range(self, storage: Storage) -> None:
        storage.write("f", b"0123456789")
        assert storage.read_range("f", 2, 3) == b"234"
        assert storage.read_range("f", 8, 10) == b"89"
        assert storage.read_range("f", 10, 5) == b""
        assert storage.read_range("f", 99, 5) == b""
        assert storage.read_range("f", 3, 0) == b""

    def test_stat(self, storage: Storage) -> None:
        before = time.time() * 1000
        storage.write("d/f", b"12345")
        found = storage.stat("d/f")
        assert isinstance(found, FileStat)
        assert (found.path, found.size) == ("d/f", 5)
        assert before - 2000 <= found.mtime_ms <= time.time() * 1000 + 2000
        assert storage.stat("d/f") == found

    # -- conditional replacement -----------------------------------------------------------------------------------

    def test_replace(self, storage: Storage) -> None:
        first = storage.replace("l/lock", b"1", None)
        found = storage.stat("l/lock")
        assert found is not None
        assert found.version == first
        second = storage.replace("l/lock", b"2", first)
        assert second != first
        with pytest.raises(PreconditionFailedError, match="lock"):
            storage.replace("l/lock", b"3", first)
        with pytest.raises(PreconditionFailedError):
            storage.replace("l/lock", b"3", None)
        assert storage.read("l/lock") == b"2"
        assert storage.replace("l/lock", b"3", second) not in (first, second)
        assert storage.read("l/lock") == b"3"

    def test_replace_what_is_gone(self, storage: Storage) -> None:
        version = storage.replace("lock", b"1", None)
        storage.delete("lock")
        with pytest.raises(PreconditionFailedError):
            storage.replace("lock", b"2", version)
        assert not storage.exists("lock")

    def test_every_change_has_its_own_version(self, storage: Storage) -> None:
        version, seen = storage.replace("v", b"0", None), set()
        for number in range(1, 30):
            seen.add(version)
            version = storage.replace("v", b"%d" % (number % 10) + b"%03d" % number, version)
        assert len(seen | {version}) == 30

    # -- races -----------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("size", [0, 100_000], ids=["empty", "content"])
    def test_one_creator_wins(self, storage: Storage, size: int) -> None:
        def create(number: int) -> str:
            try:
                storage.create(f"t/{attempt}", b"%d" % number * size)
            except AlreadyExistsError:
                return "lost"
            return f"won {number}"

        for attempt in range(3):
            won = [answer for answer in race(8, create) if answer != "lost"]
            assert len(won) == 1
            if size:
                assert storage.read(f"t/{attempt}") == won[0].removeprefix("won ").encode() * size

    def test_counting_with_replace(self, storage: Storage) -> None:
        storage.write("counter", b"0")

        def count(_: int) -> str:
            done = 0
            while done < 5:
                found = storage.stat("counter")
                assert found is not None
                value = int(storage.read("counter"))
                try:
                    storage.replace("counter", b"%d" % (value + 1), found.version)
                except PreconditionFailedError:
                    continue
                done += 1
            return ""

        race(4, count)
        assert storage.read("counter") == b"20"

    def test_no_reader_sees_a_part(self, storage: Storage) -> None:
        contents = [bytes([65 + number]) * 400_000 for number in range(3)]
        storage.write("f", contents[0])
        stop = threading.Event()
        bad: list[int] = []

        def watch() -> None:
            while not stop.is_set():
                seen = storage.read("f")
                if seen not in contents:
                    bad.append(len(seen))

        watcher = threading.Thread(target=watch)
        watcher.start()
        for number in range(12):
            storage.write("f", contents[number % 3])
        stop.set()
        watcher.join()
        assert not bad

    # -- listing ---------------------------------------------------------------------------------------------------

    def test_list(self, storage: Storage) -> None:
        for path, size in [("a", 1), ("d/b", 2), ("d/e/c", 3), ("d2/x", 4), ("d/empty.txt", 0), ("d/noext", 0)]:
            storage.write(path, b"x" * size)

        def listed(path: str = "", *, recursive: bool = False) -> dict[str, int]:
            table = storage.list(path, recursive=recursive)
            assert table.schema.equals(LISTING_SCHEMA)
            return dict(zip(table["path"].to_pylist(), table["size"].to_pylist(), strict=True))

        assert listed() == {"a": 1}
        assert listed("d") == {"d/b": 2, "d/empty.txt": 0, "d/noext": 0}
        assert listed("d", recursive=True) == {"d/b": 2, "d/e/c": 3, "d/empty.txt": 0, "d/noext": 0}
        assert listed(recursive=True) == listed("d", recursive=True) | {"a": 1, "d2/x": 4}
        assert listed("nope") == listed("nope", recursive=True) == listed("a") == listed("a", recursive=True) == {}
        assert storage.list_dirs() == ["d", "d2"]
        assert storage.list_dirs("d") == ["e"]
        assert storage.list_dirs("nope") == []
        assert storage.list_dirs("a") == []

    def test_listing_has_times(self, storage: Storage) -> None:
        storage.write("d/f", b"1")
        found = storage.stat("d/f")
        assert found is not None
        # a listing may be coarser than a request for one object
        assert abs(storage.list("d")["mtime_ms"][0].as_py() - found.mtime_ms) <= 1000

    def test_listing_many(self, storage: Storage) -> None:
        race(8, lambda worker: [storage.create(f"m/{worker}/{n:03d}.txt", b"") for n in range(30)] and "")
        assert storage.list("m", recursive=True).num_rows == 240
        assert storage.list("m/3").num_rows == 30
        storage.delete_many(f"m/{worker}/{n:03d}.txt" for worker in range(8) for n in range(0, 30, 2))
        assert storage.list("m", recursive=True).num_rows == 120

    def test_set_modified_changes_at_most_the_time(self, storage: Storage) -> None:
        storage.write("a", b"1")
        storage.set_modified("a", 1_700_000_000_123)
        found = storage.stat("a")
        assert found is not None
        assert storage.read("a") == b"1"
        assert found.mtime_ms == 1_700_000_000_123 or not storage.root.startswith("file:")

    def test_make_dirs_shows_no_file(self, storage: Storage) -> None:
        storage.make_dirs(".hoodie/timeline/history")
        storage.make_dirs(".hoodie/timeline/history")
        assert storage.list(recursive=True).num_rows == 0
        storage.create(".hoodie/timeline/history/_version_", b"1")
        assert storage.list(recursive=True)["path"].to_pylist() == [".hoodie/timeline/history/_version_"]

    # -- names -----------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("path", AWKWARD)
    def test_names_are_literal(self, storage: Storage, path: str) -> None:
        storage.create(path, b"1")
        assert storage.read(path) == b"1"
        assert storage.stat(path) is not None
        assert storage.list(recursive=True)["path"].to_pylist() == [path]
        folder, _, _ = path.rpartition("/")
        assert storage.list(folder)["path"].to_pylist() == [path]
        assert storage.list_dirs("") == ([path.split("/")[0]] if folder else [])
        assert storage.uri(path).endswith("/" + path)
        with storage.open_output(path) as out:
            out.write(b"22")
        assert storage.open_input(path).read() == b"22"
        storage.delete_many([path])
        assert storage.list(recursive=True).num_rows == 0

    @pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "a/./b", ".", "..", "a\x00b"])
    def test_paths_cannot_leave_the_root(self, storage: Storage, path: str) -> None:
        for act in (storage.read, storage.stat, storage.delete, storage.delete_tree, storage.list, storage.open_input):
            with pytest.raises(StorageError) as caught:
                act(path)
            assert not isinstance(caught.value, NotFoundError)
        with pytest.raises(StorageError):
            storage.write(path, b"")
        with pytest.raises(StorageError), storage.open_output(path):
            pass

    def test_empty_segments_collapse(self, storage: Storage) -> None:
        storage.write("a//b/", b"1")
        assert storage.read("a/b") == b"1"

    # -- deleting --------------------------------------------------------------------------------------------------

    def test_delete_tree(self, storage: Storage) -> None:
        for path in ("d/a", "d/e/b", "d/e/f/c", "d2/x", "dx"):
            storage.write(path, b"1")
        storage.delete_tree("d")
        assert sorted(storage.list(recursive=True)["path"].to_pylist()) == ["d2/x", "dx"]
        storage.delete_tree("d")
        assert storage.list_dirs() == ["d2"]
        storage.delete_many([])
        storage.delete_many(["absent", "d2/x", "d2/absent"])
        assert storage.list("d2").num_rows == 0

    # -- streams ---------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("size", [0, 10, 20_000_001], ids=["empty", "small", "parts"])
    def test_stream_out_and_in(self, storage: Storage, size: int) -> None:
        block = os.urandom(min(size, 1_000_003) or 1)
        with storage.open_output("d/f.bin") as out:
            written = 0
            while written < size:
                written += out.write(block[: size - written]) or 0
            assert not storage.exists("d/f.bin")
            assert storage.list("d").num_rows == 0
        found = storage.stat("d/f.bin")
        assert found is not None
        assert found.size == size
        with storage.open_input("d/f.bin") as file:
            assert isinstance(file, pa.NativeFile)
            assert file.size() == size
            if size > 10:
                assert file.read_at(7, len(block)) == block[:7]
                file.seek(size - 5)
                assert len(file.read()) == 5
                file.seek(3)
                assert file.read(10) == block[3:13]

    @pytest.mark.parametrize("size", [10, 20_000_000], ids=["small", "parts"])
    def test_failed_stream_leaves_nothing(self, storage: Storage, size: int) -> None:
        storage.write("d/old", b"old")
        for path in ("d/new", "d/old"):
            with pytest.raises(ZeroDivisionError):
                write_and_fail(storage, path, b"x" * size)
        assert storage.read("d/old") == b"old"
        assert storage.list("d")["path"].to_pylist() == ["d/old"]

    def test_stream_replaces(self, storage: Storage) -> None:
        storage.write("f", b"old and long")
        with storage.open_output("f") as out:
            out.write(memoryview(b"new"))
            assert storage.read("f") == b"old and long"
        assert storage.read("f") == b"new"

    def test_parquet_through_streams(self, storage: Storage) -> None:
        table = pa.table({"a": range(50_000), "b": [f"row {n}" for n in range(50_000)]})
        with storage.open_output("p/t.parquet") as out, pq.ParquetWriter(out, table.schema) as writer:
            for batch in table.to_batches(max_chunksize=10_000):
                writer.write_batch(batch)
        with storage.open_input("p/t.parquet") as file:
            parquet = pq.ParquetFile(file)
            assert parquet.metadata.num_row_groups == 5
            assert parquet.read_row_group(3, ["a"])["a"][0].as_py() == 30_000
        with storage.open_input("p/t.parquet") as file:
            assert pq.read_table(file).equals(table)

    # -- travelling ------------------------------------------------------------------------------------------------

    def test_pickles(self, storage: Storage) -> None:
        storage.write("f", b"1")
        copy = pickle.loads(pickle.dumps(storage))
        assert copy.root == storage.root
        assert copy.read("f") == b"1"
        copy.create("g", b"2")
        assert storage.read("g") == b"2"

    def test_root_and_uri(self, storage: Storage) -> None:
        assert not storage.root.endswith("/")
        assert "://" in storage.root
        assert storage.uri() == storage.uri("")
        assert storage.uri("a/b") == storage.uri() + "/a/b"

    def test_reopened_by_its_root(self, storage: Storage, reopen_options: dict[str, str]) -> None:
        storage.write("f", b"1")
        again = open_storage(storage.root, reopen_options)
        assert again.root == storage.root
        assert again.read("f") == b"1"
        assert open_storage(storage.uri(), reopen_options).root == storage.root
        assert open_storage(storage.root + "/", reopen_options).root == storage.root

    @pytest.fixture
    def reopen_options(self) -> dict[str, str]:
        return {}
