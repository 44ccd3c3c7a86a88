"""Selection of the stored runs that ``docs/benchmarks.md`` shows: for each Spark the newest whole one, so that all
figures of a table, and its ratios, are from one run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.report import WORK, medians
from bench.workloads import ENGINES, WORKS

SCALE = 1.0
"""The scale factor that the page shows."""
DELTAS = {"scan": 0, "mor_scan_1": 1, "mor_scan_5": 5, "mor_scan_20": 20}
"""Scan → the number of deltas on the table; without deltas it is the same whatever the table's type."""


@dataclass(frozen=True)
class Run:
    """A stored result document; ``name`` is that of its file."""

    name: str
    document: dict[str, Any]

    @property
    def when(self) -> str:
        return str(self.document["when"])

    def spark(self, series: str) -> str:
        """The whole version of Spark that begins with ``series``, empty where it did not run on such a Spark."""
        return next((run["spark"] for run in self.document["runs"] if run["spark"].startswith(series)), "")

    def seconds(self, series: str) -> dict[str, dict[str, float]]:
        """Engine → work → median seconds."""
        return medians(self.document, series)


@dataclass(frozen=True)
class Row:
    """One piece of work; ``seconds`` has the median of each engine that did it."""

    work: str
    seconds: dict[str, float]

    def ratio(self, rival: str) -> float | None:
        """Return our time as a multiple of the rival's; None if one of them did not do the work."""
        ours, theirs = self.seconds.get("ours"), self.seconds.get(rival)
        return ours / theirs if ours and theirs else None


def load_runs(results: Path) -> list[Run]:
    """Return all stored runs, the newest first."""
    runs = [Run(path.name, json.loads(path.read_text())) for path in sorted(results.glob("*.json"))]
    return sorted(runs, key=lambda run: run.when, reverse=True)


def is_whole(run: Run, series: str) -> bool:
    """Return True if every engine of that Spark took part, and ours did some work of every part.

    A run that dies stores nothing, so a part of which there is something was done to its end.
    """
    found = run.seconds(series)
    ours = found.get("ours", {}).keys()
    return set(ENGINES[series]) <= found.keys() and all(ours & set(works) for works in WORKS.values())


def published_runs(runs: Sequence[Run]) -> dict[str, Run]:
    """Return the newest whole run of each Spark that has one, by the key of ``ENGINES``.

    Args:
        runs: The newest first.
    """
    shown = [run for run in runs if run.document["scale"] == SCALE]
    newest = {series: next((run for run in shown if is_whole(run, series)), None) for series in ENGINES}
    return {series: run for series, run in newest.items() if run is not None}


def rows_of(run: Run, series: str) -> list[Row]:
    """Return a row for each piece of work that ours has done on that Spark, in the order of ``WORK``."""
    found = run.seconds(series)
    rows = [Row(work, {name: times[work] for name, times in found.items() if work in times}) for work in WORK]
    return [row for row in rows if "ours" in row.seconds]
