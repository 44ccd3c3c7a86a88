"""Commit callbacks: a URL that is called after each commit, as by Apache Hudi's ``HoodieWriteCommitHttpCallback``."""

from __future__ import annotations

import json
import logging
import urllib.request
from typing import Any

from pyhudi.config import Options, options
from pyhudi.config.http_urls import is_http_url
from pyhudi.errors import ConfigError
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Instant

_HTTP_CALLBACK = "HoodieWriteCommitHttpCallback"
_API_KEY_HEADER = "HUDI-CALLBACK-KEY"
_WITH_JSON_STATS = 6
"""A table version whose commits contain write stats as JSON, with the names of the callback's document."""

_log = logging.getLogger(__name__)


def check_callback_options(opts: Options) -> None:
    """Check the options of callbacks, before anything is done.

    Raises:
        ConfigError: The callback is not supported, or its URL or headers are invalid.
    """
    if not opts.get_typed(options.CALLBACK_ON):
        return
    name = opts.get_typed(options.CALLBACK_CLASS)
    if name.rpartition(".")[2] != _HTTP_CALLBACK:
        raise ConfigError(
            f"{options.CALLBACK_CLASS.key}={name} is not supported; use {_HTTP_CALLBACK}, or register a function with "
            "pyhudi.metrics.add_listener(), which is called after each commit"
        )
    url = opts.get_typed(options.CALLBACK_URL)
    if not url or not is_http_url(url):
        raise ConfigError(
            f"{options.CALLBACK_ON.key}=true requires an HTTP or HTTPS URL in {options.CALLBACK_URL.key}, not {url!r}"
        )
    _custom_headers(opts)


def send_commit_callback(uri: str, table_name: str, instant: Instant, metadata: CommitMetadata, opts: Options) -> None:
    """Send a published commit to the URL of the options, if there is one. Failures are logged, because the commit is
    complete.

    Args:
        uri: URI of the table.
        table_name: Its name.
        instant: The completed instant.
        metadata: The published metadata.
        opts: Options of the write.
    """
    if not opts.get_typed(options.CALLBACK_ON):
        return
    url = opts.get_typed(options.CALLBACK_URL)
    try:
        body = json.dumps(callback_document(uri, table_name, instant, metadata)).encode()
        headers = {
            _API_KEY_HEADER: opts.get_typed(options.CALLBACK_API_KEY),
            "Content-Type": "application/json; charset=UTF-8",
            **_custom_headers(opts),
        }
        request = urllib.request.Request(str(url), body, headers)
        with urllib.request.urlopen(request, timeout=opts.get_typed(options.CALLBACK_TIMEOUT)):
            pass
    except Exception as failure:
        _log.warning("the callback %s of the commit %s failed: %s", url, instant.requested, failure)


def callback_document(uri: str, table_name: str, instant: Instant, metadata: CommitMetadata) -> dict[str, Any]:
    """Return the document of a commit, with the names of ``HoodieWriteCommitCallbackMessage``: the instant, the table,
    the write stats of its files and the extra metadata."""
    record = json.loads(metadata.encode(_WITH_JSON_STATS, instant.action))
    return {
        "commitTime": instant.requested,
        "tableName": table_name,
        "basePath": uri,
        "hoodieWriteStat": [stat for stats in record["partitionToWriteStats"].values() for stat in stats],
        "commitActionType": str(instant.action),
        "extraMetadata": dict(metadata.extra),
    }


def _custom_headers(opts: Options) -> dict[str, str]:
    """Return the headers of the options.

    Raises:
        ConfigError: A header is not ``name:value``.
    """
    headers = {}
    for part in filter(str.strip, opts.get_typed(options.CALLBACK_HEADERS).split(";")):
        name, _, value = (text.strip() for text in part.partition(":"))
        if not name or not value or not (name + value).isprintable():
            raise ConfigError(
                f"{options.CALLBACK_HEADERS.key} has the invalid header {part.strip()!r}; write name:value;name:value"
            )
        headers[name] = value
    return headers
