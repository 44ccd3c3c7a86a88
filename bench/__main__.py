"""``python -m bench``: the benchmark. See ``docs/benchmarks.md`` for what is measured and how to read it.

Environment: ``BENCH_SF`` (scale factor, 1), ``BENCH_REPEAT`` (counted repetitions, 3), ``BENCH_MEMORY`` (driver memory
of every engine, 6g), ``BENCH_DIR`` (where tables are written, the system's temporary folder), ``BENCH_READS`` (counted
reads a repetition, 3), ``BENCH_READS_UNTIL_WARM`` (reads before those, 4), ``BENCH_WRITES_UNTIL_WARM`` (writes before
those that count, 1)."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.data import Dataset, prepare
from bench.jars import ROOT
from bench.memory_sampling import Sampler
from bench.plots import refresh
from bench.report import check_answers, render, store
from bench.workloads import ENGINES, PARTS, WORKS, works_of

SPARK4 = ROOT / ".venv-spark4" / "bin" / "python"
RESULTS = ROOT / "bench" / "results"


def main() -> None:
    """Run the engines one after another and report; a run of all work and engines is stored."""
    options = _arguments()
    scale, repeat = float(os.environ.get("BENCH_SF", "1")), int(os.environ.get("BENCH_REPEAT", "3"))
    memory = os.environ.get("BENCH_MEMORY", "6g")
    print(f"lineitem at scale {scale:g}: making or reusing it", flush=True)
    data = prepare(scale)
    document: dict[str, Any] = {
        "scale": scale,
        "rows": data.rows,
        "repeat": repeat,
        "memory": memory,
        "machine": _machine(),
        "commit": _commit(),
        "when": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "load_before": os.getloadavg()[0],
        "runs": [],
    }
    pythons = {"3.5": Path(sys.executable), "4": SPARK4}
    for spark in options.spark:
        python = pythons[spark]
        if not python.exists():
            print(f"no {python}: Spark {spark} is left out (`make bench` makes it)", flush=True)
            continue
        for name in ENGINES[spark]:
            if name in options.engines:
                document["runs"].append(_run(python, name, data, repeat, memory, options.only))
    check_answers(document)
    for spark in options.spark:
        if any(run["spark"].startswith(spark) for run in document["runs"]):
            print(render(document, spark))
    engines = {name for spark in options.spark for name in ENGINES[spark]}
    is_whole = works_of(options.only) == works_of(PARTS) and engines <= set(options.engines)
    if is_whole and not options.no_write:
        store(document, RESULTS)
        refresh(RESULTS, ROOT / "docs")


def _run(python: Path, engine: str, data: Dataset, repeat: int, memory: str, only: Sequence[str]) -> dict[str, Any]:
    """One engine's process from start to end; its measurements with peak memory."""
    with tempfile.TemporaryDirectory(prefix=f"bench-{engine}-", dir=os.environ.get("BENCH_DIR")) as scratch:
        folder = Path(scratch)
        job = {
            "engine": engine,
            "scale": data.scale,
            "data": str(data.folder),
            "rows": data.rows,
            "lookups": data.lookups,
            "folder": str(folder),
            "repeat": repeat,
            "memory": memory,
            "only": only,
        }
        log = (folder / "log").open("w+")
        env = {**os.environ, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}
        env.pop("SPARK_HOME", None)
        process = subprocess.Popen(
            [str(python), "-m", "bench.worker", json.dumps(job)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
            env=env,
        )
        assert process.stdout is not None
        sampler = Sampler(process.pid)
        run: dict[str, Any] = {"engine": engine, "measured": [], "answers": {}}
        for line in process.stdout:
            _take(json.loads(line), run, sampler)
        sampler.stop()
        if process.wait():
            log.seek(0)
            tail = "".join(log.readlines()[-60:])
            raise SystemExit(f"{engine} failed:\n{tail}")
    return run


def _take(fact: dict[str, Any], run: dict[str, Any], sampler: Sampler) -> None:
    """Put one line of a worker into its run."""
    event = fact.pop("event")
    if event == "begin":
        sampler.take()
    elif event == "end":
        peak = sampler.take()
        answer = fact.pop("answer")
        if answer is not None:
            run["answers"][f"{fact['work']}/{fact['turn'] if fact['work'] == 'point' else 0}"] = answer
        run["measured"].append({**fact, "jvm": peak.jvm, "python": peak.python, "total": peak.total})
        print(f"{run['engine']:>8} {fact['work']:<12} {fact['turn']} {fact['seconds']:8.2f} s", flush=True)
    elif event == "check":
        run["answers"][f"after {fact['work']}"] = fact["answer"]
    else:
        run |= fact


def _machine() -> dict[str, Any]:
    model = [
        line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": model[0] if model else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages / 2**30),
        "system": platform.platform(),
    }


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--no-write", action="store_true", help="store nothing, and leave the pages as they are")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES["3.5"]), choices=ENGINES["3.5"])
    parser.add_argument("--spark", nargs="+", default=list(ENGINES), choices=ENGINES)
    selected = {"choices": [*PARTS, *(work for works in WORKS.values() for work in works)], "metavar": "PART_OR_WORK"}
    parser.add_argument("--only", nargs="+", default=list(PARTS), help="parts of the table's life", **selected)
    return parser.parse_args()


if __name__ == "__main__":
    main()
