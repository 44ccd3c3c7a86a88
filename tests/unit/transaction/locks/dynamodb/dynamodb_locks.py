"""Locks and their items in DynamoDB, for tests."""

from __future__ import annotations

from typing import Any

from pyhudi.transaction.locks.dynamodb.dynamodb_client import DynamoDbEndpoint
from pyhudi.transaction.locks.dynamodb.dynamodb_lock import DynamoDBBasedLockProvider
from pyhudi.transaction.locks.dynamodb.dynamodb_lock_table import DynamoDbLockTable
from tests.dynamodb_server import CREDENTIALS, DynamoDbServer
from tests.unit.transaction.lock_suite import QUICK

PROVIDER, DYNAMODB = "hoodie.write.lock.provider", "hoodie.write.lock.dynamodb."
TABLE = "locks"
CLIENTS: dict[tuple[object, ...], Any] = {}


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
