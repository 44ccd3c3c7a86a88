"""Location of an object storage and the settings of the object library to access it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pyhudi.errors import ConfigError, InvalidOptionError, StorageError

PREFIX = "pyhudi.storage."
_STORES = {"s3": "S3Store", "gs": "GCSStore", "az": "AzureStore"}
_CLIENT_KEYS = {
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "http1_only",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_url",
    "proxy_ca_certificate",
    "proxy_excludes",
    "timeout",
    "user_agent",
}
"""Settings of the HTTP client and of retries, in contrast to those of the store."""
_RETRY_KEYS = {"max_retries", "retry_timeout"}
_SECRET_WORDS = ("key", "token", "secret", "sas")
_GIVE = (
    f"set them by options ({PREFIX}access_key_id, {PREFIX}secret_access_key, …) or in the environment (AWS_…, "
    "GOOGLE_…, AZURE_…)"
)
_CURES = (
    (r"http://.*builder error", f"an endpoint without TLS needs {PREFIX}allow_http=true"),
    (r"169\.254\.169\.254|metadata\.google\.internal", f"no credentials: {_GIVE}"),
    (r"incorrectly configured region", f"the bucket is in another region: set it by {PREFIX}region or AWS_REGION"),
    (r"NoSuchBucket|ContainerNotFound|bucket does not exist", "there is no such bucket: check its name, or create it"),
    (r"^(PermissionDenied|Unauthenticated)Error", f"access denied with these credentials: {_GIVE}"),
)
"""Patterns for class names and messages of the object library's errors, with the solution."""


@dataclass(frozen=True)
class ObjectStoreLocation:
    """Location of an object storage and the settings to access it. ``settings`` hold credentials and are never
    displayed."""

    kind: str
    bucket: str
    prefix: str
    root: str
    spark_root: str
    settings: Mapping[str, str] = field(repr=False)
    home: int  # Id of the process that holds an in-memory store.

    def connect(self, obstore: Any) -> Any:
        """Return the object library's store for the bucket."""
        client = {name: value for name, value in self.settings.items() if name in _CLIENT_KEYS}
        config = {name: value for name, value in self.settings.items() if name not in _CLIENT_KEYS | _RETRY_KEYS}
        if self.kind == "s3":
            config.setdefault("conditional_put", "etag")
            named = {"region", "aws_region", "default_region", "aws_default_region"} & config.keys()
            if not named and not {"AWS_REGION", "AWS_DEFAULT_REGION"} & os.environ.keys():
                config["region"] = "us-east-1"  # ignored by compatible servers; Amazon responds with the correct one
        try:
            make = getattr(obstore.store, _STORES[self.kind])
            return make(self.bucket, config=config, client_options=client or None, retry_config=self._retrying())
        except obstore.exceptions.UnknownConfigurationKeyError as error:
            keys = ", ".join(sorted(PREFIX + name for name in self.settings if not _is_secret(name)))
            raise ConfigError(
                f"unknown option for the store of {self.root!r} (set: {keys}): {reason_of(error)}"
            ) from error
        except (obstore.exceptions.BaseError, ValueError) as error:
            raise StorageError(f"cannot open {self.root!r}: {reason_of(error)}") from error

    def _retrying(self) -> dict[str, Any] | None:
        """Return the settings for retries of failed requests: their number and time limit in seconds. ``None``: the
        library's defaults."""
        retry: dict[str, Any] = {}
        for name in _RETRY_KEYS & self.settings.keys():
            raw = self.settings[name]
            if not raw.isdecimal():
                raise InvalidOptionError(PREFIX + name, raw, "an integer of at least 0")
            retry[name] = timedelta(seconds=int(raw)) if name == "retry_timeout" else int(raw)
        return retry or None


def _is_secret(name: str) -> bool:
    return any(word in name for word in _SECRET_WORDS)


def reason_of(error: BaseException) -> str:
    """Return the reason of an object library error, with the solution if it is known."""
    message = str(error).split("\n\nDebug source", 1)[0]
    cure = next((cure for mark, cure in _CURES if re.search(mark, f"{type(error).__name__} {message}")), None)
    return message if cure is None else f"{message}; {cure}"
