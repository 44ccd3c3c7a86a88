"""The tables of ``docs/benchmarks.md``: ratios to the rivals, the runs that they are of, and the goals missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.published_runs import Row, Run, is_whole, newest_rows
from bench.report import GOALS, LABELS, WORK, Goal, goal_ratios, markdown_table
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


def headlines(runs: Sequence[Run], series: str = "3.5") -> str:
    """A line for each kind of work, with the least and the greatest ratio to each rival, as Markdown.

    Args:
        runs: The newest first.
        series: A key of `ENGINES`.
    """
    rows = newest_rows(runs, series)
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


def summarize(runs: Sequence[Run]) -> str:
    """The part of the page that follows from the stored runs, as Markdown.

    Args:
        runs: The newest first.
    """
    tables = {series: newest_rows(runs, series) for series in ENGINES}
    shown = {row.run.name for rows in tables.values() for row in rows}
    letters = dict(zip((run.name for run in runs if run.name in shown), LETTERS, strict=False))
    lines: list[str] = []
    for series, rows in tables.items():
        if rows:
            version = " and ".join(sorted({row.run.spark(series) for row in rows}))
            lines += [f"### Spark {version}", "", *_ratios(rows, letters), ""]
    if not all(is_whole(row.run, series) for series, rows in tables.items() for row in rows):
        lines += ["No stored run covers everything: each row is from the newest run that measured it.", ""]
    lines += ["Runs:", "", *(_described(run, letters[run.name]) for run in runs if run.name in shown)]
    lines += ["", "### Goals missed", "", *_missed(tables)]
    return "\n".join(lines)


def missed_goals(rows: Sequence[Row], series: str = "3.5") -> tuple[list[tuple[Goal, float]], int]:
    """The goals that were missed, with what was measured; and how many goals there were.

    Both sides of a goal are of the same run.
    """
    judged = [
        (goal, ratio) for row in rows for goal, ratio in goal_ratios(row.run.seconds(series)) if goal.work == row.work
    ]
    return [(goal, ratio) for goal, ratio in judged if ratio > goal.limit], len(judged)


def _ratios(rows: Sequence[Row], letters: dict[str, str]) -> list[str]:
    rivals = [rival for rival in RIVALS if any(row.ratio(rival) for row in rows)]
    cells = [
        [
            WORK[row.work],
            f"{row.seconds['ours']:.2f}",
            *(_ratio(row.ratio(rival)) for rival in rivals),
            letters[row.run.name],
        ]
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
        f"{machine['memory_gib']} GiB, {facts['repeat']} counted repetitions{load}{note} "
        f"([figures](../bench/results/{run.name}))"
    )


def _missed(tables: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return the missed goals on each Spark, and the number of goals without figures."""
    said, cells = [], []
    for series, rows in tables.items():
        missed, judged = missed_goals(rows, series)
        without = sum(set(goal.others) <= set(ENGINES[series]) for goal in GOALS) - judged
        unknown = f", and {without} without figures" if without else ""
        said.append(f"Spark {series}: {len(missed)} of {judged}{unknown}.")
        cells += [[goal.text, f"{ratio:.2f}", series] for goal, ratio in missed]
    return [" ".join(said), "", *(markdown_table(["goal", "measured", "Spark"], cells) if cells else [])]
