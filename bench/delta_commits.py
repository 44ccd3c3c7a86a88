"""Reads of merge-on-read tables: after 1, 5 and 20 commits of deltas, each a correction of 1 % of the rows drawn anew.

``BENCH_DELTAS`` says after how many commits is read (``1,5,20``): twenty take Apache Hudi a quarter of an hour."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, lit, pmod, xxhash64

from bench.data import KEYS, Dataset
from bench.engines import Engine

ONE_IN = 100
Measure = Callable[[str, Callable[[], object]], None]


def delta(engine: Engine, data: Dataset, number: int) -> DataFrame:
    """The corrections of a commit: a hundredth of the rows."""
    rows = engine.spark.read.parquet(str(data.lineitem))
    chosen = pmod(xxhash64(*KEYS, lit(number)), lit(ONE_IN)) == 0
    raised = (col("l_quantity") + 1).cast(rows.schema["l_quantity"].dataType)
    return rows.where(chosen).withColumns({"l_quantity": raised, "l_comment": lit(f"corrected {number}")})


def read_after_deltas(
    engine: Engine, data: Dataset, table: Path, measure: Measure, aggregate: Callable[[DataFrame], object]
) -> None:
    """Write deltas on ``table`` and measure scans on the way, then the read-optimized one where there is such."""
    stops = sorted(int(text) for text in os.environ.get("BENCH_DELTAS", "1,5,20").split(","))
    for number in range(1, stops[-1] + 1):
        engine.upsert(delta(engine, data, number), table)
        if number in stops:
            measure(f"mor_scan_{number}", lambda: aggregate(engine.read(table)))
    optimized = engine.read_optimized(table)
    if optimized is not None:
        measure("mor_optimized", lambda: aggregate(engine.read_optimized(table)))
