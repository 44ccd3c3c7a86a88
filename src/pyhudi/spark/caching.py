"""Frames that a write evaluates more than once, kept by Spark until they are released."""

from __future__ import annotations

from pyspark.sql import DataFrame

from pyhudi.spark.settings import session_setting

_COMPRESSED = "spark.sql.inMemoryColumnarStorage.compressed"


class Cached:
    """Caches frames, all of which are given back together.

    Spark compresses what it caches column by column, which takes several times as long as caching does, for rows that
    are needed once or twice: so these are not compressed. What does not fit into memory goes to disk either way.
    """

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []

    def add(self, rows: DataFrame) -> DataFrame:
        """Cache a frame. Nothing is evaluated yet."""
        # Spark looks at the setting when `persist` is called, not when rows are cached
        with session_setting(rows.sparkSession, _COMPRESSED, "false"):
            self._frames.append(rows.persist())
        return self._frames[-1]

    def release(self) -> None:
        """Give the memory back."""
        while self._frames:
            self._frames.pop().unpersist()
