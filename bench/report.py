"""From measurements to a JSON document, the Markdown tables of ``docs/benchmarks.md`` and the goals met or missed."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORK = {
    "bulk_insert": "bulk insert",
    "upsert_1": "upsert 1 % + 0.1 % new",
    "upsert_10": "upsert 10 % + 0.1 % new",
    "mor_upsert_02": "merge-on-read upsert 0.2 % + 0.1 % new",
    "mor_upsert_1": "merge-on-read upsert 1 % + 0.1 % new",
    "mor_upsert_10": "merge-on-read upsert 10 % + 0.1 % new",
    "bucket_upsert_02": "the same with a bucket index, 0.2 %",
    "bucket_upsert_1": "the same with a bucket index, 1 %",
    "bucket_upsert_10": "the same with a bucket index, 10 %",
    "record_first_upsert_1": "upsert 1 % that builds the record index",
    "record_upsert_1": "upsert 1 % with the record index",
    "record_upsert_10": "upsert 10 % with the record index",
    "record_point": "point lookup by key with the record index",
    "record_key": "the same without Spark",
    "compaction": "compaction after merge-on-read upserts",
    "mor_scan_1": "merge-on-read scan after one delta of 1 %",
    "mor_scan_5": "merge-on-read scan after five",
    "mor_scan_20": "merge-on-read scan after twenty",
    "mor_optimized": "read-optimized scan after them",
    "scan": "scan and aggregate",
    "partition": "one partition, aggregate",
    "point": "point lookup by key",
}
LABELS = {
    "parquet": "plain parquet",
    "ours": "pyhudi",
    "hudi": "Apache Hudi 1.2.0",
    "delta": "Delta 3.3.2",
    "iceberg": "Iceberg 1.10.0",
}
SECTION = "measured"


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
    Goal("bulk_insert", 1.2, ("parquet",)),
    Goal("bulk_insert", 0.4, ("hudi",)),
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
        for work in ("mor_upsert_02", "mor_upsert_1")
        for goal in (Goal(work, 0.1, ("hudi",)), Goal(work, 0.4, ("delta",)), Goal(work, 0.8, ("iceberg",)))
    ),
    Goal("mor_upsert_10", 0.12, ("hudi",)),
    Goal("mor_upsert_10", 1.0, ("iceberg",)),
    *(
        goal
        for work in ("upsert_02", "upsert_1", "upsert_10")
        for goal in (Goal(f"bucket_{work}", 0.3, ("hudi",)), Goal(f"bucket_{work}", 0.6, ("iceberg",), f"mor_{work}"))
    ),
    *(Goal(f"record_{work}", 0.3, ("hudi",)) for work in ("first_upsert_1", "upsert_1", "upsert_10")),
    Goal("record_point", 0.5, ("hudi",)),
    Goal("compaction", 0.4, ("hudi",)),
    Goal("compaction", 1.0, ("delta",)),
    *(
        goal
        for work in ("mor_scan_1", "mor_scan_5", "mor_scan_20")
        for goal in (Goal(work, 0.6, ("hudi",)), Goal(work, 1.0, ("iceberg",)))
    ),
    Goal("mor_scan_1", 1.5, ("parquet",), "scan"),
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
            if row["counts"]:
                times.setdefault(row["work"], []).append(row["seconds"])
        found[run["engine"]] = {work: statistics.median(seconds) for work, seconds in times.items()}
    return found


def write_report(document: dict[str, Any], results: Path, page: Path | None, section: str = SECTION) -> None:
    """Print the tables, store the JSON document, and put the tables between the two marks of a section of the page."""
    results.mkdir(parents=True, exist_ok=True)
    name = f"sf{document['scale']:g}-{document['when'].replace(':', '')}.json"
    text = render(document, name)
    print(text)
    if page is None:
        return
    (results / name).write_text(json.dumps(document, indent=1) + "\n")
    begin, end = (f"<!-- {section}: {mark} -->" for mark in ("begin", "end"))
    before, found, rest = page.read_text().partition(begin)
    _, _, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page} has no place for the section {section!r}: no {begin}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def render(document: dict[str, Any], source: str) -> str:
    """The measured part of the page as Markdown."""
    machine = document["machine"]
    lines = [
        f"Scale factor {document['scale']:g} ({document['rows']:,} rows), {document['repeat']} counted repetitions "
        "of writes and three times as many of reads, all warm; "
        f"median seconds; driver memory {document['memory']}. {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_gib']} GiB; commit `{document['commit']}`, {document['when']}, load before the run "
        f"{document['load_before']:.2f}. All repetitions: `bench/results/{source}`.",
    ]
    for spark in ("3.5", "4"):
        runs = _runs(document, spark)
        if runs:
            lines += ["", f"### Spark {runs[0]['spark']}", "", *_seconds(document, spark), "", *_memory(runs)]
            if spark == "3.5":
                lines += ["", *_goals(medians(document, spark))]
    return "\n".join(lines)


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
    return _table(["seconds", *(LABELS[engine] for engine in found), *ratios], rows)


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
    return _table(["peak MiB: all (Python workers)", *(LABELS[run["engine"]] for run in runs)], rows)


def _goals(found: dict[str, dict[str, float]]) -> list[str]:
    rows = []
    for goal in GOALS:
        ours = found.get("ours", {}).get(goal.work)
        work = goal.against or goal.work
        theirs = [found[name][work] for name in goal.others if work in found.get(name, {})]
        if ours is None or len(theirs) < len(goal.others):
            continue
        ratio = ours / min(theirs)
        rows.append([goal.text, f"{ratio:.2f}", "met" if ratio <= goal.limit else "**missed**"])
    return _table(["goal", "measured", ""], rows) if rows else []


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    line = "|" + "---|" + "---:|" * (len(header) - 1)
    return ["| " + " | ".join(cells) + " |" if cells else line for cells in (header, [], *rows)]
