from __future__ import annotations

import errno
import multiprocessing
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pyhudi.errors import (
    AlreadyExistsError,
    ConfigError,
    InvalidOptionError,
    NotFoundError,
    StorageError,
    UnansweredError,
)
from pyhudi.storage import Storage, host_lock, open_storage
from pyhudi.storage import posix_files as posix_module
from pyhudi.storage.canonical_uri import canonical_uri
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.storage.lock_primitives import FolderLock
from tests.processes import separate_processes
from tests.unit.storage.suite import StorageTests


class TestLocalStorage(StorageTests):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return open_storage(tmp_path / "t")


class TestLocalStorageAtAwkwardPlace(StorageTests):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return open_storage(f"file://{tmp_path}/ä b/x=%20")


@pytest.fixture
def local(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def all_names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.rglob("*") if entry.is_file())


OTHER_FORMS = ["file://LOCALHOST{}//", "FILE:{}", "file:///{}", "//{}", "file:////{}/"]


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://localhost{}", "{}/", "FILE://{}", *OTHER_FORMS])
def test_forms_of_a_local_path(tmp_path: Path, form: str) -> None:
    assert open_storage(form.format(tmp_path)).root == f"file://{tmp_path}"
    assert canonical_uri(form.format(tmp_path)) == str(tmp_path)


def test_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_storage("a/../b").root == f"file://{tmp_path}/b"


@pytest.mark.parametrize(
    "bad", ["file://host/x", "hdfs://nn/x", "hdfs:/x", "s3a:/b/x", "dbfs:/x", "http://h/x", "s3://", "az:///x", ""]
)
def test_refused_addresses(bad: str) -> None:
    with pytest.raises(ConfigError, match=r"hdfs|http|/dbfs/|host|has no|empty"):
        open_storage(bad)


def test_unknown_fsync(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="all, commit, none"):
        open_storage(tmp_path, {"pyhudi.storage.fsync": "sometimes"})


@pytest.mark.parametrize("mode", ["commit", "all", "none"])
def test_fsync_modes(tmp_path: Path, mode: str) -> None:
    storage = open_storage(tmp_path, {"pyhudi.storage.fsync": mode})
    storage.create("a/b", b"1")
    with storage.open_output("a/c") as out:
        out.write(b"2")
    assert storage.read("a/b") + storage.read("a/c") == b"12"


@pytest.mark.parametrize("mode", ["", "all", "commit", "none"])
def test_what_is_on_the_disk_before_a_file_is_there(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its content before its name, its name before the call returns, new folders before both."""
    synced: list[str] = []
    fsync = os.fsync

    def watched(handle: int) -> None:
        path = str(Path(f"/proc/self/fd/{handle}").readlink())
        if path.startswith(str(tmp_path)):  # threads that other tests have left sync elsewhere
            name = path.removeprefix(str(tmp_path)) or "/"
            synced.append("content" if ".pyhudi-tmp-" in name else name)
            if synced[-1] == "content":
                assert os.fstat(handle).st_size == 3
                assert not {*tmp_path.rglob("*.parquet"), *tmp_path.rglob("*.commit")}
        fsync(handle)

    storage = open_storage(tmp_path, {"pyhudi.storage.fsync": mode} if mode else {})
    monkeypatch.setattr(os, "fsync", watched)
    with storage.open_output("p=1/q=2/f.parquet") as out:
        out.write(b"123")
    assert synced == (["/p=1", "/", "content", "/p=1/q=2"] if mode in ("", "all") else [])
    (tmp_path / "p=1/q=2/f.parquet").unlink()
    synced.clear()
    storage.create("t/1.commit", b"123")
    assert synced == ([] if mode == "none" else ["/", "content", "/t"])


def test_checksum_files_of_hadoop_do_not_outlive_the_content(local: LocalStorage, tmp_path: Path) -> None:
    def hadoop(name: str) -> Path:
        side = tmp_path / f".{name}.crc"
        side.write_bytes(b"crc\0stale")
        return side

    local.write("f", b"1")
    sides = [hadoop("f"), hadoop("new"), hadoop("stream")]
    assert local.list()["path"].to_pylist() == ["f"]
    local.write("f", b"2")
    local.create("new", b"1")
    with local.open_output("stream") as out:
        out.write(b"1")
    assert not any(side.exists() for side in sides)
    side = hadoop("f")
    local.replace("f", b"3", local.stat("f").version)  # type: ignore[union-attr]
    assert not side.exists()
    side = hadoop("f")
    local.delete("f")
    assert not side.exists()
    side = hadoop("empty")
    local.create("empty", b"")
    assert not side.exists()


def test_nothing_but_the_files_remains(local: LocalStorage, tmp_path: Path) -> None:
    local.create("a", b"1")
    local.write("a", b"2")
    local.replace("b", b"1", None)
    with local.open_output("c") as out:
        out.write(b"1")
    with pytest.raises(AlreadyExistsError):
        local.create("a", b"3")
    assert all_names(tmp_path) == ["a", "b", "c"]


@pytest.mark.parametrize("fsync", ["none", "all"])
def test_a_folder_is_removed_while_one_in_it_is_made(
    tmp_path: Path, fsync: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of markers of one write is removed while another write creates its own, for instance."""
    make = os.mkdir
    removed: list[str] = []

    def mkdir(path: str, mode: int = 0o777) -> None:
        if path.endswith("/a/b") and not removed:
            Path(path).parent.rmdir()
            removed.append(path)
        make(path, mode)

    monkeypatch.setattr(os, "mkdir", mkdir)
    with LocalStorage(tmp_path, fsync=fsync).open_output("a/b/file") as out:
        out.write(b"1")
    assert removed
    assert all_names(tmp_path) == ["file"]


def test_temporary_files_are_hidden_and_look_like_no_data_file(local: LocalStorage, tmp_path: Path) -> None:
    name = "f1-0_0-1-2_20240101000000000.parquet"
    with local.open_output(f"p/{name}") as out:
        out.write(b"1")
        (temporary,) = all_names(tmp_path)
        assert temporary.startswith(".")
        assert "parquet" not in temporary
        assert ".log." not in temporary
    assert all_names(tmp_path) == [name]


def test_failed_writes_leave_nothing(local: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for act in (local.write, local.create):
        with pytest.raises(StorageError, match=r"'d/f': No space left on device; free some space and try again"):
            act("d/f", b"1")
    assert all_names(tmp_path) == []


def test_a_streamed_file_without_room_is_named(local: LocalStorage, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def stream() -> None:
        with local.open_output("d/f") as out:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
            try:
                out.write(bytes(1 << 24))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    with pytest.raises(StorageError, match=r"'d/f': .*File too large; raise the limit of the size of files"):
        stream()
    assert all_names(tmp_path) == []


@pytest.mark.parametrize(
    ("code", "cure"),
    [(errno.EACCES, "give the user"), (errno.EROFS, "mount the file system for writing"), (errno.EMFILE, "ulimit -n")],
)
def test_errors_say_the_cure(local: LocalStorage, monkeypatch: pytest.MonkeyPatch, code: int, cure: str) -> None:
    def refused(path: str, *_: object) -> None:
        raise OSError(code, os.strerror(code), path)

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(StorageError, match=rf"'d/f': {os.strerror(code)} \(.*/d/.*\); .*{cure}"):
        local.write("d/f", b"1")


def test_a_file_in_the_place_of_a_folder(local: LocalStorage) -> None:
    local.write("d", b"1")
    for act in (local.write, local.create):
        with pytest.raises(NotFoundError, match=r"'d/f' \(.*/d.*\), because a folder of this path is a file"):
            act("d/f", b"1")


def test_a_folder_that_cannot_be_synced_gives_no_answer(
    local: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has its name by then, so whoever made it has to look."""
    fsync = os.fsync

    def broken(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        fsync(handle)

    (tmp_path / "d").mkdir()
    monkeypatch.setattr(os, "fsync", broken)
    for name, act in (("w", local.write), ("c", local.create)):
        with pytest.raises(UnansweredError, match="Input/output error"):
            act(f"d/{name}", b"1")
        assert local.read(f"d/{name}") == b"1"
    with pytest.raises(UnansweredError), local.open_output("d/s") as out:
        out.write(b"1")


def test_what_a_killed_writer_left_goes_with_the_file(local: LocalStorage, tmp_path: Path) -> None:
    code = f"""
import os
from pyhudi.storage.local_storage import LocalStorage
with LocalStorage({str(tmp_path)!r}).open_output("p/f.parquet") as out:
    out.write(b"x" * 5_000_000)
    os.kill(os.getpid(), {int(signal.SIGKILL)})
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert len(all_names(tmp_path)) == 1
    assert local.list("p").num_rows == 0
    local.delete("p/f.parquet")
    assert all_names(tmp_path) == []


def test_streaming_over_the_remains_of_a_killed_writer(local: LocalStorage, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    left = Path(posix_module.stream_temporary(str(tmp_path / "p/f")))
    left.write_bytes(b"half")
    with local.open_output("p/f") as out:
        out.write(b"whole")
    assert local.read("p/f") == b"whole"
    assert all_names(tmp_path) == ["f"]


def test_two_streams_to_one_file_do_not_mix(local: LocalStorage, tmp_path: Path) -> None:
    def work() -> None:
        with local.open_output("f") as first:
            first.write(b"first")
            with local.open_output("f") as second:
                second.write(b"second")

    with pytest.raises(StorageError):
        work()
    assert local.read("f") == b"second"
    assert all_names(tmp_path) == ["f"]


def test_file_systems_without_hard_links(local: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    monkeypatch.setattr(os.path, "lexists", lambda _: False)
    local.create("a", b"1")
    with pytest.raises(AlreadyExistsError):
        local.create("a", b"2")
    assert local.read("a") == b"1"
    assert all_names(tmp_path) == ["a"]


def test_names_that_are_not_utf8_are_named(local: LocalStorage, tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff")).write_bytes(b"")
    with pytest.raises(StorageError, match="UTF-8"):
        local.list()


def test_new_files_have_the_usual_permissions(local: LocalStorage, tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        local.write("a", b"1")
        local.create("b", b"")
        with local.open_output("c") as out:
            out.write(b"1")
    finally:
        os.umask(old)
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "abc"} == {0o640}


# -- many processes ----------------------------------------------------------------------------------------------------


def _create_all(root: str, number: int, count: int, start: float) -> int:
    storage = open_storage(root)
    time.sleep(max(0.0, start - time.time()))
    won = 0
    for path in range(count):
        try:
            storage.create(f"t/{path}", b"%d" % number * (path % 3) * 1000)
            won += 1
        except AlreadyExistsError:
            pass
    return won


def _count(root: str, rounds: int, lock: bool) -> None:
    storage = open_storage(root)
    for _ in range(rounds):
        while True:
            found = storage.stat("counter")
            assert found is not None
            try:
                if lock:
                    with host_lock(storage, ""):
                        storage.write("counter", b"%d" % (int(storage.read("counter")) + 1))
                else:
                    value = int(storage.read("counter"))
                    storage.replace("counter", b"%d" % (value + 1), found.version)
            except StorageError:
                continue
            break


def test_one_process_wins_each_path(tmp_path: Path) -> None:
    with separate_processes().Pool(4) as pool:
        root, start = str(tmp_path), time.time() + 1.0
        won = pool.starmap(_create_all, [(root, number, 200, start) for number in range(4)], chunksize=1)
    assert sum(won) == 200
    assert open_storage(tmp_path).list("t").num_rows == 200
    assert all(b not in name.encode() for name in all_names(tmp_path) for b in [b"tmp"])


@pytest.mark.parametrize("lock", [False, True], ids=["replace", "host lock"])
def test_processes_count(tmp_path: Path, lock: bool) -> None:
    storage = open_storage(tmp_path)
    storage.write("counter", b"0")
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.starmap(_count, [(str(tmp_path), 40, lock)] * 4)
    assert storage.read("counter") == b"160"


def test_a_dead_process_frees_the_folder_lock(local: LocalStorage, tmp_path: Path) -> None:
    local.make_dirs(".hoodie")
    code = f"""
import sys, time
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.storage.lock_primitives import FolderLock
FolderLock(LocalStorage({str(tmp_path)!r}), ".hoodie").acquire(1)
print("held", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        lock = FolderLock(local, ".hoodie")
        assert not lock.acquire(0.05)
        holder.kill()
        assert lock.acquire(5)
        lock.release()
    assert all_names(tmp_path) == []
