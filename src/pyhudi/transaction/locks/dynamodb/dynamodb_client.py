"""Client of a table in DynamoDB, with actionable error messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pyhudi.config import Options, options
from pyhudi.config.aws_settings import aws_credentials, aws_region
from pyhudi.errors import ConfigError, LockError, SetupError

if TYPE_CHECKING:
    from botocore.client import BaseClient

T = TypeVar("T")

_REGION = "us-east-1"
_ATTEMPTS = 3
"""Number of times that a request is sent."""
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


class ThrottledError(LockError):
    """DynamoDB refused a request because there were too many; it may be repeated later."""


class MissingTableError(LockError):
    """The table of locks does not exist."""


@dataclass(frozen=True, slots=True)
class DynamoDbEndpoint:
    """Region, address and credentials of requests.

    Attributes:
        region: Region of AWS.
        url: Address of the service; None: that of the region.
        credentials: Access key, secret key and session token, as the arguments of boto3 that begin with ``aws_``;
            none: those that boto3 finds.
        timeout_s: Seconds to wait for a connection, and for a response.
    """

    region: str = _REGION
    url: str | None = None
    credentials: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 5.0

    @classmethod
    def from_options(cls, opts: Options, timeout_s: float) -> Self:
        """Return the endpoint of the options ``hoodie.write.lock.dynamodb.*`` and ``hoodie.aws.*``.

        Args:
            opts: Options of the lock.
            timeout_s: Seconds to wait for a connection, and for a response.

        Raises:
            ConfigError: Options are incomplete, or request the assumption of a role.
        """
        region = aws_region(opts.get_typed(options.LOCK_DYNAMODB_REGION)) or _REGION
        return cls(region, _endpoint_url(opts), aws_credentials(opts), timeout_s)


class DynamoDbClient:
    """Client of a table. It connects at the first request.

    Args:
        table: Name of the table.
        endpoint: The service that has the table.

    Raises:
        SetupError: The package boto3 is not installed.
    """

    def __init__(self, table: str, endpoint: DynamoDbEndpoint) -> None:
        try:
            import boto3  # noqa: F401
        except ImportError as error:
            raise SetupError("locks in DynamoDB require the package boto3: pip install 'pyhudi[dynamodb]'") from error
        self._table, self._endpoint = table, endpoint
        self._client: BaseClient | None = None

    def __str__(self) -> str:
        at = f" at {self._endpoint.url}" if self._endpoint.url else ""
        return f"table {self._table!r} of DynamoDB in {self._endpoint.region}{at}"

    def send(self, request: Callable[[BaseClient], T]) -> T:
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
                f"{self} did not answer within {self._endpoint.timeout_s:g} s ({error}); check "
                f"{options.LOCK_DYNAMODB_REGION.key}, {options.LOCK_DYNAMODB_ENDPOINT_URL.key} and the network"
            ) from error

    def _refusal(self, error: Exception) -> LockError:
        """Return the error for a response of DynamoDB."""
        code = error_code(error)
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
            connect_timeout=self._endpoint.timeout_s,
            read_timeout=self._endpoint.timeout_s,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
        )
        try:
            return Session().client(
                "dynamodb",
                region_name=self._endpoint.region,
                endpoint_url=self._endpoint.url,
                config=config,
                **self._endpoint.credentials,
            )
        except (BotoCoreError, ValueError) as error:
            raise ConfigError(
                f"cannot connect to {self} ({error}); check {options.LOCK_DYNAMODB_REGION.key}, "
                f"{options.LOCK_DYNAMODB_ENDPOINT_URL.key} and the configuration files of AWS"
            ) from error


def error_code(error: Exception) -> str:
    """Return the code of an error in a response."""
    response: Mapping[str, Any] = getattr(error, "response", {})
    return str(response.get("Error", {}).get("Code", ""))


def _endpoint_url(opts: Options) -> str | None:
    """Return the address of the service. As in Apache Hudi it is encrypted if it names no protocol."""
    url = opts.get_typed(options.LOCK_DYNAMODB_ENDPOINT_URL)
    if not url or url.startswith(("http://", "https://")):
        return url or None
    return f"https://{url}"
