"""Locks in DynamoDB whose requests fail, or have lost answers."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from pyhudi.errors import ConfigError, LockError, SetupError
from pyhudi.transaction.locks.dynamodb.dynamodb_client import DynamoDbEndpoint
from pyhudi.transaction.locks.dynamodb.dynamodb_lock import DynamoDBBasedLockProvider, time_with_suspension
from pyhudi.transaction.locks.dynamodb.dynamodb_lock_table import DynamoDbLockTable
from tests.dynamodb_server import CREDENTIALS, DynamoDbServer
from tests.unit.transaction.lock_suite import QUICK
from tests.unit.transaction.locks.dynamodb.dynamodb_locks import TABLE, lock_of, stored

Answer = Callable[[], Any]


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

    monkeypatch.setattr("pyhudi.transaction.locks.dynamodb.dynamodb_lock.LockHeartbeat", interrupt)
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
        now = time_with_suspension() + 3600
        monkeypatch.setattr("pyhudi.transaction.locks.dynamodb.dynamodb_lock.time_with_suspension", lambda: now)
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
