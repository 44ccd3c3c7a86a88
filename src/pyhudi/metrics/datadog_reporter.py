"""Metrics for Datadog, by version 1 of "submit metrics" of its API (https://docs.datadoghq.com/api/latest/metrics)."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Mapping
from typing import Any

from pyhudi.config import Options, options
from pyhudi.config.enums import DatadogSite
from pyhudi.config.http_urls import is_http_url
from pyhudi.errors import ConfigError

_URLS = {DatadogSite.US: "https://api.datadoghq.com", DatadogSite.EU: "https://api.datadoghq.eu"}
_API_KEY_HEADER = "DD-API-KEY"


def check_datadog(opts: Options) -> None:
    """Check the options of the reporter.

    Raises:
        ConfigError: The key or the address is missing or invalid.
    """
    if not opts.get_typed(options.DATADOG_KEY):
        raise ConfigError(f"metrics for Datadog require an API key in {options.DATADOG_KEY.key}")
    _api_url(opts)


def send_to_datadog(values: Mapping[str, float], opts: Options) -> None:
    """Send gauges to the API in the options.

    Raises:
        OSError: The API cannot be reached, or rejects the request.
    """
    document = datadog_series(values, opts, int(time.time()))
    headers = {_API_KEY_HEADER: opts.get_typed(options.DATADOG_KEY) or "", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{_api_url(opts)}/api/v1/series", json.dumps(document).encode(), headers)
    with urllib.request.urlopen(request, timeout=opts.get_typed(options.DATADOG_TIMEOUT)):
        pass


def datadog_series(values: Mapping[str, float], opts: Options, seconds: int) -> dict[str, Any]:
    """Return the document of gauges. ``seconds``: time of the values, since the epoch."""
    prefix, host = opts.get_typed(options.DATADOG_PREFIX), opts.get_typed(options.DATADOG_HOST)
    tags = opts.get_typed(options.DATADOG_TAGS)
    start = f"{prefix}." if prefix else ""
    shared: dict[str, Any] = {"type": "gauge", "tags": list(tags)}
    if host:
        shared["host"] = host
    return {
        "series": [{"metric": start + name, "points": [[seconds, value]], **shared} for name, value in values.items()]
    }


def _api_url(opts: Options) -> str:
    """Return the address of the API.

    Raises:
        ConfigError: There is none, or it is invalid.
    """
    site, url = opts.get_typed(options.DATADOG_SITE), opts.get_typed(options.DATADOG_URL)
    if url is None:
        if site is None:
            raise ConfigError(
                f"metrics for Datadog require the site in {options.DATADOG_SITE.key} (US or EU), or the address of its "
                f"API in {options.DATADOG_URL.key}"
            )
        return _URLS[site]
    if not is_http_url(url):
        raise ConfigError(f"{options.DATADOG_URL.key}={url!r} is not an HTTP or HTTPS URL")
    return url.rstrip("/")
