"""``python -m bench.clustering [ours hudi iceberg]``: clustering of lineitem, sorted by one column and along a z-order
curve through two, by pyhudi, Apache Hudi and Iceberg's rewrite_data_files.

Each engine has a process of its own; every repetition works on a fresh copy of the table, the first one does not count.
For pyhudi there is also the part of the bytes of data files that filters on ranges of both columns of the curve leave,
by the statistics of files that it plans with: the mean of filters all over the columns, on a table of many files.
Environment: ``BENCH_SF``, ``BENCH_REPEAT``, ``BENCH_MEMORY``,
``BENCH_DIR``, as of ``python -m bench``.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from bench.data import Dataset, prepare
from bench.engines import ENGINES, Engine, settings

LINEAR, ZORDER = ("l_partkey",), ("l_partkey", "l_suppkey")
TARGET = 8 << 20
"""Bytes of a file, in all engines: small, since the table is."""
RANGE = 0.1
"""Part of each column's values that the range filter asks for."""
FINE = 1 << 20
"""Bytes of a file where filters are counted: some thirty files a partition at scale 1."""
PLAN = "hoodie.clustering.plan.strategy."


def hudi_options(columns: tuple[str, ...], target: int = TARGET) -> dict[str, str]:
    """Options of Apache Hudi and pyhudi."""
    return {
        PLAN + "sort.columns": ",".join(columns),
        PLAN + "target.file.max.bytes": str(target),
        PLAN + "small.file.limit": str(1 << 40),
        "hoodie.layout.optimize.strategy": "linear" if len(columns) == 1 else "z-order",
    }


def ours(engine: Engine, path: Path, columns: tuple[str, ...], target: int = TARGET) -> None:
    """Cluster by pyhudi."""
    from pyhudi import HudiTable

    options = hudi_options(columns, target)
    options["hoodie.layout.optimize.strategy"] = "LINEAR" if len(columns) == 1 else "ZORDER"
    HudiTable.for_path(str(path)).services.cluster(options, spark=engine.spark)


def hudi(engine: Engine, path: Path, columns: tuple[str, ...]) -> None:
    """Cluster by Apache Hudi's procedure."""
    options = hudi_options(columns)
    order = options.pop(PLAN + "sort.columns")
    text = ",".join(f"{key}={value}" for key, value in options.items())
    engine.spark.sql(
        f"CALL run_clustering(path => '{path}', op => 'scheduleAndExecute', order => '{order}', options => '{text}')"
    ).collect()


def iceberg(engine: Engine, path: Path, columns: tuple[str, ...]) -> None:
    """Cluster by Iceberg's procedure."""
    name = ".".join(path.relative_to(engine.folder).parts)
    order = columns[0] if len(columns) == 1 else f"zorder({','.join(columns)})"
    options = f"map('rewrite-all', 'true', 'target-file-size-bytes', '{TARGET}')"
    engine.spark.sql(
        f"CALL bench.system.rewrite_data_files(table => '{name}', strategy => 'sort', sort_order => '{order}', "
        f"options => {options})"
    ).collect()


CLUSTER: Mapping[str, Callable[[Engine, Path, tuple[str, ...]], None]] = {
    "ours": ours,
    "hudi": hudi,
    "iceberg": iceberg,
}


def scanned(engine: Engine, path: Path) -> tuple[float, int]:
    """The part of the bytes of files that filters on both columns of the curve leave, and how many files there are."""
    from pyhudi import HudiTable

    table = HudiTable.for_path(str(path))
    ends = engine.read(path).selectExpr(*(f"max({name})" for name in ZORDER)).first()
    assert ends is not None
    everything = table.scan().plan().tasks["base_size"]
    parts = []
    for starts in itertools.product((0.05, 0.25, 0.45, 0.65, 0.85), repeat=2):
        conditions = [
            condition
            for name, end, start in zip(ZORDER, ends, starts, strict=True)
            for condition in ((name, ">=", int(end * start)), (name, "<", int(end * (start + RANGE))))
        ]
        left = pc.sum(table.scan(conditions).plan().tasks["base_size"]).as_py() or 0
        parts.append(left / pc.sum(everything).as_py())
    return statistics.mean(parts), len(everything)


def work(name: str, data: Dataset, folder: Path, repeat: int) -> None:
    """One engine's part."""
    engine = ENGINES[name](folder)
    builder = SparkSession.builder
    for key, value in settings(engine, os.environ.get("BENCH_MEMORY", "6g")).items():
        builder = builder.config(key, value)
    engine.start(builder)
    engine.spark.sparkContext.setLogLevel("ERROR")
    source = folder / "db" / "lineitem"
    rows = engine.spark.read.parquet(str(data.lineitem)).repartition(8)
    engine.bulk_insert(rows, source)
    expected = engine.read(source).count()
    for columns in (LINEAR, ZORDER):
        seconds = []
        for turn in range(repeat + 1):
            table = engine.copy(source, folder / "db" / f"copy{turn}")
            begin = time.perf_counter()
            CLUSTER[name](engine, table, columns)
            seconds.append(time.perf_counter() - begin)
            if engine.read(table).count() != expected:
                raise SystemExit(f"{name} has lost rows")
        line = f"{engine.label:<18} by {'+'.join(columns):<20} {statistics.median(seconds[1:]):8.2f} s"
        print(line, flush=True)
    if name == "ours":
        table = engine.copy(source, folder / "db" / "fine")
        ours(engine, table, ZORDER, FINE)
        part, files = scanned(engine, table)
        print(f"{engine.label:<18} filters on both columns scan {part:.1%} of the bytes of {files} files", flush=True)
    engine.spark.stop()


def _in_process(name: str) -> None:
    """One engine in a process of its own; its log is shown if it fails."""
    with tempfile.TemporaryDirectory(prefix=f"bench-clustering-{name}-", dir=os.environ.get("BENCH_DIR")) as folder:
        command = [sys.executable, "-m", "bench.clustering", "work", name, folder]
        with (Path(folder) / "log").open("w+") as log:
            failed = subprocess.run(command, stderr=log, check=False).returncode
            log.seek(0)
            if failed:
                sys.exit(f"{name} failed:\n{''.join(log.readlines()[-40:])}")


def main() -> int:
    """Run the engines one after another."""
    scale, repeat = float(os.environ.get("BENCH_SF", "1")), int(os.environ.get("BENCH_REPEAT", "3"))
    data = prepare(scale)
    if sys.argv[1:2] == ["work"]:
        work(sys.argv[2], data, Path(sys.argv[3]), repeat)
        return 0
    for name in sys.argv[1:] or CLUSTER:
        _in_process(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
