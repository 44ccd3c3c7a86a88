"""Commit callbacks: each commit of a write is sent to a URL or to a topic of Kafka, with Apache Hudi's document
(https://hudi.apache.org/docs/platform_services_post_commit_callback)."""

from __future__ import annotations

import json
import logging
from typing import Any

from pyhudi.config import Options, options
from pyhudi.errors import ConfigError
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Instant
from pyhudi.transaction.post_commit.http_callback import check_http_callback, post_commit
from pyhudi.transaction.post_commit.kafka_callback import check_kafka_callback, publish_commit

_HTTP, _KAFKA = "HoodieWriteCommitHttpCallback", "HoodieWriteCommitKafkaCallback"
_WITH_JSON_STATS = 6
"""A table version whose commits contain write stats as JSON, with the names of the callback's document."""

_log = logging.getLogger(__name__)


def check_callback_options(opts: Options) -> None:
    """Check the options of callbacks, before anything is done.

    Raises:
        ConfigError: The callback is not supported, or its options are invalid.
        SetupError: A required package is not installed.
    """
    if not opts.get_typed(options.CALLBACK_ON):
        return
    check = {_HTTP: check_http_callback, _KAFKA: check_kafka_callback}.get(_callback_class(opts))
    if check is None:
        raise ConfigError(
            f"{options.CALLBACK_CLASS.key}={opts.get_typed(options.CALLBACK_CLASS)} is not supported; use {_HTTP} or "
            f"{_KAFKA}, or register a function with pyhudi.metrics.add_listener(), which is called after each commit"
        )
    check(opts)


def send_commit_callback(uri: str, table_name: str, instant: Instant, metadata: CommitMetadata, opts: Options) -> None:
    """Send a published commit to the receiver of the options, if there is one. Failures are logged, because the commit
    is complete.

    Args:
        uri: URI of the table.
        table_name: Its name.
        instant: The completed instant.
        metadata: The published metadata.
        opts: Options of the write.
    """
    if not opts.get_typed(options.CALLBACK_ON):
        return
    try:
        document = json.dumps(callback_document(uri, table_name, instant, metadata))
        if _callback_class(opts) == _KAFKA:
            publish_commit(document, table_name, opts)
        else:
            post_commit(document, opts)
    except Exception as failure:
        _log.warning("the callback of the commit %s failed: %s", instant.requested, failure)


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


def _callback_class(opts: Options) -> str:
    """Return the simple name of the callback's class in Apache Hudi."""
    return opts.get_typed(options.CALLBACK_CLASS).rpartition(".")[2]
