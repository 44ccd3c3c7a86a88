"""Lock providers: the suite of each, files of tables, and the choice by options."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import Literal
from uuid import uuid4

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import AlreadyExistsError, ConfigError, InvalidOptionError, LockError, StorageError
from pyhudi.storage import InProcessLock, Storage, open_storage
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.storage.lock_primitives import FolderLock
from pyhudi.transaction.locks.file_system_lock import FileSystemBasedLockProvider
from pyhudi.transaction.locks.lock_factory import check_lock_provider, make_lock_provider, make_time_generator
from pyhudi.transaction.locks.lock_holder import Holder
from pyhudi.transaction.locks.lock_provider import LocalLockProvider, LockProvider, LockRetryPolicy
from pyhudi.transaction.locks.storage_based_lock import LOCK_PATH, StorageBasedLockProvider
from tests.fault_injection import Fault, FaultyStorage
from tests.unit.transaction.lock_suite import QUICK, LockProviderTests, Owners

LOCK_FILE = ".hoodie/lock"


class TestInProcess(LockProviderTests):
    @pytest.fixture
    def owners(self) -> Owners:
        name = str(uuid4())
        return lambda: LocalLockProvider(InProcessLock(name), name, QUICK)


class TestHost(LockProviderTests):
    @pytest.fixture
    def owners(self, tmp_path: Path) -> Owners:
        return lambda: LocalLockProvider(FolderLock(LocalStorage(tmp_path), ""), "t", QUICK)


class TestFile(LockProviderTests):
    @pytest.fixture
    def owners(self, storage: Storage) -> Owners:
        return lambda: FileSystemBasedLockProvider(storage, retry_policy=QUICK)


class TestExpiringFile(LockProviderTests):
    @pytest.fixture
    def owners(self, storage: Storage) -> Owners:
        return lambda: FileSystemBasedLockProvider(storage, expire_ms=60_000, retry_policy=QUICK)


class TestLease(LockProviderTests):
    @pytest.fixture
    def owners(self, storage: Storage) -> Owners:
        return lambda: StorageBasedLockProvider(storage, retry_policy=QUICK)


class TestLeaseInObjectStore(LockProviderTests):
    @pytest.fixture
    def owners(self) -> Owners:
        pytest.importorskip("obstore")
        storage = open_storage(f"memory://{uuid4()}/t")
        return lambda: StorageBasedLockProvider(storage, retry_policy=QUICK)


class TestRenewedLease(LockProviderTests):
    @pytest.fixture
    def owners(self, storage: Storage) -> Owners:
        return lambda: StorageBasedLockProvider(storage, validity_s=60, renew_s=0.005, retry_policy=QUICK)


class Session(LockProvider):
    """A lock of another owner; waiting for it opens a session. ``error`` is raised by attempts."""

    held = False
    is_open = False

    def __init__(self, error: type[BaseException] | None = None) -> None:
        super().__init__(QUICK)
        self._error = error

    def try_acquire(self) -> bool:
        self.is_open = True
        if self._error is not None:
            raise self._error
        return False

    def release(self) -> None:
        self.is_open = False


@pytest.mark.parametrize("error", [None, StorageError, KeyboardInterrupt])
def test_who_waits_in_vain_leaves_nothing(error: type[BaseException] | None) -> None:
    lock = Session(error)
    with pytest.raises(error or LockError), lock:
        pass
    assert not lock.is_open


def test_a_second_attempt_does_not_release_what_is_held(storage: Storage) -> None:
    with FileSystemBasedLockProvider(storage, retry_policy=QUICK) as lock:
        with pytest.raises(LockError), lock:
            pass
        lock.ensure_held()


def test_the_file_is_there_while_the_lock_is_held(storage: Storage) -> None:
    with FileSystemBasedLockProvider(storage) as lock:
        text = json.loads(storage.read(LOCK_FILE))
        assert str(os.getpid()) in text["lockThreadName"]
        assert LOCK_FILE in lock.describe()
        assert str(os.getpid()) in lock.describe()
    assert not storage.exists(LOCK_FILE)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"written by a JVM", "content: written by a JVM"),
        (b"", "content: none, as if by Apache Hudi.*wait for the writer that created it"),
    ],
)
def test_a_file_of_somebody_else_is_respected(storage: Storage, content: bytes, message: str) -> None:
    storage.create(LOCK_FILE, content)
    lock = FileSystemBasedLockProvider(storage, retry_policy=QUICK)
    with pytest.raises(LockError, match=message), lock:
        pass
    assert storage.read(LOCK_FILE) == content


def test_a_file_that_expired_is_taken_over(storage: Storage, tmp_path: Path) -> None:
    storage.create(LOCK_FILE, b"old")
    os.utime(tmp_path / LOCK_FILE, (time.time() - 61, time.time() - 61))
    assert not FileSystemBasedLockProvider(storage).try_acquire()
    assert not FileSystemBasedLockProvider(storage, expire_ms=120_000).try_acquire()
    lock = FileSystemBasedLockProvider(storage, expire_ms=60_000)
    with lock:
        assert b"old" not in storage.read(LOCK_FILE)
    assert not storage.exists(LOCK_FILE)


def test_a_file_that_was_taken_over_is_not_removed(storage: Storage) -> None:
    lock = FileSystemBasedLockProvider(storage)
    with lock:
        storage.write(LOCK_FILE, b"somebody else's")
        with pytest.raises(LockError, match="no longer held"):
            lock.ensure_held()
    assert storage.read(LOCK_FILE) == b"somebody else's"


def test_file_whose_answer_was_lost(storage: Storage) -> None:
    lock = FileSystemBasedLockProvider(FaultyStorage(storage, [Fault("create", 1, "after")]))
    assert lock.try_acquire()
    lost = FileSystemBasedLockProvider(FaultyStorage(storage, [Fault("delete", 1)]))
    lock.release()
    with lost:
        pass  # the release fails, and that is no failure of what was done
    assert storage.exists(LOCK_FILE)
    storage.delete(LOCK_FILE)
    broken = FileSystemBasedLockProvider(FaultyStorage(storage, [Fault("create", 1)]))
    with pytest.raises(StorageError):
        broken.try_acquire()
    assert not broken.held


def test_a_lock_file_is_known_again_when_its_create_was_sent_twice(storage: Storage) -> None:
    faulty = FaultyStorage(storage, [Fault("create", 1, "after", AlreadyExistsError)])
    lock = FileSystemBasedLockProvider(faulty, retry_policy=QUICK)
    assert lock.try_acquire()
    assert not FileSystemBasedLockProvider(storage).try_acquire()
    lock.release()
    assert not storage.exists(LOCK_FILE)
    # the look at what is there may fail, too; then the next try knows it
    faults = [Fault("create", 1, "after", AlreadyExistsError), Fault("read", 1)]
    lock = FileSystemBasedLockProvider(FaultyStorage(storage, faults))
    with pytest.raises(StorageError):
        lock.try_acquire()
    assert lock.try_acquire()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("operation", ["stat", "create", "read", "delete"])
def test_an_interrupt_leaves_no_lock_file(storage: Storage, operation: str, when: Literal["before", "after"]) -> None:
    """Ctrl-C at any request of the lock, while it is acquired or released."""
    interrupted = FaultyStorage(storage, [Fault(operation, 1, when, KeyboardInterrupt)])
    lock = FileSystemBasedLockProvider(interrupted, retry_policy=QUICK)
    with pytest.raises(KeyboardInterrupt), lock:
        pass
    assert not lock.held
    assert not storage.exists(LOCK_FILE)


def test_an_interrupt_while_the_storage_fails(storage: Storage) -> None:
    """The lock file stays, but a lock of this process takes it over."""
    faults = [Fault("create", 1, "after", KeyboardInterrupt), Fault("read")]
    with pytest.raises(KeyboardInterrupt):
        FileSystemBasedLockProvider(FaultyStorage(storage, faults), retry_policy=QUICK).try_acquire()
    assert storage.exists(LOCK_FILE)
    assert FileSystemBasedLockProvider(storage, retry_policy=QUICK).try_acquire()


def test_an_interrupt_leaves_the_lock_file_of_somebody_else(storage: Storage) -> None:
    storage.create(LOCK_FILE, b"written by a JVM")
    interrupted = FaultyStorage(storage, [Fault("read", 1, "after", KeyboardInterrupt)])
    with pytest.raises(KeyboardInterrupt), FileSystemBasedLockProvider(interrupted, retry_policy=QUICK):
        pass
    assert storage.read(LOCK_FILE) == b"written by a JVM"


@pytest.mark.parametrize("expire_ms", [0, 60_000])
def test_a_lock_file_that_could_not_be_given_back_is_taken_over(storage: Storage, expire_ms: int) -> None:
    """The process that has made it lives on, so nobody takes it for dead."""
    faulty = FaultyStorage(storage, [Fault("delete", 1)])
    with FileSystemBasedLockProvider(faulty):
        pass
    assert storage.exists(LOCK_FILE)
    with FileSystemBasedLockProvider(storage, expire_ms=expire_ms, retry_policy=QUICK) as lock:
        lock.ensure_held()
        assert not FileSystemBasedLockProvider(storage, retry_policy=QUICK).try_acquire()
    faults = [Fault("create", 1, "after"), Fault("read", 1)]
    lost = FileSystemBasedLockProvider(FaultyStorage(storage, faults))
    with pytest.raises(StorageError):
        lost.try_acquire()
    with FileSystemBasedLockProvider(storage, expire_ms=expire_ms, retry_policy=QUICK):
        assert not lost.try_acquire(), "somebody else has it by now"
    assert lost.try_acquire()
    lost.release()


def _take(root: str, provider: str) -> None:
    assert make_lock_provider(open_storage(root), {"hoodie.write.lock.provider": provider}).try_acquire()
    os._exit(0)


def _left_by_a_dead_process(storage: Storage, provider: str) -> None:
    process = multiprocessing.get_context("fork").Process(target=_take, args=(storage.root, provider))
    process.start()
    process.join()


@pytest.mark.parametrize(
    ("provider", "path"), [("FileSystemBasedLockProvider", LOCK_FILE), ("StorageBasedLockProvider", LOCK_PATH)]
)
class TestDeadHolders:
    def lock(self, storage: Storage, provider: str) -> LockProvider:
        return make_lock_provider(storage, {"hoodie.write.lock.provider": provider})

    def test_what_a_dead_process_of_this_machine_left_is_taken_over(
        self, storage: Storage, provider: str, path: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        _left_by_a_dead_process(storage, provider)
        assert storage.exists(path)
        one, other = self.lock(storage, provider), self.lock(storage, provider)
        assert one.try_acquire()
        assert "taking over" in caplog.text
        assert "dead" in caplog.text
        assert not other.try_acquire()  # that of a living one is not
        one.release()

    def test_what_is_not_known_to_be_dead_is_left(self, storage: Storage, provider: str, path: str) -> None:
        _left_by_a_dead_process(storage, provider)
        mine = Holder.current()
        text = storage.read(path)
        found = Holder.parse(text.decode())
        assert found is not None
        changes = [
            (found.kernel, "0" + found.kernel[1:] if found.kernel[0] != "0" else "1" + found.kernel[1:]),
            (found.kernel, found.kernel + "1"),
            (f"process {found.pid}, ", f"process {os.getpid()}, "),
            ("pyhudi on", "somebody on"),
        ]
        for old, new in changes:
            changed = text.replace(old.encode(), new.encode())
            if str(os.getpid()) in new:
                changed = changed.replace(f"started {found.started}".encode(), f"started {mine.started}".encode())
            assert changed != text
            storage.write(path, changed)
            assert not self.lock(storage, provider).try_acquire()

    def test_a_number_of_a_process_that_was_given_again(self, storage: Storage, provider: str, path: str) -> None:
        _left_by_a_dead_process(storage, provider)
        found = Holder.parse(storage.read(path).decode())
        assert found is not None
        storage.write(path, storage.read(path).replace(b"process %d," % found.pid, b"process %d," % os.getpid()))
        assert self.lock(storage, provider).try_acquire()


def test_who_waits_is_told_for_whom(storage: Storage, caplog: pytest.LogCaptureFixture) -> None:
    with FileSystemBasedLockProvider(storage):
        other = FileSystemBasedLockProvider(storage, retry_policy=QUICK)
        with pytest.raises(LockError) as caught, other:
            pass
    for text in (caplog.text, str(caught.value)):
        assert f"process {os.getpid()}" in text
        assert "created 20" in text
        assert "delete the file, or set hoodie.write.lock.filesystem.expire" in text
    with StorageBasedLockProvider(storage):
        lease = StorageBasedLockProvider(storage, retry_policy=QUICK)
        with pytest.raises(LockError, match=f"valid until 20.*process {os.getpid()}.*the lease expires"), lease:
            pass


LONG = "org.apache.hudi.client.transaction.lock."


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("", LocalLockProvider),
        ("InProcessLockProvider", LocalLockProvider),
        (LONG + "InProcessLockProvider", LocalLockProvider),
        (LONG + "FileSystemBasedLockProvider", FileSystemBasedLockProvider),
        (LONG + "StorageBasedLockProvider", StorageBasedLockProvider),
    ],
)
def test_chosen_by_class_name(storage: Storage, name: str, kind: type[LockProvider]) -> None:
    options = {"hoodie.write.lock.provider": name} if name else {}
    one, other = make_lock_provider(storage, options), make_lock_provider(storage, options)
    assert isinstance(one, kind)
    with one:
        assert not other.try_acquire()


@pytest.mark.parametrize("name", ["OtherLockProvider", LONG + "OtherLockProvider"])
def test_a_lock_that_is_not_supported_is_refused_before_a_table_is_created(tmp_path: Path, name: str) -> None:
    named = {"hoodie.write.lock.provider": name}
    with pytest.raises(ConfigError) as of_write:
        make_lock_provider(open_storage(tmp_path / "t"), named)
    with pytest.raises(ConfigError) as of_creation:
        HudiTable.create(str(tmp_path / "t"), {"hoodie.table.name": "t", **named})
    assert str(of_creation.value) == str(of_write.value)
    assert not (tmp_path / "t").exists()


def test_options_of_a_lock_may_be_given_later(storage: Storage) -> None:
    named = {"hoodie.write.lock.provider": "ZookeeperBasedLockProvider"}
    check_lock_provider(named)
    with pytest.raises(ConfigError, match="zookeeper"):
        make_lock_provider(storage, named)


def test_links_to_a_table_share_its_lock(tmp_path: Path) -> None:
    named = {"hoodie.write.lock.provider": "InProcessLockProvider"}
    (tmp_path / "table").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "table")
    first, second = (make_lock_provider(open_storage(tmp_path / name), named) for name in ("table", "link"))
    assert first.try_acquire()
    assert not second.try_acquire()
    first.release()


def test_unknown_provider(storage: Storage) -> None:
    options = {"hoodie.write.lock.provider": LONG + "OtherLockProvider"}
    with pytest.raises(InvalidOptionError, match="StorageBasedLockProvider") as caught:
        make_lock_provider(storage, options)
    assert "OtherLockProvider" in str(caught.value)


def test_options_of_the_lock_file(storage: Storage, tmp_path: Path) -> None:
    options = {
        "hoodie.write.lock.provider": "FileSystemBasedLockProvider",
        "hoodie.write.lock.filesystem.path": f"file://{tmp_path}/elsewhere",
        "hoodie.write.lock.filesystem.expire": "2",
    }
    with make_lock_provider(storage, options):
        assert (tmp_path / "elsewhere/lock").exists()
    assert not storage.exists(LOCK_FILE)
    with pytest.raises(InvalidOptionError, match="expire"):
        make_lock_provider(storage, {**options, "hoodie.write.lock.filesystem.expire": "soon"})


SEVERAL = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}


@pytest.mark.parametrize(
    ("uri", "options", "kind"),
    [
        ("s3://bucket/t", SEVERAL, StorageBasedLockProvider),
        ("gs://bucket/t", SEVERAL, StorageBasedLockProvider),
        ("abfss://c@account.dfs.core.windows.net/t", SEVERAL, StorageBasedLockProvider),
        ("s3://bucket/t", {}, LocalLockProvider),
        ("memory://common-lock/t", SEVERAL, LocalLockProvider),
    ],
)
def test_several_writers_of_an_object_store_have_a_lock_in_common(
    uri: str, options: dict[str, str], kind: type[LockProvider]
) -> None:
    pytest.importorskip("obstore")
    assert type(make_lock_provider(FaultyStorage(open_storage(uri)), options)) is kind


def test_patience_from_options() -> None:
    assert LockRetryPolicy.from_options(Options.parse({})) == LockRetryPolicy(60.0, 51, 5.0, 1.0)
    given = {"hoodie.write.lock.wait_time_ms": "100", "hoodie.write.lock.client.num_retries": "0"}
    assert LockRetryPolicy.from_options(Options.parse(given)) == LockRetryPolicy(0.1, 1, 5.0, 1.0)


def _count(root: str, provider: str, rounds: int) -> None:
    options = {"hoodie.write.lock.provider": provider, "hoodie.write.lock.wait_time_ms_between_retry": "10"}
    storage = open_storage(root)
    for _ in range(rounds):
        with make_lock_provider(storage, options):
            storage.write("counter", b"%d" % (int(storage.read("counter")) + 1))


@pytest.mark.parametrize("provider", ["", "FileSystemBasedLockProvider", "StorageBasedLockProvider"])
def test_processes_count(storage: Storage, tmp_path: Path, provider: str) -> None:
    storage.write("counter", b"0")
    with multiprocessing.get_context("fork").Pool(3) as pool:
        pool.starmap(_count, [(str(tmp_path), provider, 10)] * 3)
    assert storage.read("counter") == b"30"


@pytest.mark.parametrize(
    ("given", "waits"),
    [
        ({}, False),
        ({"hoodie.write.lock.provider": "InProcessLockProvider"}, False),
        ({"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}, True),
        ({"hoodie.write.lock.provider": "FileSystemBasedLockProvider"}, True),
        ({"hoodie.time.generator.max_expected_clock_skew_ms": "200"}, True),
    ],
)
def test_writers_of_one_machine_have_no_clock_skew(tmp_path: Path, given: dict[str, str], waits: bool) -> None:
    (tmp_path / ".hoodie").mkdir()
    opts = Options.parse(given)
    storage = open_storage(tmp_path)
    first = make_time_generator(storage, opts, "UTC").next()
    begun = time.monotonic()
    second = make_time_generator(storage, opts, "UTC").next()
    assert (time.monotonic() - begun >= 0.1) == waits
    assert first < second
