"""Locks in ZooKeeper, with a real server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from pyhudi.errors import ConfigError, LockError
from pyhudi.storage import open_storage
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from pyhudi.transaction.locks.zookeeper_lock import ZookeeperBasedLockProvider, implicit_path
from tests.unit.transaction.lock_suite import QUICK, LockProviderTests, Owners
from tests.zookeeper_server import zookeeper_server

PROVIDER, ZOOKEEPER = "hoodie.write.lock.provider", "hoodie.write.lock.zookeeper."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as address:
        yield address


class TestZookeeper(LockProviderTests):
    @pytest.fixture
    def owners(self, server: str) -> Owners:
        path = f"/locks/{uuid4()}"
        return lambda: ZookeeperBasedLockProvider(server, path, retry_policy=QUICK)


def options_of(server: str, **more: str) -> dict[str, str]:
    short = {"url": server, "base_path": "/hudi", **more}
    named = {f"{ZOOKEEPER}{key}": value for key, value in short.items()}
    return {PROVIDER: "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider", **named}


def test_options(server: str, tmp_path: Path) -> None:
    storage, host, port = open_storage(tmp_path), *server.split(":")
    one = make_lock_provider(storage, {**options_of(host, port=port), "hoodie.table.name": "t"})
    with one:
        assert "lock '/hudi/t' of ZooKeeper at" in one.describe()
        assert f"held by: pyhudi on {socket.gethostname()}, process {os.getpid()}" in one.describe()
        assert not make_lock_provider(storage, options_of(server, lock_key="t")).try_acquire()
        assert make_lock_provider(storage, options_of(server, lock_key="other")).try_acquire()


def test_an_address_without_a_provider(tmp_path: Path) -> None:
    """Apache Hudi's page on concurrency control has a write of several writers that names no lock provider."""
    storage, several = open_storage(tmp_path), {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    given = {name: value for name, value in options_of("zookeeper", lock_key="t").items() if name != PROVIDER}
    assert isinstance(make_lock_provider(storage, {**given, **several}), ZookeeperBasedLockProvider)
    assert not isinstance(make_lock_provider(storage, given), ZookeeperBasedLockProvider)
    with pytest.raises(ConfigError, match=r"hoodie\.write\.lock\.zookeeper\.base_path"):
        make_lock_provider(storage, {f"{ZOOKEEPER}url": "zookeeper", **several})


def test_options_that_are_missing(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    with pytest.raises(ConfigError, match=r"hoodie\.write\.lock\.zookeeper\.base_path"):
        make_lock_provider(storage, {PROVIDER: "ZookeeperBasedLockProvider", f"{ZOOKEEPER}url": "x"})
    with pytest.raises(ConfigError, match=r"hoodie\.write\.lock\.zookeeper\.url"):
        make_lock_provider(storage, {PROVIDER: "ZookeeperBasedImplicitBasePathLockProvider"})


def test_path_that_follows_from_the_table() -> None:
    """The numbers are Apache Hudi 1.2.0's."""
    assert implicit_path(open_storage("/tmp/t")) == "/tmp/FB88BAF128102D93/lock_key"


def test_no_server() -> None:
    lock = ZookeeperBasedLockProvider("127.0.0.1:1", "/locks/t", connection_s=0.2, retry_policy=QUICK)
    with pytest.raises(LockError, match=r"ZooKeeper at 127\.0\.0\.1:1 .*no connection within 0\.2 s"):
        lock.try_acquire()


def test_who_waits_in_vain_leaves_no_session(server: str) -> None:
    path = f"/locks/{uuid4()}"
    one, other = (ZookeeperBasedLockProvider(server, path, retry_policy=QUICK) for _ in range(2))
    with one:
        with pytest.raises(LockError, match="could not be acquired within"), other:
            pass
        assert other._client is None


def test_sessions_that_cannot_be_ended(
    server: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The protected step is done, or its error is the one to be raised."""
    from kazoo.client import KazooClient
    from kazoo.exceptions import WriterNotClosedException

    closed, end = [], KazooClient.stop

    def stop(client: KazooClient) -> None:
        end(client)
        raise WriterNotClosedException("simulated")

    monkeypatch.setattr(KazooClient, "stop", stop)
    monkeypatch.setattr(KazooClient, "close", lambda client: closed.append(client))
    lock = ZookeeperBasedLockProvider(server, f"/locks/{uuid4()}", retry_policy=QUICK)
    with lock:
        pass
    assert not lock.held
    with pytest.raises(ZeroDivisionError), lock:
        raise ZeroDivisionError
    assert len(closed) == 2
    assert "could not end the session of lock '/locks/" in caplog.text


def test_servers_that_do_not_answer(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to them wait without an end."""
    from kazoo.client import KazooClient

    lock = ZookeeperBasedLockProvider(server, f"/locks/{uuid4()}", connection_s=0.2, retry_policy=QUICK)
    with lock:
        monkeypatch.setattr(KazooClient, "exists_async", lambda client, _: client.handler.async_result())
        with pytest.raises(LockError, match="could not be checked"):
            lock.ensure_held()


def test_servers_that_are_gone(tmp_path: Path) -> None:
    with zookeeper_server(tmp_path) as address:
        lock = ZookeeperBasedLockProvider(address, "/locks/t", connection_s=5, retry_policy=QUICK)
        assert lock.try_acquire()
    lock._connection_s = 0.2
    with pytest.raises(LockError):
        lock.ensure_held()
    lock.release()


def test_nodes_of_curator_count(server: str) -> None:
    """Those of Apache Hudi's writers, which have other prefixes."""
    from kazoo.client import KazooClient

    path = f"/locks/{uuid4()}"
    client = KazooClient(server)
    client.start()
    try:
        name = f"{path}/_c_{uuid4()}-lock-"
        node = client.create(name, b"application_id: x", ephemeral=True, sequence=True, makepath=True)
        lock = ZookeeperBasedLockProvider(server, path, retry_policy=QUICK)
        assert not lock.try_acquire()
        assert "held by: application_id: x" in lock.describe()
        client.delete(node)
        with lock:
            children = client.get_children(path)
            assert [name.rpartition("-lock-")[2].isdigit() for name in children] == [True]
    finally:
        client.stop()
        client.close()


def test_sessions_that_end(server: str) -> None:
    """The lock is free then, and its owner notices before it commits."""
    path = f"/locks/{uuid4()}"
    one, other = (ZookeeperBasedLockProvider(server, path, retry_policy=QUICK) for _ in range(2))
    assert one.acquire(5)
    assert one._client is not None
    assert one._lock is not None
    one._client.delete(f"{path}/{one._lock.node}")  # as the servers do
    with other:
        with pytest.raises(LockError, match="no longer held"):
            one.ensure_held()
        assert not one.held
    one.release()
    with one:
        one.ensure_held()


def test_owners_that_are_killed(server: str) -> None:
    path = f"/locks/{uuid4()}"
    code = (
        "import sys, time\n"
        "from pyhudi.transaction.locks.zookeeper_lock import ZookeeperBasedLockProvider\n"
        f"assert ZookeeperBasedLockProvider({server!r}, {path!r}, session_s=2).acquire(5)\n"
        "print('held', flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        lock = ZookeeperBasedLockProvider(server, path, retry_policy=QUICK)
        assert not lock.try_acquire()
        process.send_signal(signal.SIGKILL)
        assert lock.acquire(60)
        lock.release()
