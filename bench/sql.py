"""``python -m bench.sql [rows] [work …]``: SQL and streams of pyhudi, Apache Hudi, Delta and Iceberg, in turns.

Every engine has a process and tables of its own (`bench.sql_worker`), copy-on-write, not partitioned. Of each work
every engine does one repetition, then each one more; what they leave in their tables is compared. The seconds are
medians; the first repetition of each work warms up and is not counted, but for streams. Ratios are ours to the other's.
Environment:
``BENCH_REPEAT`` (3), ``BENCH_BATCHES`` (100, of a stream), ``BENCH_MEMORY`` (3g, of each).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WORKS: dict[str, tuple[str, ...]] = {
    "passthrough": ("ours",),
    "upsert": ("ours", "hudi"),
    "merge_python": ("ours",),
    "merge_sql": ("ours", "hudi", "delta", "iceberg"),
    "update": ("ours", "hudi", "delta", "iceberg"),
    "delete": ("ours", "hudi", "delta", "iceberg"),
    "point": ("ours", "hudi"),
    "incremental": ("ours", "hudi"),
    "cdc": ("ours", "hudi"),
    "stream": ("ours", "hudi", "delta"),
}
"""Which engines do each work."""
_TOGETHER = ("upsert", "merge_python", "merge_sql")
"""Compared with each other, so their turns alternate."""


class Worker:
    """An engine's process."""

    def __init__(self, engine: str, folder: Path, rows: int) -> None:
        command = [sys.executable, "-m", "bench.sql_worker", engine, str(folder), str(rows)]
        folder.mkdir(parents=True)
        self.engine = engine
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
            env=_environment(),
        )

    def run(self, work: str, turn: int) -> dict[str, Any]:
        """Do a repetition of a work.

        Raises:
            SystemExit: The process ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{work} {turn}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.engine} ended at {work}, turn {turn}: {self._process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def _environment() -> dict[str, str]:
    root = Path(__file__).resolve().parents[1]
    paths = [str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable}


def main() -> None:
    """Measure, and print seconds and ratios as JSON."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    works = sys.argv[2:] or list(WORKS)
    repeat = int(os.environ.get("BENCH_REPEAT", "3"))
    engines = dict.fromkeys(engine for work in works for engine in WORKS[work])
    with tempfile.TemporaryDirectory(prefix="bench-sql-", dir=os.environ.get("BENCH_DIR")) as scratch:
        workers = {engine: Worker(engine, Path(scratch) / engine, rows) for engine in engines}
        for group in _groups(works):
            for work, found in _in_turns(workers, group, 1 if group == ["stream"] else repeat + 1).items():
                print(json.dumps({work: found}), flush=True)
        for worker in workers.values():
            worker.stop()


def _groups(works: list[str]) -> list[list[str]]:
    together = [work for work in works if work in _TOGETHER]
    return [*([together] if together else []), *([work] for work in works if work not in _TOGETHER)]


def _in_turns(workers: dict[str, Worker], works: list[str], turns: int) -> dict[str, dict[str, Any]]:
    """Seconds of each work by engine, medians; with ratios."""
    seconds: dict[tuple[str, str], list[float]] = {}
    answers: dict[str, Any] = {}
    for turn in range(turns):
        for work in works:
            given = {engine: workers[engine].run(work, turn) for engine in WORKS[work]}
            answers[work] = given["ours"]["answer"]
            different = {e: g["answer"] for e, g in given.items() if g["answer"] != answers[work]}
            if different:
                raise SystemExit(f"{work}: ours has {answers[work]}, others {different}")
            for engine, one in given.items():
                seconds.setdefault((work, engine), []).append(one["seconds"])
    medians = {place: statistics.median(times[1:] or times) for place, times in seconds.items()}
    found: dict[str, dict[str, Any]] = {}
    for work in works:
        ours = medians[work, "ours"]
        found[work] = {engine: round(medians[work, engine], 3) for engine in WORKS[work]}
        found[work]["ratios"] = {e: round(ours / medians[work, e], 2) for e in WORKS[work] if e != "ours"}
        if work == "passthrough":
            found[work] = {"milliseconds": answers[work]}
    return found


if __name__ == "__main__":
    main()
