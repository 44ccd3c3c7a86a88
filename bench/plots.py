"""``python -m bench.plots``: brings the tables and plots of ``docs/benchmarks.md`` up to the newest stored runs.

Measures nothing. The same runs give the same bytes: no dates and no random names in the files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from bench.jars import ROOT
from bench.published_runs import DELTAS, Row, Run, load_runs, published_runs, rows_of
from bench.report import LABELS, WORK, render, replace_section
from bench.summary import RIVALS, headlines, summarize

SERIES = "3.5"
"""The Spark on which all rivals run."""
COLOURS = {"ours": "#0072B2", "hudi": "#E69F00", "iceberg": "#CC79A7", "delta": "#009E73", "parquet": "#8C8C8C"}
"""Of Okabe and Ito: people with colour blindness tell them from each other."""
FASTER, SLOWER = COLOURS["ours"], "#D55E00"
MARKERS = {"ours": "o", "hudi": "s", "iceberg": "^", "delta": "D", "parquet": "x"}
INK, FAINT = "#24292F", "#6E7781"
STYLE = {
    "figure.facecolor": "white",  # a card of its own, which is readable on dark pages, too
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.color": "#D8DEE4",
    "svg.hashsalt": "pyhudi",
    "text.color": INK,
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
}
BARS = {
    "writes": ("bulk_insert", "compaction", "upsert_1", "upsert_10", "mor_upsert_1", "mor_upsert_10"),
    "reads": ("scan", "partition", "point", "mor_scan_1", "mor_scan_5", "mor_scan_20"),
    "indexes": ("bucket_upsert_1", "bucket_upsert_10", "record_upsert_1", "record_upsert_10"),
}
"""Plot → the work whose seconds it shows."""
SHARES = {"mor_upsert_02": 0.2, "mor_upsert_1": 1.0, "mor_upsert_10": 10.0}
"""Upsert of a merge-on-read table → per cent of the rows that it changes."""


def refresh(results: Path, docs: Path) -> None:
    """Write the tables of the pages and all plots.

    Args:
        results: The folder of stored runs.
        docs: The folder of the documentation.
    """
    runs = published_runs(load_runs(results))
    replace_section(docs / "benchmarks.md", "headlines", headlines(runs[SERIES]))
    replace_section(docs / "benchmarks.md", "summary", summarize(runs))
    replace_section(docs / "benchmarks" / "whole_runs.md", "runs", figures(runs))
    for name, figure in draw(runs[SERIES]).items():
        save(figure, docs / "images" / f"benchmark-{name}.svg")


def figures(runs: Mapping[str, Run]) -> str:
    """Return the seconds, the memory and the goals of the published runs, as Markdown."""
    return "\n\n".join(render(run.document, series) for series, run in runs.items())


def draw(run: Run) -> dict[str, Figure]:
    """Return all plots by name."""
    rows = rows_of(run, SERIES)
    by_work = {row.work: row for row in rows}
    source = _source(run)
    with mpl.rc_context(STYLE):
        plots = {"ratios": _ratios([row for row in rows if any(map(row.ratio, RIVALS))], source)}
        for name, works in BARS.items():
            plots[name] = _seconds(name, [by_work[work] for work in works], source)
        plots["growth"] = _growth(by_work, source)
    return plots


def save(figure: Figure, path: Path) -> None:
    """Write a plot as SVG, the same bytes for the same figures."""
    with mpl.rc_context(STYLE):
        figure.savefig(path, metadata={"Date": None, "Creator": None})
    # matplotlib ends lines with spaces
    path.write_text("".join(f"{line.rstrip()}\n" for line in path.read_text().splitlines()))


def _ratios(rows: Sequence[Row], source: str) -> Figure:
    """A panel for each rival; in it, our time as a multiple of the rival's."""
    figure = Figure(figsize=(10, 1.7 + 0.29 * len(rows)), layout="constrained")
    panels = figure.subplots(1, len(RIVALS), sharex=True, sharey=True)
    for axes, rival in zip(panels, RIVALS, strict=True):
        for place, row in enumerate(rows):
            ratio = row.ratio(rival)
            if ratio is not None:
                axes.barh(place, ratio, height=0.66, color=FASTER if round(ratio, 2) <= 1 else SLOWER)
                end = 1 if 0.65 < ratio < 1 else ratio  # the figure must not meet the line at 1
                axes.text(end + 0.03, place, f"{ratio:.2f}", va="center", fontsize=8)
        axes.axvline(1, color=INK, linewidth=1)
        axes.set_title(f"/ {LABELS[rival]}")
        _bare(axes)
        axes.xaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}×"))
    most = max(ratio for row in rows for rival in RIVALS if (ratio := row.ratio(rival)) is not None)
    panels[0].set_xlim(0, max(1.3, most + 0.3))
    panels[0].set_yticks(range(len(rows)), [WORK[row.work] for row in rows])
    panels[0].set_ylim(len(rows) - 0.4, -0.6)
    _entitle(figure, "Time of pyhudi as a multiple of the rival's: left of the line, pyhudi is faster")
    _note(figure, f"Median seconds of pyhudi / median seconds of the rival. No bar: not measured.\n{source}")
    return figure


def _seconds(name: str, rows: Sequence[Row], source: str) -> Figure:
    """A panel for each piece of work, and in it a bar for each engine, ours first."""
    lines, most = -(-len(rows) // 2), max(len(row.seconds) for row in rows)
    figure = Figure(figsize=(10, 1 + lines * (0.55 + 0.25 * most)), layout="constrained")
    for axes, row in itertools.zip_longest(figure.subplots(lines, 2, squeeze=False).flat, rows):
        if row is None:
            axes.set_visible(False)
            continue
        engines = [engine for engine in ("ours", *RIVALS) if engine in row.seconds]
        axes.barh(engines, [row.seconds[e] for e in engines], height=0.7, color=[COLOURS[e] for e in engines])
        for place, engine in enumerate(engines):
            axes.text(row.seconds[engine], place, f" {_labelled(row, engine)}", va="center", fontsize=8)
        axes.set_xlim(0, max(row.seconds.values()) * 1.3)
        axes.set_yticks(range(len(engines)), [LABELS[engine] for engine in engines])
        axes.set_ylim(most - 0.4, -0.6)
        axes.set_title(WORK[row.work])
        _bare(axes)
    _entitle(figure, f"{name.capitalize()}: seconds, and as a multiple of pyhudi (shorter is better)")
    _note(figure, f"Median seconds. {source}")
    return figure


def _labelled(row: Row, engine: str) -> str:
    seconds, ours = row.seconds[engine], row.seconds["ours"]
    return f"{seconds:.2f} s" if engine == "ours" else f"{seconds:.2f} s · {seconds / ours:.1f}×"


def _growth(by_work: Mapping[str, Row], source: str) -> Figure:
    """Scans over the number of deltas, and upserts over the share of rows that they change."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for engine in ("ours", "hudi", "iceberg", "delta"):
        scans = {DELTAS[work]: row.seconds.get(engine) for work, row in by_work.items() if work in DELTAS}
        _line(left, engine, sorted((number, seconds) for number, seconds in scans.items() if seconds is not None))
    plain = by_work["scan"].seconds["parquet"]
    left.axhline(plain, color=COLOURS["parquet"], linestyle="--", label=LABELS["parquet"])
    left.set_ylim(0, None)
    left.set_xticks(sorted({*DELTAS.values()}))
    left.set_xlabel("deltas of 1 % on the merge-on-read table")
    left.set_ylabel("seconds of a scan")
    left.set_title("Merge-on-read scan after so many deltas")
    upserts = [by_work[work] for work in SHARES if work in by_work]
    for engine in ("ours", "hudi", "iceberg", "delta"):
        _line(right, engine, [(SHARES[row.work], row.seconds[engine]) for row in upserts if engine in row.seconds])
    right.set_xscale("log")
    right.set_yscale("log")
    for axis, ticks in ((right.xaxis, list(SHARES.values())), (right.yaxis, [1, 2, 5, 10, 20, 50])):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    right.set_xlabel("per cent of the rows that change (log scale)")
    right.set_ylabel("seconds of an upsert (log scale)")
    right.set_title("Merge-on-read upsert of so many rows")
    for axes in (left, right):
        axes.grid(True, linewidth=0.6)
        axes.set_axisbelow(True)
    lines = {name: line for axes in (right, left) for line, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    place = {"loc": "upper left", "bbox_to_anchor": (0, 0.95), "ncols": len(LABELS)}
    figure.legend(lines.values(), lines.keys(), frameon=False, **place)
    _entitle(figure, "How time grows with deltas and with changed rows\n")  # the legend is in the second line
    _note(figure, source)
    return figure


def _line(axes: Axes, engine: str, points: Iterable[tuple[float, float]]) -> None:
    places = list(points)
    if places:
        x, y = zip(*places, strict=True)
        wide = 2.4 if engine == "ours" else 1.4
        axes.plot(x, y, color=COLOURS[engine], marker=MARKERS[engine], linewidth=wide, label=LABELS[engine])


def _bare(axes: Axes) -> None:
    axes.grid(True, axis="x", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0)


def _entitle(figure: Figure, title: str) -> None:
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")


def _note(figure: Figure, text: str) -> None:
    figure.supxlabel(text, x=0.01, ha="left", fontsize=8, color=FAINT)


def _source(run: Run) -> str:
    machine = run.document["machine"]
    cpu = machine["cpu"].replace("(R)", "")
    return f"TPC-H lineitem, scale factor 1, Spark {SERIES}; {run.when[:10]}, {cpu}, {machine['cores']} cores."


if __name__ == "__main__":
    refresh(ROOT / "bench" / "results", ROOT / "docs")
