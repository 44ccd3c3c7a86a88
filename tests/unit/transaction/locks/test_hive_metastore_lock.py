"""Locks in a Hive metastore."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyhudi.errors import ConfigError, LockError
from pyhudi.hive_metastore.metastore_address import MetastoreAddress
from pyhudi.hive_metastore.metastore_client import MetastoreClient
from pyhudi.hive_metastore.metastore_locks import MetastoreLocks
from pyhudi.storage import open_storage
from pyhudi.transaction.locks.hive_metastore_lock import HiveMetastoreBasedLockProvider, agent_text
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from pyhudi.transaction.locks.lock_holder import Holder
from tests.metastore_server import FakeMetastore, fake_metastore
from tests.unit.transaction.lock_suite import QUICK, LockProviderTests, Owners

PROVIDER, HIVE = "hoodie.write.lock.provider", "hoodie.write.lock.hivemetastore."


@pytest.fixture
def metastore() -> Iterator[tuple[str, FakeMetastore]]:
    with fake_metastore() as running:
        yield running


def options_of(uri: str, **more: str) -> dict[str, str]:
    named = {f"{HIVE}{key}": value for key, value in {"uris": uri, "database": "default", "table": "t", **more}.items()}
    return {PROVIDER: "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider", **named}


class TestHiveMetastore(LockProviderTests):
    @pytest.fixture
    def owners(self, metastore: tuple[str, FakeMetastore]) -> Owners:
        address = MetastoreAddress.parse(metastore[0], timeout_s=5)

        def owner() -> HiveMetastoreBasedLockProvider:
            locks = MetastoreLocks(MetastoreClient(address), "default", "t", "host", "agent")
            return HiveMetastoreBasedLockProvider(locks, heartbeat_s=0.05, retry_policy=QUICK)

        return owner


def test_options(metastore: tuple[str, FakeMetastore], tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    one = make_lock_provider(storage, options_of(metastore[0]))
    with one:
        assert "lock on default.t in the Hive metastore at 127.0.0.1:" in one.describe()
        assert f"pyhudi process {os.getpid()}" in one.describe()
        assert not make_lock_provider(storage, options_of(metastore[0], table="T")).try_acquire()
        assert make_lock_provider(storage, options_of(metastore[0], table="other")).try_acquire()
    assert make_lock_provider(storage, options_of(metastore[0])).describe().endswith("(free)")


def test_options_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIVE_CONF_DIR", raising=False)
    options = options_of("thrift://127.0.0.1:1")
    for key in ("database", "table", "uris"):
        with pytest.raises(ConfigError, match=rf"require hoodie\.write\.lock\.hivemetastore\.{key}"):
            make_lock_provider(open_storage(tmp_path), {k: v for k, v in options.items() if k != f"{HIVE}{key}"})
    with pytest.raises(LockError, match=r"could not be acquired: the Hive metastore at 127\.0\.0\.1:1 does not"):
        make_lock_provider(open_storage(tmp_path), options).try_acquire()


def test_heartbeats_and_a_lock_that_is_lost(
    metastore: tuple[str, FakeMetastore], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    often = {"hoodie.write.lock.heartbeat_interval_ms": "20"}
    one = make_lock_provider(open_storage(tmp_path), {**options_of(metastore[0]), **often})
    assert one.try_acquire()
    one.ensure_held()
    metastore[1].locks.clear()
    deadline = time.monotonic() + 10
    while "lost: lock on default.t" not in caplog.text:  # it is logged after the lock is no longer held
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not one.held
    with pytest.raises(LockError, match="no longer held"):
        one.ensure_held()
    one.release()
    other = make_lock_provider(open_storage(tmp_path), options_of(metastore[0]))
    assert other.try_acquire()
    metastore[1].locks.clear()
    with pytest.raises(LockError, match="no longer held"):
        other.ensure_held()
    other.release()


def test_nobody_is_left_in_the_queue(metastore: tuple[str, FakeMetastore], tmp_path: Path) -> None:
    one, other = (make_lock_provider(open_storage(tmp_path), options_of(metastore[0])) for _ in range(2))
    with one:
        assert not other.acquire(0.2)
        assert len(metastore[1].locks) == 1
    assert metastore[1].locks == {}


def test_the_lock_of_a_dead_process_is_released(metastore: tuple[str, FakeMetastore], tmp_path: Path) -> None:
    code = (
        "import sys, time; from pyhudi.storage import open_storage; "
        "from pyhudi.transaction.locks.lock_factory import make_lock_provider; "
        f"lock = make_lock_provider(open_storage({str(tmp_path)!r}), {options_of(metastore[0])!r}); "
        "assert lock.try_acquire(); print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    one = make_lock_provider(open_storage(tmp_path), options_of(metastore[0]))
    assert not one.try_acquire()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert one.try_acquire()
    one.release()


def test_what_a_holder_says_fits_into_a_metastore() -> None:
    assert len(agent_text(Holder.current())) <= 128
