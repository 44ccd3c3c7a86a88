"""Frames that a write evaluates more than once, kept by Spark until they are released."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import Self

from pyspark.sql import DataFrame

from pyhudi.spark.execution.slice_tasks import parallelism
from pyhudi.spark.session_settings import session_setting

_log = logging.getLogger(__name__)
_SHUFFLES = "spark.sql.shuffle.partitions"
_ROWS_A_TASK = 100_000
_COMPRESSED = "spark.sql.inMemoryColumnarStorage.compressed"


class Cached:
    """Caches frames, all of which are given back together: by `release`, or at the end of a ``with`` block.

    Spark compresses what it caches column by column, which takes several times as long as caching does, for rows that
    are needed once or twice: so these are not compressed. What does not fit into memory goes to disk either way.

    Nor does Spark shuffle what it caches to fewer tasks than the session's setting says, 200 of them, if there are few
    rows.
    """

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []

    def add(self, frame: DataFrame, rows: int | None = None) -> DataFrame:
        """Cache a frame. Nothing is evaluated yet. ``rows``: about how many there are."""
        spark = frame.sparkSession
        # Spark looks at the settings when `persist` is called, not when rows are cached
        with ExitStack() as stack:
            stack.enter_context(session_setting(spark, _COMPRESSED, "false"))
            if rows is not None:
                usual = int(spark.conf.get(_SHUFFLES) or 200)
                shuffles = min(usual, max(parallelism(spark), -(-rows // _ROWS_A_TASK)))
                stack.enter_context(session_setting(spark, _SHUFFLES, str(shuffles)))
            self._frames.append(frame.persist())
        return self._frames[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Free the memory."""
        while self._frames:
            try:
                self._frames.pop().unpersist()
            except Exception as failure:  # what the frames were for is done, or has failed with an error of its own
                _log.warning("cached rows were not given back: %s", failure)
