"""``python -m bench.first_queries [ENGINE…]``: the first query of a session on a merge-on-read table after one delta.

Each query is the first of a process of its own, and the engines take turns: what is measured is not only the scan but
also what an engine loads and compiles before it. The start of the session is measured apart. Environment: ``BENCH_SF``,
``BENCH_REPEAT``, ``BENCH_MEMORY``, as of ``python -m bench``.
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
from typing import NamedTuple

from pyspark.sql import SparkSession

from bench.data import prepare
from bench.delta_commits import delta
from bench.engines import ENGINES, Engine, settings
from bench.jars import ROOT
from bench.worker import aggregate

_IN_TURNS = ("ours", "iceberg", "delta")


def main(names: list[str]) -> None:
    """Write a table for each engine, and print the medians of its first queries."""
    repeat = int(os.environ.get("BENCH_REPEAT", "3"))
    with tempfile.TemporaryDirectory(prefix="bench-first-", dir=os.environ.get("BENCH_DIR")) as scratch:
        for name in names:
            _in_process("write", name, scratch)
        found: dict[str, list[_Query]] = {name: [] for name in names}
        for _ in range(repeat):
            for name in names:
                found[name].append(_in_process("read", name, scratch))
            answers = {name: queries[-1].answer for name, queries in found.items()}
            if len(set(map(json.dumps, answers.values()))) > 1:
                raise SystemExit(f"engines answer differently: {answers}")
    first = statistics.median(query.seconds for query in found[names[0]])
    for name, queries in found.items():
        start = statistics.median(query.start for query in queries)
        seconds = statistics.median(query.seconds for query in queries)
        print(f"{name:>8}  start {start:6.2f} s  first query {seconds:6.2f} s  {names[0]} / it {first / seconds:.2f}")


class _Query(NamedTuple):
    """A query: seconds of the start of its session, its own, and the rows."""

    start: float
    seconds: float
    answer: object


def _in_process(what: str, name: str, scratch: str) -> _Query:
    """Run a part in a process of its own; what it prints last."""
    command = [sys.executable, "-m", "bench.first_queries", f"--{what}", name, scratch]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-4000:]}")
    query = _Query(*json.loads(done.stdout.splitlines()[-1]))
    print(f"{name:>8} {what:<6} {query.seconds:6.2f} s", flush=True)
    return query


def _part(what: str, name: str, scratch: str) -> None:
    """Start Spark, and write the table of an engine or query it."""
    engine = ENGINES[name](Path(scratch) / name)
    path = engine.folder / "db" / "lineitem"
    builder = SparkSession.builder
    for key, value in settings(engine, os.environ.get("BENCH_MEMORY", "6g")).items():
        builder = builder.config(key, value)
    start, _ = _timed(lambda: engine.start(builder))
    engine.spark.sparkContext.setLogLevel("ERROR")
    work = _write if what == "--write" else _read
    seconds, answer = _timed(lambda: work(engine, path))
    print(json.dumps(_Query(start, seconds, answer)))


def _read(engine: Engine, path: Path) -> object:
    return aggregate(engine.read(path))


def _write(engine: Engine, path: Path) -> None:
    data = prepare(float(os.environ.get("BENCH_SF", "1")))
    engine.bulk_insert(engine.spark.read.parquet(str(data.lineitem)), path, merge_on_read=True)
    engine.upsert(delta(engine, data, 1), path)


def _timed(work: Callable[[], object]) -> tuple[float, object]:
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1].startswith("--"):
        _part(*sys.argv[1:])
    else:
        main(sys.argv[1:] or list(_IN_TURNS))
