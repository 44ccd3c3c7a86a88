"""Options of locks in DynamoDB, and tables that are created for them."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from uuid import uuid4

import pytest

from pyhudi.errors import ConfigError, InvalidOptionError, LockError
from pyhudi.storage import open_storage
from pyhudi.transaction.locks.base_path_hash import base_path_hash
from pyhudi.transaction.locks.dynamodb.dynamodb_client import DynamoDbEndpoint
from pyhudi.transaction.locks.dynamodb.dynamodb_lock import DynamoDBBasedLockProvider
from pyhudi.transaction.locks.dynamodb.dynamodb_lock_table import DynamoDbLockTable
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from pyhudi.transaction.locks.zookeeper_lock import implicit_path
from tests.dynamodb_server import CREDENTIALS, DynamoDbServer
from tests.unit.transaction.locks.dynamodb.dynamodb_locks import DYNAMODB, PROVIDER, options_of, stored
from tests.unit.transaction.tables import make_table


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
    monkeypatch.setattr(DynamoDbLockTable, "status", lambda _: "CREATING")
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
    with pytest.raises(ConfigError, match=r"hoodie\.aws\.role\.arn is not supported; .*AWS_PROFILE"):
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
    assert base_path_hash(open_storage("/tmp/t")) == "FB88BAF128102D93"
    pytest.importorskip("obstore")
    keys = {"pyhudi.storage.access_key_id": "x", "pyhudi.storage.secret_access_key": "y"}
    for scheme in ("s3", "s3a"):
        storage = open_storage(f"{scheme}://bucket/lake/t/", {**keys, "pyhudi.storage.region": "us-east-1"})
        assert base_path_hash(storage) == "7145F1B1B84C5529"
    storage = open_storage(tmp_path)
    expected = base_path_hash(storage)
    assert implicit_path(storage).split("/")[2] == expected
    name = "org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider"
    with make_lock_provider(storage, options_of(server) | {PROVIDER: name}) as lock:
        assert f"lock {expected!r} in table" in lock.describe()
