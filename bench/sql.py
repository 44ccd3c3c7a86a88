"""SQL and streams of pyhudi, Apache Hudi, Delta and Iceberg, in turns:
``python -m bench.sql [rows] [work …] [--engines ours delta …] [--store FILE]``.

Every engine has a process and tables of its own (`bench.sql_worker`), not partitioned, and copy-on-write but for works
whose names end in ``_mor``. Of each work every engine does one repetition, then each one more; what they leave in their
tables is compared. The seconds are medians; the first repetition of each work warms up and is not counted, but for
streams. Ratios are ours to the other's. ``--engines`` leaves the others out, so that a run is short. ``--store`` adds
what was measured to a JSON file, a list of runs. Environment: ``BENCH_REPEAT`` (3), ``BENCH_BATCHES`` (100, of a
stream), ``BENCH_MEMORY`` (3g, of each).
"""

from __future__ import annotations

import argparse
import datetime as dt
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
    "merge_clauses": ("ours", "hudi", "delta", "iceberg"),
    "update": ("ours", "hudi", "delta", "iceberg"),
    "delete": ("ours", "hudi", "delta", "iceberg"),
    "merge_clauses_mor": ("ours", "hudi", "delta", "iceberg"),
    "update_mor": ("ours", "hudi", "delta", "iceberg"),
    "delete_mor": ("ours", "hudi", "delta", "iceberg"),
    "point": ("ours", "hudi"),
    "incremental": ("ours", "hudi"),
    "cdc": ("ours", "hudi"),
    "cdc_upsert": ("ours", "hudi"),
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
    parser = argparse.ArgumentParser(prog="bench.sql")
    parser.add_argument("rows", type=int, nargs="?", default=1_000_000)
    parser.add_argument("works", nargs="*", default=list(WORKS), metavar="work", help=", ".join(WORKS))
    parser.add_argument("--engines", nargs="+", choices=["ours", "hudi", "delta", "iceberg"])
    parser.add_argument("--store", type=Path, metavar="FILE")
    given = parser.parse_args()
    repeat = int(os.environ.get("BENCH_REPEAT", "3"))
    asked = {work: tuple(e for e in WORKS[work] if e in (given.engines or WORKS[work])) for work in given.works}
    engines = dict.fromkeys(engine for some in asked.values() for engine in some)
    with tempfile.TemporaryDirectory(prefix="bench-sql-", dir=os.environ.get("BENCH_DIR")) as scratch:
        workers = {engine: Worker(engine, Path(scratch) / engine, given.rows) for engine in engines}
        for group in _groups(given.works):
            turns = 1 if group == ["stream"] else repeat + 1
            for work, found in _in_turns(workers, {work: asked[work] for work in group}, turns).items():
                print(json.dumps({work: found}), flush=True)
                if given.store is not None:
                    _store(given.store, {"rows": given.rows, "repetitions": repeat, work: found})
        for worker in workers.values():
            worker.stop()


def _store(file: Path, run: dict[str, Any]) -> None:
    """Add a run to a file, with the time and how busy the machine was."""
    runs = json.loads(file.read_text()) if file.exists() else []
    at = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    runs.append(
        {"at": at, "load": round(os.getloadavg()[1], 1), "batches": os.environ.get("BENCH_BATCHES", "100"), **run}
    )
    file.write_text(json.dumps(runs, indent=1) + "\n")


def _groups(works: list[str]) -> list[list[str]]:
    together = [work for work in works if work in _TOGETHER]
    return [*([together] if together else []), *([work] for work in works if work not in _TOGETHER)]


def _in_turns(workers: dict[str, Worker], works: dict[str, tuple[str, ...]], turns: int) -> dict[str, dict[str, Any]]:
    """Seconds of each work by engine, medians and all; with ratios."""
    seconds: dict[tuple[str, str], list[float]] = {}
    answers: dict[str, Any] = {}
    for turn in range(turns):
        for work in works:
            given = {engine: workers[engine].run(work, turn) for engine in works[work]}
            answers[work] = next(iter(given.values()))["answer"]
            different = {e: g["answer"] for e, g in given.items() if g["answer"] != answers[work]}
            if different:
                raise SystemExit(f"{work}: {next(iter(given))} has {answers[work]}, others {different}")
            for engine, one in given.items():
                seconds.setdefault((work, engine), []).append(one["seconds"])
    medians = {place: statistics.median(times[1:] or times) for place, times in seconds.items()}
    found: dict[str, dict[str, Any]] = {}
    for work in works:
        found[work] = {engine: round(medians[work, engine], 3) for engine in works[work]}
        ours = medians.get((work, "ours"))
        if ours is not None:
            found[work]["ratios"] = {e: round(ours / medians[work, e], 2) for e in works[work] if e != "ours"}
        found[work]["all"] = {engine: [round(one, 3) for one in seconds[work, engine]] for engine in works[work]}
        if work == "passthrough":
            found[work] = {"milliseconds": answers[work]}
    return found


if __name__ == "__main__":
    main()
