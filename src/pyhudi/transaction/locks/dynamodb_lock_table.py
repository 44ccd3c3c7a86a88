"""Table of locks in DynamoDB, as of the DynamoDB Lock Client of AWS, which Apache Hudi uses.

A lock is an item with text attributes: ``key`` (the partition key), ``ownerName``, ``leaseDuration`` (milliseconds) and
``recordVersionNumber`` (a UUID, another one after each change). Every change is conditional on the version that was
read, so of several writers one succeeds.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from pyhudi.config import Options, options
from pyhudi.config.enums import DynamoDbBillingMode
from pyhudi.errors import ConfigError, LockError, SetupError

if TYPE_CHECKING:
    from botocore.client import BaseClient

T = TypeVar("T")

_NAMES = {"#key": "key", "#owner": "ownerName", "#lease": "leaseDuration", "#version": "recordVersionNumber"}
_RELEASED = "isReleased"
_REGION = "us-east-1"
_ATTEMPTS = 3
"""Number of times that a request is sent."""
_CONDITION_FAILED = "ConditionalCheckFailedException"
_THROTTLED = (
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
    "ThrottlingError",
    "Throttling",
)
_DENIED = (
    "AccessDenied",
    "AccessDeniedException",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "UnrecognizedClientException",
)
_log = logging.getLogger(__name__)


class ThrottledError(LockError):
    """DynamoDB refused a request because there were too many; it may be repeated later."""


class MissingTableError(LockError):
    """The table of locks does not exist."""


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
        region: Region of AWS.
        endpoint_url: Address of the service; by default that of the region.
        credentials: Access key, secret key and session token, as the arguments of boto3 that begin with ``aws_``; by
            default those that boto3 finds.
        billing: Arguments of ``create_table`` for the capacity of a new table.
        creation_s: Seconds to wait for a new table.
        timeout_s: Seconds to wait for a connection, and for a response.

    Raises:
        SetupError: The package boto3 is not installed.
    """

    def __init__(
        self,
        name: str,
        *,
        region: str = _REGION,
        endpoint_url: str | None = None,
        credentials: Mapping[str, str] | None = None,
        billing: Mapping[str, Any] | None = None,
        creation_s: float = 120.0,
        timeout_s: float = 5.0,
    ) -> None:
        try:
            import boto3  # noqa: F401
        except ImportError as error:
            raise SetupError("locks in DynamoDB require the package boto3: pip install 'pyhudi[dynamodb]'") from error
        self._name, self._region, self._endpoint_url = name, region, endpoint_url
        self._credentials = credentials or {}
        self._billing = billing or {"BillingMode": DynamoDbBillingMode.PAY_PER_REQUEST.value}
        self._creation_s, self._timeout_s = creation_s, timeout_s
        self._client: BaseClient | None = None

    @classmethod
    def of(cls, opts: Options, timeout_s: float) -> Self:
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
            region=opts.get_typed(options.LOCK_DYNAMODB_REGION) or os.environ.get("AWS_REGION") or _REGION,
            endpoint_url=_endpoint_url(opts),
            credentials=_credentials(opts),
            billing=_billing(opts),
            creation_s=opts.get_typed(options.LOCK_DYNAMODB_TABLE_CREATION_TIMEOUT) / 1000,
            timeout_s=timeout_s,
        )

    def __str__(self) -> str:
        at = f" at {self._endpoint_url}" if self._endpoint_url else ""
        return f"table {self._name!r} of DynamoDB in {self._region}{at}"

    def get(self, key: str) -> DynamoDbLockItem | None:
        """Return the lock with a key, or None. The table is created if it does not exist.

        Raises:
            LockError: The item is not a lock, or DynamoDB did not answer.
        """

        def request(client: BaseClient) -> Mapping[str, Any]:
            found = client.get_item(TableName=self._name, Key={"key": {"S": key}}, ConsistentRead=True)
            return cast("Mapping[str, Any]", found)

        try:
            item = self._send(request).get("Item")
        except MissingTableError:
            self._create()
            item = self._send(request).get("Item")
        return DynamoDbLockItem.parse(item, f"{key!r} in {self}") if item else None

    def put(self, item: DynamoDbLockItem, version: str | None) -> bool:
        """Put a lock over the version of another one, or, with None, where there is none.

        Returns:
            Whether it is stored. False is returned also if this request was sent twice and the first one succeeded.
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
            Whether it is deleted. False is returned also if this request was sent twice and the first one succeeded.
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
                if _code(error) != "ResourceInUseException":
                    raise

        self._send(create)
        deadline, pause = time.monotonic() + self._creation_s, 0.1
        while (status := self._status()) not in ("ACTIVE", "UPDATING"):
            if time.monotonic() >= deadline:
                raise LockError(
                    f"{self} was created, but is not active after {self._creation_s:g} s (status: {status}); write "
                    f"again later, or set a longer {options.LOCK_DYNAMODB_TABLE_CREATION_TIMEOUT.key}"
                )
            time.sleep(min(pause, max(deadline - time.monotonic(), 0)))
            pause = min(pause * 2, 5.0)

    def _status(self) -> str | None:
        try:
            found = self._send(lambda client: client.describe_table(TableName=self._name))
        except MissingTableError:
            return None
        return str(found["Table"]["TableStatus"])

    def _change(self, request: Callable[[BaseClient], object]) -> bool:
        """Send a conditional request. Return whether its condition was met."""
        from botocore.exceptions import ClientError

        def conditionally(client: BaseClient) -> bool:
            try:
                request(client)
            except ClientError as error:
                if _code(error) == _CONDITION_FAILED:
                    return False
                raise
            return True

        return self._send(conditionally)

    def _send(self, request: Callable[[BaseClient], T]) -> T:
        """Send a request.

        Raises:
            ConfigError: There are no credentials, or the region or the endpoint is invalid.
            LockError: The request failed.
        """
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            NoCredentialsError,
            ParamValidationError,
            PartialCredentialsError,
        )

        try:
            if self._client is None:
                self._client = self._connect()
            return request(self._client)
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise ConfigError(
                f"no credentials for {self} ({error}); set {options.AWS_ACCESS_KEY.key} and "
                f"{options.AWS_SECRET_KEY.key}, or the environment variables AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or a profile (AWS_PROFILE)"
            ) from error
        except ParamValidationError as error:
            raise ConfigError(
                f"invalid request to {self} ({error}); check {options.LOCK_DYNAMODB_TABLE.key} and "
                f"{options.LOCK_DYNAMODB_PARTITION_KEY.key}"
            ) from error
        except ClientError as error:
            raise self._refusal(error) from error
        except BotoCoreError as error:
            raise LockError(
                f"{self} did not answer within {self._timeout_s:g} s ({error}); check "
                f"{options.LOCK_DYNAMODB_REGION.key}, {options.LOCK_DYNAMODB_ENDPOINT_URL.key} and the network"
            ) from error

    def _refusal(self, error: Exception) -> LockError:
        """Return the error for a response of DynamoDB."""
        code = _code(error)
        if code == "ResourceNotFoundException":
            return MissingTableError(f"{self} does not exist ({error}); write again, so that it is created")
        if code in _THROTTLED:
            return ThrottledError(
                f"{self} is asked too often ({error}); set its billing mode to PAY_PER_REQUEST, or a higher capacity"
            )
        if code in _DENIED:
            return LockError(
                f"{self} refused the credentials ({error}); check that they are valid and that they permit "
                "dynamodb:GetItem, PutItem, UpdateItem and DeleteItem, and, unless the table exists, CreateTable and "
                "DescribeTable"
            )
        if code == "ValidationException" and "schema" in str(error):
            return LockError(
                f"{self} has other keys than a table of locks, whose only key is the text 'key' ({error}); set "
                f"another {options.LOCK_DYNAMODB_TABLE.key}"
            )
        return LockError(f"{self} refused a request: {error}")

    def _connect(self) -> BaseClient:
        from boto3.session import Session
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        config = Config(
            connect_timeout=self._timeout_s,
            read_timeout=self._timeout_s,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
        )
        try:
            return Session().client(
                "dynamodb",
                region_name=self._region,
                endpoint_url=self._endpoint_url,
                config=config,
                **self._credentials,
            )
        except (BotoCoreError, ValueError) as error:
            raise ConfigError(
                f"cannot connect to {self} ({error}); check {options.LOCK_DYNAMODB_REGION.key}, "
                f"{options.LOCK_DYNAMODB_ENDPOINT_URL.key} and the configuration files of AWS"
            ) from error


def _code(error: Exception) -> str:
    """Return the code of an error in a response."""
    response: Mapping[str, Any] = getattr(error, "response", {})
    return str(response.get("Error", {}).get("Code", ""))


def _names(names: list[str]) -> dict[str, dict[str, str]]:
    return {"ExpressionAttributeNames": {name: _NAMES[name] for name in names}}


def _endpoint_url(opts: Options) -> str | None:
    """Return the address of the service. As in Apache Hudi it is encrypted if it names no protocol."""
    url = opts.get_typed(options.LOCK_DYNAMODB_ENDPOINT_URL)
    if not url or url.startswith(("http://", "https://")):
        return url or None
    return f"https://{url}"


def _billing(opts: Options) -> dict[str, Any]:
    mode = opts.get_typed(options.LOCK_DYNAMODB_BILLING_MODE)
    if mode is not DynamoDbBillingMode.PROVISIONED:
        return {"BillingMode": mode.value}
    capacity = {
        "ReadCapacityUnits": opts.get_typed(options.LOCK_DYNAMODB_READ_CAPACITY),
        "WriteCapacityUnits": opts.get_typed(options.LOCK_DYNAMODB_WRITE_CAPACITY),
    }
    return {"BillingMode": mode.value, "ProvisionedThroughput": capacity}


def _credentials(opts: Options) -> dict[str, str]:
    """Return the credentials of the options, none if there are none, as in Apache Hudi."""
    if opts.get_typed(options.AWS_ROLE_ARN):
        raise ConfigError(
            f"{options.AWS_ROLE_ARN.key} is not supported for locks in DynamoDB; set role_arn in a profile of "
            "~/.aws/config, and name the profile in the environment variable AWS_PROFILE"
        )
    access, secret = opts.get_typed(options.AWS_ACCESS_KEY), opts.get_typed(options.AWS_SECRET_KEY)
    if not access and not secret:
        return {}
    if not access or not secret:
        raise ConfigError(f"{options.AWS_ACCESS_KEY.key} and {options.AWS_SECRET_KEY.key} must be set together")
    token = opts.get_typed(options.AWS_SESSION_TOKEN)
    given = {"aws_access_key_id": access, "aws_secret_access_key": secret}
    return {**given, "aws_session_token": token} if token else given
