"""From measurements to a JSON document, the Markdown tables of ``docs/benchmarks/`` and the goals met or missed."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORK = {
    "bulk_insert": "bulk insert",
    "upsert_1": "upsert of 1 %",
    "upsert_10": "upsert of 10 %",
    "mor_upsert_02": "merge-on-read upsert of 0.2 %",
    "mor_upsert_1": "merge-on-read upsert of 1 %",
    "mor_upsert_10": "merge-on-read upsert of 10 %",
    "bucket_upsert_02": "bucket index: upsert of 0.2 %",
    "bucket_upsert_1": "bucket index: upsert of 1 %",
    "bucket_upsert_10": "bucket index: upsert of 10 %",
    "record_first_upsert_1": "record index: upsert of 1 % that builds it",
    "record_upsert_1": "record index: upsert of 1 %",
    "record_upsert_10": "record index: upsert of 10 %",
    "record_point": "record index: point lookup",
    "record_key": "record index: point lookup without Spark",
    "compaction": "compaction after three upserts",
    "mor_scan_1": "merge-on-read scan after 1 delta",
    "mor_scan_5": "merge-on-read scan after 5 deltas",
    "mor_scan_20": "merge-on-read scan after 20 deltas",
    "mor_optimized": "read-optimized scan after the deltas",
    "scan": "scan of the whole table",
    "partition": "scan of one partition",
    "point": "point lookup by key",
}
LABELS = {
    "parquet": "plain Parquet",
    "ours": "pyhudi",
    "hudi": "Apache Hudi 1.2.0",
    "delta": "Delta 3.3.2",
    "iceberg": "Iceberg 1.10.0",
}


@dataclass(frozen=True)
class Goal:
    """``work`` shall take at most ``limit`` times what the best of ``others`` takes for ``against`` (the same when
    empty)."""

    work: str
    limit: float
    others: tuple[str, ...]
    against: str = ""

    @property
    def text(self) -> str:
        names = " and ".join(LABELS[name] for name in self.others)
        best = "the better of " if len(self.others) > 1 else ""
        what = f", {WORK[self.against]}" if self.against else ""
        return f"{WORK[self.work]} ≤ {self.limit:g} × {best}{names}{what}"


GOALS = (
    Goal("bulk_insert", 1.05, ("parquet",)),
    Goal("bulk_insert", 0.25, ("hudi",)),
    *(
        goal
        for work in ("upsert_1", "upsert_10")
        for goal in (
            Goal(work, 0.25, ("hudi",)),
            Goal(work, 0.7, ("delta", "iceberg")),
            Goal(work, 1.5, ("parquet",), "bulk_insert"),
        )
    ),
    *(
        goal
        for work, limit in (("mor_upsert_02", 0.8), ("mor_upsert_1", 0.32))
        for goal in (Goal(work, 0.1, ("hudi",)), Goal(work, 0.4, ("delta",)), Goal(work, limit, ("iceberg",)))
    ),
    Goal("mor_upsert_10", 0.12, ("hudi",)),
    Goal("mor_upsert_10", 1.0, ("iceberg",)),
    *(
        goal
        for work in ("upsert_02", "upsert_1", "upsert_10")
        for goal in (Goal(f"bucket_{work}", 0.3, ("hudi",)), Goal(f"bucket_{work}", 0.6, ("iceberg",), f"mor_{work}"))
    ),
    *(Goal(f"record_{work}", 0.3, ("hudi",)) for work in ("first_upsert_1", "upsert_1", "upsert_10")),
    Goal("record_point", 0.4, ("hudi",)),
    Goal("compaction", 0.4, ("hudi",)),
    Goal("compaction", 1.0, ("delta",)),
    *(
        goal
        for work, limit in (("mor_scan_1", 0.6), ("mor_scan_5", 0.4), ("mor_scan_20", 0.4))
        for goal in (Goal(work, limit, ("hudi",)), Goal(work, 1.0, ("iceberg",)))
    ),
    Goal("mor_scan_1", 1.15, ("parquet",), "scan"),
    Goal("mor_optimized", 1.1, ("parquet",), "scan"),
    Goal("scan", 1.1, ("parquet",)),
    Goal("point", 1.0, ("hudi",)),
    Goal("partition", 1.0, ("hudi",)),
)


def check_answers(document: dict[str, Any]) -> None:
    """All engines must have given the same rows: a fast wrong answer is no answer.

    Raises:
        SystemExit: they differ; names the work and the engines.
    """
    first: dict[str, tuple[str, Any]] = {}
    for run in document["runs"]:
        for work, answer in run["answers"].items():
            engine, expected = first.setdefault(work, (run["engine"], answer))
            if answer != expected:
                raise SystemExit(f"{work}: {run['engine']} answers {answer}\nbut {engine} {expected}")


def medians(document: dict[str, Any], spark: str) -> dict[str, dict[str, float]]:
    """Engine → work → median seconds of the counted repetitions, for the runs on that Spark."""
    found: dict[str, dict[str, float]] = {}
    for run in _runs(document, spark):
        times: dict[str, list[float]] = {}
        for row in run["measured"]:
            # the oldest run does not say it; only its first repetition was a warm-up
            if row.get("counts", row["turn"] > 0):
                times.setdefault(row["work"], []).append(row["seconds"])
        found[run["engine"]] = {work: statistics.median(seconds) for work, seconds in times.items()}
    return found


def store(document: dict[str, Any], results: Path) -> None:
    """Write the JSON document into the folder of stored runs."""
    results.mkdir(parents=True, exist_ok=True)
    name = f"sf{document['scale']:g}-{document['when'].replace(':', '')}.json"
    (results / name).write_text(json.dumps(document, indent=1) + "\n")


def replace_section(page: Path, section: str, text: str) -> None:
    """Put a text between the two marks of a section of a page.

    Raises:
        SystemExit: The page has no such section.
    """
    begin, end = (f"<!-- {section}: {mark} -->" for mark in ("begin", "end"))
    before, found, rest = page.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{page} has no place for the section {section!r}: no {begin} … {end}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def render(document: dict[str, Any], spark: str) -> str:
    """Return the seconds, the memory and the goals of a run on that Spark, as Markdown."""
    runs = _runs(document, spark)
    tables = [_seconds(document, spark), _memory(runs), _goals(medians(document, spark))]
    lines = [f"## Spark {runs[0]['spark']}", "", _described(document)]
    return "\n".join([*lines, *(line for table in tables if table for line in ("", *table))])


def counted(repetitions: int) -> str:
    """Return the number of counted repetitions as text."""
    return f"{repetitions} counted repetition{'s' if repetitions > 1 else ''}"


def _described(document: dict[str, Any]) -> str:
    machine = document["machine"]
    return (
        f"Scale factor {document['scale']:g} ({document['rows']:,} rows), {counted(document['repeat'])} of writes and "
        f"three times as many of reads, all warm; median seconds; driver memory {document['memory']}. "
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB; commit `{document['commit']}`, "
        f"{document['when'][:10]}."
    )


def _runs(document: dict[str, Any], spark: str) -> list[dict[str, Any]]:
    return [run for run in document["runs"] if run["spark"].startswith(spark)]


def _seconds(document: dict[str, Any], spark: str) -> list[str]:
    found = medians(document, spark)
    others = [engine for engine in found if engine != "ours"]
    ratios = [f"pyhudi / {LABELS[engine]}" for engine in others] if "ours" in found else []
    rows = []
    for work, label in WORK.items():
        if not any(work in times for times in found.values()):
            continue
        cells = [f"{found[engine][work]:.2f}" if work in found[engine] else "" for engine in found]
        ours = found.get("ours", {}).get(work)
        for engine in others if ratios else ():
            theirs = found[engine].get(work)
            cells.append(f"{ours / theirs:.2f}" if ours and theirs else "")
        rows.append([label, *cells])
    return markdown_table(["seconds", *(LABELS[engine] for engine in found), *ratios], rows)


def _memory(runs: list[dict[str, Any]]) -> list[str]:
    rows = []
    for work, label in WORK.items():
        cells = []
        for run in runs:
            peaks = [row for row in run["measured"] if row["work"] == work]
            total, python = (max((row[key] for row in peaks), default=0) >> 20 for key in ("total", "python"))
            cells.append(f"{total:,} ({python:,})" if peaks else "")
        if any(cells):
            rows.append([label, *cells])
    rows.append(["table on disk", *(f"{run['bytes'] >> 20:,}" for run in runs)])
    return markdown_table(["peak MiB: all (Python workers)", *(LABELS[run["engine"]] for run in runs)], rows)


def goal_ratios(found: dict[str, dict[str, float]]) -> list[tuple[Goal, float]]:
    """The goals that a run can tell, each with what was measured, as a multiple of the rivals' best.

    Args:
        found: Engine → work → seconds, all of one run.
    """
    ratios = []
    for goal in GOALS:
        ours = found.get("ours", {}).get(goal.work)
        work = goal.against or goal.work
        theirs = [found[name][work] for name in goal.others if work in found.get(name, {})]
        if ours is not None and len(theirs) == len(goal.others):
            ratios.append((goal, ours / min(theirs)))
    return ratios


def _goals(found: dict[str, dict[str, float]]) -> list[str]:
    judged = ((goal, ratio, "met" if ratio <= goal.limit else "**missed**") for goal, ratio in goal_ratios(found))
    rows = [[goal.text, f"{ratio:.2f}", verdict] for goal, ratio, verdict in judged]
    return markdown_table(["goal", "measured", ""], rows) if rows else []


def markdown_table(header: list[str], rows: list[list[str]]) -> list[str]:
    """Lines of a table; all columns but the first are numbers, set flush right."""
    line = "|" + "---|" + "---:|" * (len(header) - 1)
    return ["| " + " | ".join(cells) + " |" if cells else line for cells in (header, [], *rows)]
