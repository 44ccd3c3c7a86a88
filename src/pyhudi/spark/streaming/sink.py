"""The streaming sink: each micro-batch is one commit, which contains its number (`pyhudi.streaming.checkpoint`).

It is based on ``foreachBatch``: Spark repeats a batch that may not have completed. A batch that the
table already contains is skipped, so each batch is committed once, wherever the process was killed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from pyhudi.config import Options, options
from pyhudi.config.enums import TableType
from pyhudi.config.misspelled_options import refuse_misspelled
from pyhudi.errors import ConfigError, HudiError, InvalidOptionError, ValidationError
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.session_settings import STREAMING_QUERY_ID
from pyhudi.spark.streaming.compactor import AsyncCompactor
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.spark.write.write_job import IdempotentCommit
from pyhudi.storage import open_storage
from pyhudi.streaming.checkpoint import SinkCheckpoint, SinkHistory, check_continuity, query_id
from pyhudi.write.settings.unsupported_options import check_unsupported_options
from pyhudi.write.write_operations import check_operation

_log = logging.getLogger(__name__)


class StreamingSink:
    """Writer of the micro-batches of one query to a table, for ``foreachBatch``."""

    def __init__(self, path: str, sink_options: Mapping[str, str], checkpoint: str | None = None) -> None:
        """Initialise the sink.

        Args:
            path: The table; the first batch creates it if it does not exist.
            sink_options: Apache Hudi's options.
            checkpoint: Checkpoint location of the query, from which its id is read; None in classic sessions, where
                Spark sets the id as a property of the thread that runs the batch.

        Raises:
            ConfigError, InvalidOptionError: An option is not supported.
        """
        self.path = path
        self.opts = check_sink_options(sink_options)
        self._sink_options = dict(sink_options)
        self._storage = open_storage(path, self.opts)
        self._identifier = self.opts.get_typed(options.STREAMING_CHECKPOINT_IDENTIFIER)
        self._compactor = AsyncCompactor(self._storage, self.opts)
        self._checkpoint = None if checkpoint is None else open_storage(checkpoint, self.opts)
        self._query: StreamingQuery | None = None

    def follow(self, query: StreamingQuery) -> None:
        """Follow the query that the sink belongs to, once it has started: when it is stopped, Spark cancels the jobs
        of the batch, which is neither retried nor skipped then."""
        self._query = query

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Write a micro-batch, unless the table already contains it.

        Raises:
            CheckpointError: The query's checkpoint location does not belong to the table, or the table no longer
                contains the batches before this one.
            HudiError: The batch cannot be written; all attempts have failed.
        """
        self._compactor.check()
        this = SinkCheckpoint(self._identifier, number, self._query_id(batch))
        with CachedFrames() as cached:
            # a write evaluates its rows more than once, and a stateful source must be evaluated once
            rows = cached.add(batch)
            self._write(rows, this)

    def _query_id(self, batch: DataFrame) -> str | None:
        if self._checkpoint is not None:
            return query_id(self._checkpoint)
        property_value = batch.sparkSession.sparkContext.getLocalProperty(STREAMING_QUERY_ID)
        return str(property_value) if property_value else None

    def _write(self, rows: DataFrame, this: SinkCheckpoint) -> None:
        attempts = max(1, self.opts.get_typed(options.STREAMING_RETRY_COUNT))
        wait = self.opts.get_typed(options.STREAMING_RETRY_INTERVAL_MS) / 1000
        for attempt in range(1, attempts + 1):
            history = SinkHistory.load(self._storage, self._identifier)
            if self._is_in(history, this):
                _log.info("batch %d of the stream %r is already in %s", this.batch, this.identifier, self.path)
                return
            try:
                # Spark may still run the query in another process, which may commit the batch at any time.
                commit = IdempotentCommit(this.metadata(), partial(history.later_commit, this))
                write(rows, self.path, self._options(history), idempotent=commit, cached=True)
            except Exception as error:
                is_stopped = self._query is not None and not self._query.isActive
                if attempt < attempts and not is_stopped and not _is_final(error):
                    _log.warning("batch %d failed, next attempt in %g s: %s", this.batch, wait, error)
                    time.sleep(wait)
                    wait *= 2
                    continue
                if self._is_in(SinkHistory.load(self._storage, self._identifier), this):
                    _log.warning("batch %d is committed, although its write ended with: %s", this.batch, error)
                elif self.opts.get_typed(options.STREAMING_IGNORE_FAILED_BATCH) and not is_stopped:
                    _log.error(
                        "batch %d is skipped because of hoodie.datasource.write.streaming.ignore.failed.batch: %s",
                        this.batch,
                        error,
                    )
                    return
                else:
                    raise
            break
        self._compactor.wake(rows.sparkSession)

    def _is_in(self, history: SinkHistory, this: SinkCheckpoint) -> bool:
        if history.last is not None and history.last.covers(this):
            return True
        leaves_out = self.opts.get_typed(options.STREAMING_IGNORE_FAILED_BATCH)
        # otherwise batches may have left no commit
        if self.opts.get_typed(options.ALLOW_EMPTY_COMMIT) and not leaves_out:
            check_continuity(history.last, this)
        return False

    def _options(self, history: SinkHistory) -> dict[str, str]:
        """Return the options of a batch, with those of asynchronous compaction translated to those of a batch write."""
        table_type = history.table_type or self.opts.get_typed(options.TABLE_TYPE)
        if table_type is not TableType.MERGE_ON_READ:
            return self._sink_options
        if self.opts.get_typed(options.STREAMING_DISABLE_COMPACTION):
            none = dict.fromkeys((options.COMPACT_INLINE.key, options.COMPACT_SCHEDULE_INLINE.key), "false")
            return {**self._sink_options, **none}
        if self._compactor.is_wanted:
            return {**self._sink_options, options.COMPACT_SCHEDULE_INLINE.key: "true"}
        return self._sink_options


def start(writer: Any, sink: StreamingSink, mode: str, foreach_batch: Any, begin: Any) -> Any:
    """Start a query.

    Args:
        writer: The ``DataStreamWriter``, with the user's trigger, name and checkpoint location.
        sink: Writes the micro-batches.
        mode: Spark's output mode.
        foreach_batch: The unbound method of the writer.
        begin: Starts the writer and returns its query.

    Raises:
        InvalidOptionError: The output mode is not supported.
    """
    check_output_mode(mode)
    foreach_batch(writer, sink)
    query = begin(writer)
    sink.follow(query)
    return query


def check_sink_options(sink_options: Mapping[str, str]) -> Options:
    """Check the options of a stream, and parse them.

    Raises:
        ConfigError, InvalidOptionError: An option is not supported.
    """
    refuse_misspelled(sink_options)
    opts = Options.parse(sink_options)
    check_unsupported_options(opts)
    check_operation(opts.get_typed(options.OPERATION))
    return opts


def check_output_mode(mode: str) -> None:
    """Check Spark's output mode.

    Raises:
        InvalidOptionError: It is not supported.
    """
    if mode.lower() not in ("append", "update"):
        raise InvalidOptionError("outputMode", mode, "append, update (a table holds the newest version of each key)")


def _is_final(error: Exception) -> bool:
    """Return True if a retry cannot succeed."""
    return isinstance(error, ConfigError | ValidationError) or (
        isinstance(error, HudiError) and isinstance(error, ValueError)
    )
