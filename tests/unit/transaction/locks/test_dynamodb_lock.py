"""Locks in DynamoDB, with a server."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from pyhudi.errors import ConfigError, InvalidOptionError, LockError, SetupError
from pyhudi.storage import open_storage
from pyhudi.transaction.commit_outcome import Committed
from pyhudi.transaction.locks.dynamodb_client import DynamoDbClient, DynamoDbEndpoint
from pyhudi.transaction.locks.dynamodb_lock import (
    DynamoDBBasedLockProvider,
    _time_with_suspension,
    implicit_partition_key,
)
from pyhudi.transaction.locks.dynamodb_lock_table import DynamoDbLockTable
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from pyhudi.transaction.locks.zookeeper_lock import implicit_path
from tests.dynamodb_server import CREDENTIALS, DynamoDbServer, dynamodb_server
from tests.processes import separate_processes
from tests.unit.transaction.lock_suite import QUICK, LockProviderTests, Owners
from tests.unit.transaction.tables import MULTI_WRITER, Write, active, check_clean, make_table

PROVIDER, DYNAMODB = "hoodie.write.lock.provider", "hoodie.write.lock.dynamodb."
TABLE = "locks"
LEASE_S = 0.45

Answer = Callable[[], Any]
_CLIENTS: dict[tuple[object, ...], Any] = {}


@pytest.fixture(scope="module")
def server() -> Iterator[DynamoDbServer]:
    pytest.importorskip("moto.server")
    with dynamodb_server() as running:
        yield running


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are repeated at once."""
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.0)


@pytest.fixture(autouse=True)
def one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks with the same settings share a client, because it takes some time to make one."""
    connect = DynamoDbClient._connect

    def connected(client: DynamoDbClient) -> Any:
        endpoint = client._endpoint
        keys = endpoint.credentials or {"environment": os.environ.get("AWS_ACCESS_KEY_ID")}
        settings = (endpoint.region, endpoint.url, endpoint.timeout_s, *keys.values())
        if settings not in _CLIENTS:
            _CLIENTS[settings] = connect(client)
        return _CLIENTS[settings]

    monkeypatch.setattr(DynamoDbClient, "_connect", connected)


@pytest.fixture(autouse=True)
def nothing_of_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The settings of the user have no effect."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@pytest.fixture
def key() -> str:
    return f"t-{uuid4()}"


def lock_of(
    server: DynamoDbServer, key: str, lease_s: float = 60.0, *, timeout_s: float = 2.0
) -> DynamoDBBasedLockProvider:
    table = DynamoDbLockTable(TABLE, DynamoDbEndpoint("us-east-1", server.endpoint, CREDENTIALS, timeout_s))
    return DynamoDBBasedLockProvider(table, key, lease_s=lease_s, retry_policy=QUICK)


def options_of(server: DynamoDbServer, **more: str) -> dict[str, str]:
    named = {f"{DYNAMODB}{key}": value for key, value in {"endpoint_url": server.endpoint, **more}.items()}
    keys = {"hoodie.aws.access.key": "test-id", "hoodie.aws.secret.key": "test-secret"}
    return {PROVIDER: "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider", **named, **keys}


def stored(server: DynamoDbServer, key: str, table: str = TABLE) -> dict[str, dict[str, str]] | None:
    found = server.client.get_item(TableName=table, Key={"key": {"S": key}}, ConsistentRead=True)
    item: dict[str, dict[str, str]] | None = found.get("Item")
    return item


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


# -- items -------------------------------------------------------------------------------------------------------------


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


# -- leases ------------------------------------------------------------------------------------------------------------


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
    left_by(server, key, "a host that is no more", int(LEASE_S * 1000))
    lock = lock_of(server, key)
    assert not lock.acquire(LEASE_S * 0.2)
    assert lock.acquire(LEASE_S * 0.5)
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
        now = _time_with_suspension() + 3600
        monkeypatch.setattr("pyhudi.transaction.locks.dynamodb_lock._time_with_suspension", lambda: now)
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


# -- requests that fail ------------------------------------------------------------------------------------------------


def lost(server: DynamoDbServer, name: str, times: int = 1, *, done: bool = True) -> Any:
    """The first responses to requests with a name are lost; ``done``: after the request took effect."""
    left = [times]

    def respond(request: str, response: Answer) -> Any:
        if request != name or not left[0]:
            return response()
        left[0] -= 1
        if done:
            with contextlib.suppress(Exception):
                response()
        raise RuntimeError("a response that is lost")

    return server.responding(respond)


@pytest.mark.parametrize("request_name", ["put_item", "update_item", "delete_item"])
def test_requests_that_are_sent_twice(server: DynamoDbServer, key: str, request_name: str) -> None:
    lock, other = lock_of(server, key), lock_of(server, key)
    with lost(server, request_name):
        with lock:
            lock.ensure_held()
            assert not other.try_acquire()
        assert stored(server, key) is None
    assert other.try_acquire()
    other.release()


def test_a_heartbeat_without_an_answer_is_made_up_for(server: DynamoDbServer, key: str) -> None:
    lock, other = lock_of(server, key), lock_of(server, key)
    with lock:
        with lost(server, "update_item", 3), pytest.raises(LockError, match="refused a request"):
            lock.renew()
        assert lock.renew()
        with lost(server, "update_item", 3):
            lock.ensure_held()  # The lease of the heartbeat before is valid.
        assert not other.try_acquire()
    assert stored(server, key) is None


def test_an_acquisition_that_fails_leaves_no_lock(server: DynamoDbServer, key: str) -> None:
    lock, other = lock_of(server, key), lock_of(server, key)
    with lost(server, "put_item", 3), pytest.raises(LockError):
        lock.try_acquire()
    assert not lock.held
    assert other.try_acquire()
    other.release()


def test_an_acquisition_that_is_interrupted_leaves_no_lock(
    server: DynamoDbServer, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pyhudi.transaction.locks.dynamodb_lock._Heartbeat", interrupt)
    lock = lock_of(server, key)
    with pytest.raises(KeyboardInterrupt):
        lock.try_acquire()
    assert not lock.held
    assert stored(server, key) is None


def test_releases_that_fail_are_logged(server: DynamoDbServer, key: str, caplog: pytest.LogCaptureFixture) -> None:
    lock = lock_of(server, key)
    with lost(server, "delete_item", 3, done=False), lock:
        pass  # The protected work is done.
    assert "could not release lock" in caplog.text
    assert not lock.held
    assert stored(server, key) is not None
    assert lock.try_acquire()  # It is its own.
    lock.release()


def test_checks_without_an_answer_count_as_lost_after_the_lease(
    server: DynamoDbServer, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = lock_of(server, key)
    with lock:
        now = _time_with_suspension() + 3600
        monkeypatch.setattr("pyhudi.transaction.locks.dynamodb_lock._time_with_suspension", lambda: now)
        with (
            lost(server, "update_item", 3, done=False),
            pytest.raises(LockError, match=r"(?s)could not be checked .*its lease has expired"),
        ):
            lock.ensure_held()


def test_checks_have_a_time_limit(server: DynamoDbServer, key: str) -> None:
    lock = lock_of(server, key, timeout_s=0.05)
    ended = threading.Event()

    def hang(name: str, response: Answer) -> Any:
        if name == "update_item":
            ended.wait(10)
        return response()

    with lock, server.responding(hang):
        begun = time.monotonic()
        with pytest.raises(LockError, match=r"did not answer within 0\.05 s"):
            lock.renew()
        assert time.monotonic() - begun < 5
        ended.set()


def test_throttling_is_waited_for(server: DynamoDbServer, key: str, caplog: pytest.LogCaptureFixture) -> None:
    from moto.dynamodb.exceptions import DynamodbException

    left = [3]

    def throttle(_: str, response: Answer) -> Any:
        if not left[0]:
            return response()
        left[0] -= 1
        raise DynamodbException("ProvisionedThroughputExceededException", "too many requests")

    lock = lock_of(server, key)
    with server.responding(throttle):
        assert lock.acquire(10)
    assert "PAY_PER_REQUEST" in caplog.text
    lock.release()


def test_no_server(key: str) -> None:
    table = DynamoDbLockTable(TABLE, DynamoDbEndpoint(url="http://127.0.0.1:1", credentials=CREDENTIALS, timeout_s=0.2))
    lock = DynamoDBBasedLockProvider(table, key, retry_policy=QUICK)
    with pytest.raises(LockError, match=r"'locks' of DynamoDB in us-east-1 at http://127\.0\.0\.1:1 did not answer"):
        lock.try_acquire()
    assert "unreadable" in lock.describe()


def test_no_permission(server: DynamoDbServer, key: str) -> None:
    from moto.dynamodb.exceptions import DynamodbException

    def deny(*_: object) -> Any:
        raise DynamodbException("AccessDeniedException", "not authorized to perform: dynamodb:GetItem")

    with server.responding(deny), pytest.raises(LockError, match=r"dynamodb:GetItem, PutItem, UpdateItem and Delete"):
        lock_of(server, key).try_acquire()


def test_no_credentials(server: DynamoDbServer, key: str) -> None:
    lock = DynamoDBBasedLockProvider(DynamoDbLockTable(TABLE, DynamoDbEndpoint(url=server.endpoint)), key)
    with pytest.raises(ConfigError, match=r"no credentials .*hoodie\.aws\.access\.key .*AWS_ACCESS_KEY_ID"):
        lock.try_acquire()


def test_credentials_of_the_environment(server: DynamoDbServer, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    with DynamoDBBasedLockProvider(DynamoDbLockTable(TABLE, DynamoDbEndpoint(url=server.endpoint)), key) as lock:
        lock.ensure_held()


def test_no_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(SetupError, match=r"pip install 'pyhudi\[dynamodb\]'"):
        DynamoDbLockTable(TABLE)


# -- tables ------------------------------------------------------------------------------------------------------------


def test_tables_are_created(server: DynamoDbServer, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pyhudi")
    name = f"locks-{uuid4()}"
    capacity = {"billing_mode": "PROVISIONED", "read_capacity": "3", "write_capacity": "2"}
    options = options_of(server, table=name, partition_key="t", **capacity)
    storage = open_storage(tmp_path)
    locks = [make_lock_provider(storage, options) for _ in range(4)]
    acquired: list[bool] = []
    threads = [threading.Thread(target=lambda lock=lock: acquired.append(lock.try_acquire())) for lock in locks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(acquired) == [False, False, False, True]
    table = server.client.describe_table(TableName=name)["Table"]
    assert table["KeySchema"] == [{"AttributeName": "key", "KeyType": "HASH"}]
    assert table["AttributeDefinitions"] == [{"AttributeName": "key", "AttributeType": "S"}]
    throughput = table["ProvisionedThroughput"]
    assert (throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]) == (3, 2)
    assert caplog.text.count("created table") == 1
    for lock in locks:
        lock.release()


def test_tables_that_do_not_become_active(server: DynamoDbServer, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DynamoDbLockTable, "_status", lambda _: "CREATING")
    table = DynamoDbLockTable(
        f"locks-{uuid4()}", DynamoDbEndpoint(url=server.endpoint, credentials=CREDENTIALS), creation_s=0.05
    )
    with pytest.raises(LockError, match=r"not active after 0\.05 s .*CREATING.*table_creation_timeout"):
        DynamoDBBasedLockProvider(table, key).try_acquire()


def test_tables_of_something_else_are_refused(server: DynamoDbServer, key: str) -> None:
    name = f"other-{uuid4()}"
    server.client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    lock = DynamoDBBasedLockProvider(
        DynamoDbLockTable(name, DynamoDbEndpoint(url=server.endpoint, credentials=CREDENTIALS)), key
    )
    with pytest.raises(LockError, match=r"whose only key is the text 'key' .*hoodie\.write\.lock\.dynamodb\.table"):
        lock.try_acquire()


# -- options -----------------------------------------------------------------------------------------------------------


def test_options(server: DynamoDbServer, tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    make_table(storage, 9)  # its name is t
    wait = {"hoodie.write.lock.wait_time_ms": "7000"}
    one = make_lock_provider(storage, options_of(server) | wait)
    with one:
        assert "lock 't' in table 'hudi_locks' of DynamoDB in us-east-1 at http" in one.describe()
        assert (stored(server, "t", "hudi_locks") or {})["leaseDuration"] == {"S": "7000"}
        assert not make_lock_provider(storage, options_of(server, partition_key="t")).try_acquire()
        other = make_lock_provider(storage, options_of(server) | {"hoodie.table.name": "other"})
        assert other.try_acquire()
        other.release()


def test_region(server: DynamoDbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Apache Hudi: the option, or AWS_REGION, or us-east-1."""
    storage = open_storage(tmp_path)

    def described(**more: str) -> str:
        return make_lock_provider(storage, options_of(server, partition_key="t", **more)).describe()

    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    assert "in us-east-1 at" in described()
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert "in eu-west-1 at" in described()
    assert "in eu-central-1 at" in described(region="eu-central-1")


def test_options_that_are_invalid(server: DynamoDbServer, tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    given = options_of(server, partition_key="t")
    with pytest.raises(InvalidOptionError, match=r"billing_mode'; allowed: PAY_PER_REQUEST, PROVISIONED"):
        make_lock_provider(storage, given | {f"{DYNAMODB}billing_mode": "FREE"})
    with pytest.raises(ConfigError, match=r"hoodie\.aws\.secret\.key must be set together"):
        make_lock_provider(storage, given | {"hoodie.aws.secret.key": ""})
    with pytest.raises(ConfigError, match=r"hoodie\.aws\.role\.arn is not supported .*AWS_PROFILE"):
        make_lock_provider(storage, given | {"hoodie.aws.role.arn": "arn:aws:iam::1:role/x"})
    with pytest.raises(ConfigError, match=r"(?s)invalid request .*hoodie\.write\.lock\.dynamodb\.table"):
        make_lock_provider(storage, given | {f"{DYNAMODB}table": ""}).try_acquire()
    with pytest.raises(ConfigError, match=r"cannot connect to table .*hoodie\.write\.lock\.dynamodb\.region"):
        make_lock_provider(storage, given | {f"{DYNAMODB}region": "no region"}).try_acquire()


def test_endpoints_without_a_protocol_are_encrypted(tmp_path: Path) -> None:
    given = {PROVIDER: "DynamoDBBasedLockProvider", f"{DYNAMODB}endpoint_url": "localhost:1", "hoodie.table.name": "t"}
    lock = make_lock_provider(open_storage(tmp_path), given)
    assert "at https://localhost:1 " in lock.describe()


def test_names_that_follow_from_the_table(server: DynamoDbServer, tmp_path: Path) -> None:
    """The numbers are Apache Hudi 1.2.0's."""
    assert implicit_partition_key(open_storage("/tmp/t")) == "FB88BAF128102D93"
    pytest.importorskip("obstore")
    keys = {"pyhudi.storage.access_key_id": "x", "pyhudi.storage.secret_access_key": "y"}
    for scheme in ("s3", "s3a"):
        storage = open_storage(f"{scheme}://bucket/lake/t/", {**keys, "pyhudi.storage.region": "us-east-1"})
        assert implicit_partition_key(storage) == "7145F1B1B84C5529"
    storage = open_storage(tmp_path)
    expected = implicit_partition_key(storage)
    assert implicit_path(storage).split("/")[2] == expected
    name = "org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider"
    with make_lock_provider(storage, options_of(server) | {PROVIDER: name}) as lock:
        assert f"lock {expected!r} in table" in lock.describe()


# -- writes ------------------------------------------------------------------------------------------------------------

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
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=120)
    assert [process.exitcode for process in processes] == [0] * WRITERS
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
