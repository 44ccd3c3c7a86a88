"""Asynchronous compaction of a streaming query: batches plan it, a thread of this process executes it."""

from __future__ import annotations

import logging
import threading

from pyspark.sql import SparkSession

from pyhudi.config import Options, options
from pyhudi.config.enums import TableType
from pyhudi.errors import TransactionError
from pyhudi.services.compaction.compaction_runner import run_pending_compactions
from pyhudi.services.service_plans import BusyPlans
from pyhudi.spark.services.spark_compaction import SparkCompactionRunner
from pyhudi.storage import Storage
from pyhudi.table.meta_client import TableMetaClient

_log = logging.getLogger(__name__)


class AsyncCompactor:
    """Executes the pending compactions of a table, one run at a time.

    A run that the process does not complete is continued by the next one.
    """

    def __init__(self, storage: Storage, opts: Options) -> None:
        self._storage = storage
        self._opts = opts
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None

    @property
    def is_wanted(self) -> bool:
        """Return True if compactions are asynchronous by the options; this is the default."""
        inline = self._opts.get_typed(options.COMPACT_INLINE)
        disabled = self._opts.get_typed(options.STREAMING_DISABLE_COMPACTION)
        services = self._opts.get_typed(options.TABLE_SERVICES_ENABLED)
        return self._opts.get_typed(options.COMPACT_ASYNC) and services and not inline and not disabled

    def wake(self, spark: SparkSession) -> None:
        """Start a run in the background for pending plans, unless one is in progress."""
        if not self.is_wanted or (self._thread is not None and self._thread.is_alive()):
            return
        self._thread = threading.Thread(target=self._run, args=(spark,), name="pyhudi-compaction", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise the error of the last run once: the next batch fails, and may be retried."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _run(self, spark: SparkSession) -> None:
        try:
            client = TableMetaClient.open(self._storage, self._opts)
            if client.config.table_type is TableType.MERGE_ON_READ:
                run_pending_compactions(client, self._opts, SparkCompactionRunner(spark), busy=BusyPlans.LEAVE)
        except TransactionError as error:  # another process is executing it
            _log.info("compaction postponed: %s", error)
        except Exception as error:
            _log.warning("a compaction of %s failed: %s", self._storage.uri(), error)
            self._failure = error
