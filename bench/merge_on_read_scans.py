"""``python -m bench.merge_on_read_scans [1 5 20]``: scans of merge-on-read tables, ours and Iceberg's, in turns in one
session.

On a machine whose speed changes from minute to minute engines that are measured one after the other cannot be compared;
here each of them is read once, then each once more; plain files, too. The tables are read after as many commits as the
arguments say, each a correction of 1 % of the rows (`bench.delta_commits`). Environment: ``BENCH_SF``,
``BENCH_REPEAT``, ``BENCH_MEMORY``, as of ``python -m bench``.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import pyhudi
from bench.data import Dataset, prepare
from bench.delta_commits import delta
from bench.engines import Engine, Iceberg, Ours, Parquet, settings
from bench.worker import READS_UNTIL_WARM, aggregate


def main() -> None:
    """Write the tables and print the medians of their scans."""
    stops = sorted(map(int, sys.argv[1:])) or [1, 5, 20]
    data = prepare(float(os.environ.get("BENCH_SF", "1")))
    repeat = int(os.environ.get("BENCH_REPEAT", "3"))
    with tempfile.TemporaryDirectory(prefix="bench-turns-", dir=os.environ.get("BENCH_DIR")) as scratch:
        _run(Path(scratch), data, stops, repeat)


def _run(folder: Path, data: Dataset, stops: list[int], repeat: int) -> None:
    engines: dict[str, Engine] = {"plain": Parquet(folder), "ours": Ours(folder), "iceberg": Iceberg(folder)}
    spark = session(engines["iceberg"])
    for name, engine in engines.items():
        engine.spark = spark
        engine.bulk_insert(spark.read.parquet(str(data.lineitem)), folder / "db" / name, merge_on_read=True)
    reads = {name: lambda e=engine, n=name: e.read(folder / "db" / n) for name, engine in engines.items()}
    reads["read-optimized"] = lambda: engines["ours"].read_optimized(folder / "db" / "ours")
    _report(0, _in_turns(reads, repeat))
    for number in range(1, stops[-1] + 1):
        for name in ("ours", "iceberg"):
            engines[name].upsert(delta(engines[name], data, number), folder / "db" / name)
        if number in stops:
            _report(number, _in_turns(reads, repeat))
    spark.stop()


def session(iceberg: Engine) -> SparkSession:
    """One session that reads all of them."""
    builder = SparkSession.builder
    for key, value in settings(iceberg, os.environ.get("BENCH_MEMORY", "6g")).items():
        builder = builder.config(key, value)
    spark: SparkSession = pyhudi.configure_spark(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    pyhudi.activate(spark)
    return spark


def _in_turns(reads: Mapping[str, Callable[[], DataFrame]], repeat: int) -> dict[str, list[float]]:
    """Seconds of each scan, those that warm up left out.

    Raises:
        SystemExit: engines answer differently.
    """
    seconds: dict[str, list[float]] = {name: [] for name in reads}
    for turn in range(READS_UNTIL_WARM + repeat):
        answers = {}
        for name, read in reads.items():
            begin = time.perf_counter()
            answers[name] = aggregate(read())
            if turn >= READS_UNTIL_WARM:
                seconds[name].append(time.perf_counter() - begin)
        if answers["ours"] != answers["iceberg"]:
            raise SystemExit(f"ours and Iceberg answer differently: {answers}")
    return seconds


def _report(deltas: int, seconds: Mapping[str, list[float]]) -> None:
    ours = statistics.median(seconds["ours"])
    print(f"after {deltas} deltas", flush=True)
    for name, found in seconds.items():
        median = statistics.median(found)
        print(f"  {name:<14} {median:6.2f} s (least {min(found):.2f}), ours / it {ours / median:.2f}", flush=True)


if __name__ == "__main__":
    main()
