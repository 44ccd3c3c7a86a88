"""``python -m bench.record_index [cow mor]``: an upsert of 0.2 % with the record index and without one, in turns.

Both tables get the same rows in one session, each time as fresh copies, so that a machine whose speed changes treats
them alike. Besides seconds the processor's time of the process and of all that it has started is told. Environment:
``BENCH_SF``, ``BENCH_REPEAT``, ``BENCH_MEMORY`` and ``BENCH_DIR``, as of ``python -m bench``; ``BENCH_UPSERT``: another
set of corrections (`bench.data`); ``BENCH_TABLES``: a folder where the tables stay for the next run.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from bench.data import Dataset, prepare
from bench.engines import Ours, settings
from bench.worker import aggregate

KINDS: Mapping[str, Mapping[str, str]] = {
    "without": {},
    "record index": Ours.record_options or {},
    "partitioned": {
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
        "hoodie.metadata.record.level.index.enable": "true",
    },
}
"""Write options of the tables that are compared."""
_WARM_UPS = 2
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Write the tables and print the medians of upserts into copies of them."""
    types = sys.argv[1:] or ["cow", "mor"]
    data = prepare(float(os.environ.get("BENCH_SF", "1")))
    engine = Ours(Path())
    builder = SparkSession.builder
    for key, value in settings(engine, os.environ.get("BENCH_MEMORY", "6g")).items():
        builder = builder.config(key, value)
    engine.start(builder)
    engine.spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory(prefix="bench-records-", dir=os.environ.get("BENCH_DIR")) as scratch:
        kept = Path(os.environ.get("BENCH_TABLES", scratch))
        for name in types:
            tables = {kind: _table(engine, data, kept, name, kind) for kind in _kinds()}
            _compare(engine, data, name, tables, Path(scratch))
    engine.spark.stop()


def _kinds() -> list[str]:
    return [kind for kind in KINDS if kind in os.environ.get("BENCH_KINDS", "without,record index").split(",")]


def _table(engine: Ours, data: Dataset, folder: Path, name: str, kind: str) -> Path:
    """All of lineitem, with the index that was asked for; written unless it is there."""
    path = folder / f"sf{data.scale:g}" / f"{name} {kind}".replace(" ", "_")
    if not path.exists():
        engine.index = KINDS[kind]
        begin = time.perf_counter()
        engine.bulk_insert(engine.spark.read.parquet(str(data.lineitem)), path, merge_on_read=name == "mor")
        print(f"{name}, {kind}: bulk insert {time.perf_counter() - begin:.1f} s", flush=True)
    return path


def _compare(engine: Ours, data: Dataset, name: str, tables: Mapping[str, Path], scratch: Path) -> None:
    share = os.environ.get("BENCH_UPSERT", "upsert_02")
    repeat = int(os.environ.get("BENCH_REPEAT", "5"))
    seconds: dict[str, list[float]] = {kind: [] for kind in tables}
    processor: dict[str, list[float]] = {kind: [] for kind in tables}
    answers = {}
    for turn in range(_WARM_UPS + repeat):
        for kind, table in tables.items():
            copy = engine.copy(table, scratch / "copy")
            engine.index = KINDS[kind]
            used, begin = processor_seconds(), time.perf_counter()
            engine.upsert(engine.spark.read.parquet(str(data.upsert(share))), copy)
            if turn >= _WARM_UPS:
                seconds[kind].append(time.perf_counter() - begin)
                processor[kind].append(processor_seconds() - used)
            if turn == 0:
                answers[kind] = aggregate(engine.read(copy))
            shutil.rmtree(copy)
    if len({str(answer) for answer in answers.values()}) > 1:
        raise SystemExit(f"the tables differ: {answers}")
    base, base_used = (statistics.median(found["without"]) for found in (seconds, processor))
    for kind in tables:
        median, used = statistics.median(seconds[kind]), statistics.median(processor[kind])
        print(
            f"{name} {share}, {kind:<12} {median:6.2f} s (least {min(seconds[kind]):.2f}), "
            f"{median / base:.2f} times; processor {used:6.2f} s, {used / base_used:.2f} times",
            flush=True,
        )


def processor_seconds() -> float:
    """Processor seconds of this process and of all below it, those that have ended included."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(folder.name)
        parents[pid] = int(fields[1])
        ticks[pid] = sum(map(int, fields[11:15]))
    total = 0
    for pid, used in ticks.items():
        at = pid
        while at in parents and at != os.getpid():
            at = parents[at]
        total += used if at == os.getpid() else 0
    return total / _TICKS


if __name__ == "__main__":
    main()
