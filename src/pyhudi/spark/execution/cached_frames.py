"""DataFrames that a write evaluates more than once, cached by Spark until they are released."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol, Self

from pyspark.sql import DataFrame

from pyhudi.spark.execution.slice_tasks import parallelism
from pyhudi.spark.session_settings import is_connect, session_setting, shuffle_partitions

_log = logging.getLogger(__name__)
_SHUFFLES = "spark.sql.shuffle.partitions"
_ADAPTIVE = "spark.sql.adaptive.enabled"
_ADAPTIVE_CACHE = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"
_ROWS_A_TASK = 100_000
_COMPRESSED = "spark.sql.inMemoryColumnarStorage.compressed"


class PersistFrame(Protocol):
    """Persists a DataFrame, as `CachedFrames.add` does; ``rows`` is the approximate number of rows, if they are few."""

    def __call__(self, frame: DataFrame, rows: int | None = None) -> DataFrame: ...


class CachedFrames:
    """Cached DataFrames, which are all released together: by `release`, or at the end of a ``with`` block.

    The in-memory columnar compression of Spark is switched off: it takes several times as long as caching itself, for
    rows that are read once or twice only. Rows that do not fit into memory are written to disk in either case.

    The number of shuffle partitions is lowered for few rows, because Spark does not coalesce the partitions of a cached
    DataFrame below ``spark.sql.shuffle.partitions`` (200).
    """

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []

    def add(self, frame: DataFrame, rows: int | None = None, *, adaptive: bool = True) -> DataFrame:
        """Cache a DataFrame, unless it is cached: then its owner releases it. Nothing is evaluated yet.

        Args:
            frame: The rows.
            rows: Their approximate number, if they are few.
            adaptive: False: its plan is made once, as of `planned`.
        """
        if is_cached(frame):
            return frame
        spark = frame.sparkSession
        # Spark reads the settings when `persist` is called, not when the rows are cached
        with ExitStack() as stack:
            stack.enter_context(session_setting(spark, _COMPRESSED, "false"))
            if rows is not None:
                shuffles = min(shuffle_partitions(spark), max(parallelism(spark), -(-rows // _ROWS_A_TASK)))
                stack.enter_context(session_setting(spark, _SHUFFLES, str(shuffles)))
            if not adaptive:
                stack.enter_context(session_setting(spark, _ADAPTIVE, "false"))
            self._frames.append(frame)  # first, because an interrupt may come while it is persisted
            return frame.persist()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Release all cached DataFrames."""
        while self._frames:
            try:
                self._frames.pop().unpersist()
            # the work on the DataFrames is complete, or has failed with an error of its own
            except Exception as failure:
                _log.warning("cached rows could not be released: %s", failure)


def is_cached(frame: DataFrame) -> bool:
    """Return True if Spark has cached the plan of a DataFrame, or is to do so when it is evaluated."""
    level = frame.storageLevel
    return bool(level.useMemory or level.useDisk or level.useOffHeap)


@contextmanager
def planned(frame: DataFrame, *, adaptive: bool) -> Iterator[DataFrame]:
    """Return a context manager of a DataFrame that is planned with or without adaptive execution, for a single action.

    Adaptive execution runs a job for each shuffle and for each cached input, and plans again after each of them. This
    takes longer than it saves if the sizes of all inputs are known. Spark plans a DataFrame when it is persisted, so
    the setting of the session is changed for that call only; a query that another thread plans at the same time is
    not adaptive either. Until the end of the block, the session makes no adaptive plans of cached DataFrames: the query
    that reads the cache would evaluate it in a job of its own. Spark Connect does not recognize a DataFrame of a Python
    function as the cached one, so nothing is changed there.

    Args:
        frame: A DataFrame with a small result, which is cached until the end of the block.
        adaptive: Its plan may improve while it is executed. Nothing is cached then.
    """
    if adaptive or is_connect(frame):
        yield frame
        return
    with CachedFrames() as cached:
        rows = cached.add(frame, adaptive=False)
        with session_setting(frame.sparkSession, _ADAPTIVE_CACHE, "false"):
            yield rows
