"""The tables of ``docs/benchmarks.md``: ratios to the rivals, the runs that they are of, and the goals missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.published_runs import Row, Run, rows_of
from bench.report import GOALS, LABELS, WORK, counted, goal_ratios, markdown_table
from bench.workloads import ENGINES

HEADLINES = {
    "Bulk insert": ("bulk_insert",),
    "Upserts": ("upsert_1", "upsert_10", "mor_upsert_02", "mor_upsert_1", "mor_upsert_10"),
    "Scans": ("scan", "partition"),
    "Merge-on-read scans": ("mor_scan_1", "mor_scan_5", "mor_scan_20"),
}
"""What the first lines of the page say → the work that it sums up."""
RIVALS = ("hudi", "iceberg", "delta", "parquet")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def headlines(run: Run, series: str = "3.5") -> str:
    """Return a line for each kind of work, with the least and the greatest ratio to each rival, as Markdown."""
    rows = rows_of(run, series)
    lines = []
    for name, works in HEADLINES.items():
        spans = []
        for rival in RIVALS:
            ratios = sorted(ratio for row in rows if row.work in works and (ratio := row.ratio(rival)) is not None)
            if ratios:
                least, most = f"{ratios[0]:.2f}", f"{ratios[-1]:.2f}"
                spans.append(f"{least if least == most else f'{least} to {most}'} × {LABELS[rival]}")
        if spans:
            lines.append(f"- **{name}**: {', '.join(spans)}")
    return "\n".join(lines)


def summarize(runs: Mapping[str, Run]) -> str:
    """Return the part of the page that follows from the published runs, as Markdown.

    Args:
        runs: By the key of ``ENGINES``.
    """
    names = sorted({run.name: run for run in runs.values()}.values(), key=lambda run: run.when, reverse=True)
    letters = dict(zip((run.name for run in names), LETTERS, strict=False))
    lines: list[str] = []
    for series, run in runs.items():
        lines += [f"### Spark {run.spark(series)}", "", *_ratios(rows_of(run, series), letters[run.name]), ""]
    lines += ["Runs:", "", *(_described(run, letters[run.name]) for run in names)]
    lines += ["", "### Goals missed", "", *_missed(runs)]
    return "\n".join(lines)


def _ratios(rows: Sequence[Row], letter: str) -> list[str]:
    rivals = [rival for rival in RIVALS if any(row.ratio(rival) for row in rows)]
    cells = [
        [WORK[row.work], f"{row.seconds['ours']:.2f}", *(_ratio(row.ratio(rival)) for rival in rivals), letter]
        for row in rows
    ]
    return markdown_table(["", "pyhudi, seconds", *(f"/ {LABELS[rival]}" for rival in rivals), "run"], cells)


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"**{ratio:.2f}**" if round(ratio, 2) > 1 else f"{ratio:.2f}"


def _described(run: Run, letter: str) -> str:
    facts, machine = run.document, run.document["machine"]
    load = f", load before the run {facts['load_before']:.1f}" if "load_before" in facts else ""
    note = f"; {facts['note']}" if "note" in facts else ""
    return (
        f"- {letter}: {run.when[:10]}, commit `{facts['commit']}`, {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_gib']} GiB, {counted(facts['repeat'])}{load}{note} "
        f"([figures](../bench/results/{run.name}))"
    )


def _missed(runs: Mapping[str, Run]) -> list[str]:
    """Return the missed goals on each Spark, and the number of goals without figures."""
    said, cells = [], []
    for series, run in runs.items():
        judged = goal_ratios(run.seconds(series))
        missed = [(goal, ratio) for goal, ratio in judged if ratio > goal.limit]
        without = sum(set(goal.others) <= set(ENGINES[series]) for goal in GOALS) - len(judged)
        unknown = f", and {without} without figures" if without else ""
        said.append(f"Spark {series}: {len(missed)} of {len(judged)}{unknown}.")
        cells += [[goal.text, f"{ratio:.2f}", series] for goal, ratio in missed]
    return [" ".join(said), "", *(markdown_table(["goal", "measured", "Spark"], cells) if cells else [])]
