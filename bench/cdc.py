"""``python -m bench.cdc [rows]``: upserts of 1 % with and without change data, and the changes of the last of 20
commits, by pyhudi and by Apache Hudi 1.2.0, each with its own copy-on-write tables, in seconds (medians).

Each engine has a process of its own, with the settings of ``python -m bench``, and is timed in there: rows come from a
Parquet file, changes go to the driver as Arrow. Upserts with and without change data are done in turns. The first two
upserts and the first twenty queries warm up and are not counted: after four, those of Apache Hudi still get faster.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
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
from tests.spark_arrow import to_arrow

from bench.engines import ApacheHudi, Engine, Ours, settings
from bench.jars import ROOT
from pyhudi.table.meta_client import TableMetaClient

COMMITS = 20
SECONDS = "seconds.json"
WRITES_UNTIL_WARM, REPEAT_WRITES = 2, 5
READS_UNTIL_WARM, REPEAT_READS = 20, 15
ENGINES: dict[str, type[Engine]] = {"pyhudi": Ours, "Apache Hudi": ApacheHudi}
WRITE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.clean.automatic": "false",
}
LOGGED = {"hoodie.table.cdc.enabled": "true"}
CHANGES = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
}


def rows(ids: np.ndarray, ts: int) -> pa.Table:
    """Records with these ids."""
    texts = [f"value {ts} of a record" for _ in range(len(ids))]
    return pa.table({"id": pa.array(ids), "ts": pa.array(np.full(len(ids), ts)), "v": texts})


def seconds(run: Callable[[], Any]) -> float:
    """Return the seconds that a run takes."""
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def measure(spark: SparkSession, folder: Path, count: int) -> dict[str, float]:
    """Seconds of an engine, whose session this is."""
    random = np.random.default_rng(1992)
    tables: dict[str, dict[str, str]] = {"upsert": {}, "upsert with change data": LOGGED}
    times: dict[str, list[float]] = {name: [] for name in tables}

    def path(name: str) -> str:
        return str(folder / name.replace(" ", "-"))

    def write(name: str, operation: str, mode: str) -> None:
        options = {**WRITE, **tables[name], "hoodie.datasource.write.operation": operation}
        spark.read.parquet(str(folder / "batch")).write.format("hudi").options(**options).mode(mode).save(path(name))

    pq.write_table(rows(np.arange(count), 0), folder / "batch")
    for name in tables:
        write(name, "bulk_insert", "overwrite")
    for commit in range(1, COMMITS):
        pq.write_table(rows(np.sort(random.choice(count, count // 100, replace=False)), commit), folder / "batch")
        counted = commit <= WRITES_UNTIL_WARM + REPEAT_WRITES
        for name in tables if counted else ("upsert with change data",):
            times[name].append(seconds(lambda name=name: write(name, "upsert", "append")))
    last = slice(WRITES_UNTIL_WARM, WRITES_UNTIL_WARM + REPEAT_WRITES)
    found = {name: round(statistics.median(values[last]), 2) for name, values in times.items()}
    queries = _queries(spark, path("upsert with change data"), count // 100)
    return {**found, "changes of the last commit": round(statistics.median(queries), 3)}


def _queries(spark: SparkSession, path: str, expected: int) -> list[float]:
    commits = TableMetaClient.open(path).active_timeline().timeline.writes().completed()
    begin = sorted(commit.order_time for commit in commits)[-2]
    options = {**CHANGES, "hoodie.datasource.read.begin.instanttime": begin}

    def read() -> None:
        found = to_arrow(spark.read.format("hudi").options(**options).load(path)).num_rows
        assert found == expected, found

    return [seconds(read) for _ in range(READS_UNTIL_WARM + REPEAT_READS)][READS_UNTIL_WARM:]


def worker(name: str, folder: Path, count: int) -> None:
    """Measure one engine; its seconds go to a file, as Java libraries print to the same output."""
    engine = ENGINES[name](folder)
    builder = SparkSession.builder
    for key, value in settings(engine, "4g").items():
        builder = builder.config(key, value)
    engine.start(builder)
    engine.spark.sparkContext.setLogLevel("ERROR")
    (folder / SECONDS).write_text(json.dumps(measure(engine.spark, folder, count)))


def main() -> None:
    """Measure each engine in a process, and print seconds as JSON."""
    if len(sys.argv) == 4:
        return worker(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    found: dict[str, Any] = {"rows": count}
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    env.pop("SPARK_HOME", None)
    for name in ENGINES:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "bench.cdc", name, folder, str(count)]
            subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, check=True)
            found[name] = json.loads((Path(folder) / SECONDS).read_text())
    print(json.dumps(found, indent=1))
    return None


if __name__ == "__main__":
    main()
