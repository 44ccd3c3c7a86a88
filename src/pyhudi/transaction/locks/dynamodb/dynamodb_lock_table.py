"""Table of locks in DynamoDB, as of the DynamoDB Lock Client of AWS, which Apache Hudi uses.

A lock is an item with text attributes: ``key`` (the partition key), ``ownerName``, ``leaseDuration`` (milliseconds) and
``recordVersionNumber`` (a UUID, another one after each change). Every change is conditional on the version that was
read, so of several writers one succeeds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

from pyhudi.config import Options, options
from pyhudi.config.enums import DynamoDbBillingMode
from pyhudi.errors import LockError
from pyhudi.transaction.locks.dynamodb.dynamodb_client import (
    DynamoDbClient,
    DynamoDbEndpoint,
    MissingTableError,
    error_code,
)

if TYPE_CHECKING:
    from botocore.client import BaseClient

_NAMES = {"#key": "key", "#owner": "ownerName", "#lease": "leaseDuration", "#version": "recordVersionNumber"}
_RELEASED = "isReleased"
_CONDITION_FAILED = "ConditionalCheckFailedException"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DynamoDbLockItem:
    """A lock in the table. ``released`` is true for an item that its owner has released and kept."""

    key: str
    owner: str
    lease_ms: int
    version: str
    released: bool = False

    def attributes(self) -> dict[str, dict[str, str]]:
        """Return the item as it is stored while the lock is held."""
        texts = {"key": self.key, "ownerName": self.owner, "leaseDuration": str(self.lease_ms)}
        return {name: {"S": text} for name, text in {**texts, "recordVersionNumber": self.version}.items()}

    @classmethod
    def parse(cls, item: Mapping[str, Mapping[str, str]], where: str) -> Self:
        """Parse a stored item.

        Raises:
            LockError: It is not a lock.
        """
        try:
            texts = {name: item[name]["S"] for name in ("key", "ownerName", "leaseDuration", "recordVersionNumber")}
            lease = int(texts["leaseDuration"])
        except (KeyError, TypeError, ValueError) as error:
            raise LockError(
                f"{where} is an item with other attributes than those of a lock ({error!r}); remove it if no writer "
                f"is running, or set another {options.LOCK_DYNAMODB_PARTITION_KEY.key}"
            ) from error
        return cls(texts["key"], texts["ownerName"], lease, texts["recordVersionNumber"], _RELEASED in item)


class DynamoDbLockTable:
    """A table of locks. It is created at the first request if it does not exist.

    Args:
        name: Name of the table.
        endpoint: The service that has the table.
        billing: Arguments of ``create_table`` for the capacity of a new table.
        creation_s: Seconds to wait for a new table.

    Raises:
        SetupError: The package boto3 is not installed.
    """

    def __init__(
        self,
        name: str,
        endpoint: DynamoDbEndpoint | None = None,
        *,
        billing: Mapping[str, Any] | None = None,
        creation_s: float = 120.0,
    ) -> None:
        self._name, self._client = name, DynamoDbClient(name, endpoint or DynamoDbEndpoint())
        self._billing = billing or {"BillingMode": DynamoDbBillingMode.PAY_PER_REQUEST.value}
        self._creation_s = creation_s

    @classmethod
    def from_options(cls, opts: Options, timeout_s: float) -> Self:
        """Create the table from the options ``hoodie.write.lock.dynamodb.*`` and ``hoodie.aws.*``.

        Args:
            opts: Options of the lock.
            timeout_s: Seconds to wait for a connection, and for a response.

        Raises:
            ConfigError: Options are incomplete, or request the assumption of a role.
            SetupError: The package boto3 is not installed.
        """
        return cls(
            opts.get_typed(options.LOCK_DYNAMODB_TABLE),
            DynamoDbEndpoint.from_options(opts, timeout_s),
            billing=_billing(opts),
            creation_s=opts.get_typed(options.LOCK_DYNAMODB_TABLE_CREATION_TIMEOUT) / 1000,
        )

    def __str__(self) -> str:
        return str(self._client)

    def get(self, key: str) -> DynamoDbLockItem | None:
        """Return the lock with a key, or None. The table is created if it does not exist.

        Raises:
            LockError: The item is not a lock, or DynamoDB did not answer.
        """

        def request(client: BaseClient) -> Mapping[str, Any]:
            response = client.get_item(TableName=self._name, Key={"key": {"S": key}}, ConsistentRead=True)
            return cast("Mapping[str, Any]", response)

        try:
            item = self._client.send(request).get("Item")
        except MissingTableError:
            self._create()
            item = self._client.send(request).get("Item")
        return DynamoDbLockItem.parse(item, f"{key!r} in {self}") if item else None

    def put(self, item: DynamoDbLockItem, version: str | None) -> bool:
        """Replace a version of the lock, or, with None, create the lock if none exists.

        Returns:
            True if it is stored. False is returned also if this request was sent twice and the first one succeeded.
        """
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(#key)"}
        names = ["#key"]
        if version is not None:
            condition = {
                "ConditionExpression": "#version = :version",
                "ExpressionAttributeValues": {":version": {"S": version}},
            }
            names = ["#version"]
        stored = item.attributes()
        return self._change(
            lambda client: client.put_item(TableName=self._name, Item=stored, **condition, **_names(names))
        )

    def renew(self, item: DynamoDbLockItem, version: str) -> bool:
        """Give a lock the lease and version of ``item`` if it has the same owner and the version ``version``.

        Returns:
            As for `put`.
        """
        values = {":version": version, ":owner": item.owner, ":lease": str(item.lease_ms), ":new": item.version}
        return self._change(
            lambda client: client.update_item(
                TableName=self._name,
                Key={"key": {"S": item.key}},
                UpdateExpression="SET #lease = :lease, #version = :new",
                ConditionExpression="#version = :version AND #owner = :owner",
                ExpressionAttributeValues={name: {"S": value} for name, value in values.items()},
                **_names(["#lease", "#version", "#owner"]),
            )
        )

    def delete(self, item: DynamoDbLockItem) -> bool:
        """Delete a lock if it has the same owner and version.

        Returns:
            True if it is deleted. False is returned also if this request was sent twice and the first one succeeded.
        """
        return self._change(
            lambda client: client.delete_item(
                TableName=self._name,
                Key={"key": {"S": item.key}},
                ConditionExpression="#version = :version AND #owner = :owner",
                ExpressionAttributeValues={":version": {"S": item.version}, ":owner": {"S": item.owner}},
                **_names(["#version", "#owner"]),
            )
        )

    def _create(self) -> None:
        """Create the table, and wait until it can be used. Another writer may be creating it as well."""
        from botocore.exceptions import ClientError

        def create(client: BaseClient) -> None:
            try:
                client.create_table(
                    TableName=self._name,
                    KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
                    AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
                    **self._billing,
                )
                _log.info("created %s", self)
            except ClientError as error:
                if error_code(error) != "ResourceInUseException":
                    raise

        self._client.send(create)
        deadline, pause = time.monotonic() + self._creation_s, 0.1
        while (status := self.status()) not in ("ACTIVE", "UPDATING"):
            if time.monotonic() >= deadline:
                raise LockError(
                    f"{self} was created, but is not active after {self._creation_s:g} s (status: {status}); write "
                    f"again later, or set a longer {options.LOCK_DYNAMODB_TABLE_CREATION_TIMEOUT.key}"
                )
            time.sleep(min(pause, max(deadline - time.monotonic(), 0)))
            pause = min(pause * 2, 5.0)

    def status(self) -> str | None:
        """Return the status of the table in DynamoDB, such as ``ACTIVE``; None if there is no table."""
        try:
            response = self._client.send(lambda client: client.describe_table(TableName=self._name))
        except MissingTableError:
            return None
        return str(response["Table"]["TableStatus"])

    def _change(self, request: Callable[[BaseClient], object]) -> bool:
        """Send a conditional request. Return whether its condition was met."""
        from botocore.exceptions import ClientError

        def conditionally(client: BaseClient) -> bool:
            try:
                request(client)
            except ClientError as error:
                if error_code(error) == _CONDITION_FAILED:
                    return False
                raise
            return True

        return self._client.send(conditionally)


def _names(names: list[str]) -> dict[str, dict[str, str]]:
    return {"ExpressionAttributeNames": {name: _NAMES[name] for name in names}}


def _billing(opts: Options) -> dict[str, Any]:
    mode = opts.get_typed(options.LOCK_DYNAMODB_BILLING_MODE)
    if mode is not DynamoDbBillingMode.PROVISIONED:
        return {"BillingMode": mode.value}
    capacity = {
        "ReadCapacityUnits": opts.get_typed(options.LOCK_DYNAMODB_READ_CAPACITY),
        "WriteCapacityUnits": opts.get_typed(options.LOCK_DYNAMODB_WRITE_CAPACITY),
    }
    return {"BillingMode": mode.value, "ProvisionedThroughput": capacity}
