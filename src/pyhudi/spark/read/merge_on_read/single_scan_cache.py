"""DataFrames of single scans, reused when the same snapshot is loaded again.

Spark asks for the status of each file, and resolves the scan and the join, whenever a DataFrame is made: half of the
time of ``load`` for a merge-on-read table. A later load of the same files with the same settings gets the same scan,
with new columns, so that tables can be joined with themselves.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from pyhudi.spark.read.merge_on_read.merged_log_cache import CachedLogs
from pyhudi.spark.read.spark_scan import SparkScan

_FRAMES = "_pyhudi_scan_frames"
_MAX_FRAMES = 16
_MAX_SLICES = 1000
"""Slices of a scan up to which it is kept: the driver holds the status of each file."""
_SETTINGS_OF_ANALYSIS = (
    "spark.sql.caseSensitive",
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.timestampType",
)
"""Settings of a session that Spark looks at when it resolves a DataFrame, not when it runs."""


class ScanFrames:
    """The DataFrames of a session by `frame_key`; the least recently used are dropped. Thread-safe."""

    def __init__(self) -> None:
        self._frames: OrderedDict[str, DataFrame] = OrderedDict()
        self._lock = threading.Lock()

    def find_or_make(self, key: str | None, make: Callable[[], DataFrame | None]) -> DataFrame | None:
        """Return the scan of an earlier load, or make it and keep it, with columns that are distinguished from those of
        all other loads. Without a key it is not kept."""
        if key is None:
            return make()
        with self._lock:
            frame = self._frames.pop(key, None)
        if frame is None:
            frame = make()
            if frame is None:
                return None
        with self._lock:
            self._frames[key] = frame  # the latest come last
            while len(self._frames) > _MAX_FRAMES:
                self._frames.popitem(last=False)
        return frame.toDF(*frame.columns)


def scan_frames(spark: SparkSession) -> ScanFrames:
    """Return the cached scans of a session, which are dropped together with it."""
    frames: ScanFrames = spark.__dict__.setdefault(_FRAMES, ScanFrames())
    return frames


def frame_key(scan: SparkScan, logs: Mapping[str, CachedLogs], *, positions: bool) -> str | None:
    """Return the key of a scan, which depends on all that decides its rows and columns; None if it is not to be kept.

    Args:
        scan: The scan. Conditions of its plan do not count: they are applied to the DataFrame.
        logs: Files of the merged log rows.
        positions: Rows have their positions in base files.
    """
    plan = scan.plan
    if plan.tasks.num_rows > _MAX_SLICES:
        return None
    parts = (
        scan.table.storage.uri(),
        plan.tasks,
        plan.schema,
        plan.partition_columns.partitions,
        plan.partition_columns.required,
        plan.partition_columns.values,
        plan.reading.renamed,
        plan.reading.bounds.schema,
        plan.reading.invalid_text,
        dict(scan.opts),
        logs,
        positions,
        [scan.spark.conf.get(key, None) for key in _SETTINGS_OF_ANALYSIS],
    )
    return hashlib.sha256(cloudpickle.dumps(parts)).hexdigest()
