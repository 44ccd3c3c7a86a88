"""A DynamoDB server, and settings of the client by which tests do not wait."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from pyhudi.transaction.locks.dynamodb.dynamodb_client import DynamoDbClient
from tests.dynamodb_server import DynamoDbServer, dynamodb_server
from tests.unit.transaction.locks.dynamodb.dynamodb_locks import CLIENTS


@pytest.fixture(scope="session")
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
        if settings not in CLIENTS:
            CLIENTS[settings] = connect(client)
        return CLIENTS[settings]

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
