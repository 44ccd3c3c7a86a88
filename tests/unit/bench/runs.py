"""Results of benchmark runs, created directly in their stored form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.published_runs import Run
from bench.report import WORK
from bench.workloads import ENGINES

Times = Mapping[str, Mapping[str, Sequence[float]]]
VERSIONS = {"3.5": "3.5.9", "4": "4.3.0"}


def a_run(name: str, day: str, times: Times | None = None, series: str = "3.5") -> Run:
    """Return a run; ``times`` has the seconds of each engine's operations, the first of which is a warm-up if there are
    several."""
    engines: list[dict[str, Any]] = [
        {
            "engine": engine,
            "spark": VERSIONS[series],
            "measured": [
                {"work": work, "turn": turn, "counts": turn > 0 or len(seconds) == 1, "seconds": one}
                for work, seconds in works.items()
                for turn, one in enumerate(seconds)
            ],
        }
        for engine, works in (times or {}).items()
    ]
    machine = {"cpu": "a processor", "cores": 2, "memory_gib": 24}
    return Run(
        name,
        {
            "scale": 1.0,
            "repeat": 3,
            "machine": machine,
            "commit": "0a1b2c3",
            "when": f"{day}T01:02:03+00:00",
            "load_before": 0.5,
            "runs": engines,
        },
    )


def everything(name: str, day: str, series: str = "3.5", ours: float = 1.0, theirs: float = 2.0) -> Run:
    """Return a complete run in which all operations of pyhudi take the same time, and so do all of the other
    engines."""
    times = {engine: {work: [ours if engine == "ours" else theirs] for work in WORK} for engine in ENGINES[series]}
    return a_run(name, day, times, series)
