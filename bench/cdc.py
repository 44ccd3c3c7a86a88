"""``python -m bench.cdc [rows]``: upserts of 1 % with and without change data, and the changes of the last of 20
commits, by pyhudi and by Apache Hudi 1.2.0, each with its own copy-on-write table, in seconds (medians).

Apache Hudi's figures have the transfer of the rows to its process and back; its first write, which warms it up, is not
counted, and neither is ours.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tests.interop.oracle import Oracle
from tests.spark_arrow import to_arrow

import pyhudi
from pyhudi.table.meta_client import TableMetaClient

COMMITS, REPEAT = 20, 3
WRITE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.clean.automatic": "false",
}
CHANGES = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
}
Write = Callable[[Path, pa.Table, dict[str, str], str], Any]
Read = Callable[[Path, dict[str, str]], int]


def rows(ids: np.ndarray, ts: int) -> pa.Table:
    """Records with these ids."""
    texts = [f"value {ts} of a record" for _ in range(len(ids))]
    return pa.table({"id": pa.array(ids), "ts": pa.array(np.full(len(ids), ts)), "v": texts})


def measure(folder: Path, count: int, write: Write, read: Read) -> dict[str, float]:
    """Seconds of an engine."""
    random = np.random.default_rng(1992)
    found: dict[str, float] = {}
    for name, flag in (("upsert", "false"), ("upsert with change data", "true")):
        options = {**WRITE, "hoodie.table.cdc.enabled": flag}
        path = folder / name.replace(" ", "-")
        write(
            path, rows(np.arange(count), 0), options | {"hoodie.datasource.write.operation": "bulk_insert"}, "overwrite"
        )
        times = []
        for commit in range(1, COMMITS if flag == "true" else REPEAT + 2):
            batch = rows(np.sort(random.choice(count, count // 100, replace=False)), commit)
            begun = time.perf_counter()
            write(path, batch, options | {"hoodie.datasource.write.operation": "upsert"}, "append")
            times.append(time.perf_counter() - begun)
        found[name] = round(statistics.median(times[1 : REPEAT + 1]), 2)
    commits = TableMetaClient.open(str(path)).active_timeline().timeline.writes().completed()
    begin = sorted(commit.order_time for commit in commits)[-2]
    times = []
    for _ in range(REPEAT + 1):
        begun = time.perf_counter()
        changes = read(path, {**CHANGES, "hoodie.datasource.read.begin.instanttime": begin})
        times.append(time.perf_counter() - begun)
        assert changes == count // 100, changes
    found["changes of the last commit"] = round(statistics.median(times[1:]), 2)
    return found


def main() -> None:
    """Measure and print seconds, as JSON."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = pyhudi.configure_spark(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    pyhudi.activate(spark)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)

        def write(path: Path, batch: pa.Table, options: dict[str, str], mode: str) -> None:
            source = folder / "batch.parquet"
            pq.write_table(batch, source)
            spark.read.parquet(str(source)).write.format("hudi").options(**options).mode(mode).save(str(path))

        def read(path: Path, options: dict[str, str]) -> int:
            return to_arrow(spark.read.format("hudi").options(**options).load(str(path))).num_rows

        found = {"pyhudi": measure(folder / "ours", count, write, read)}
        with Oracle("1.2.0") as oracle:
            theirs = measure(folder / "theirs", count, oracle.write, lambda p, o: oracle.read(p, o).num_rows)
            found["Apache Hudi"] = theirs
    print(json.dumps({"rows": count, **found}, indent=1))


if __name__ == "__main__":
    main()
