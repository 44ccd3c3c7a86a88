"""What the benchmark's page says: ratios, runs, goals; and that its plots follow from the runs alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench.jars import ROOT
from bench.plots import draw, figures, save
from bench.published_runs import load_runs, published_runs
from bench.report import GOALS, WORK, replace_section
from bench.summary import headlines, summarize

from tests.unit.bench.runs import a_run, everything

PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "bench" / "results"


def test_a_table_has_seconds_and_ratios_and_marks_what_is_slower():
    times = {"ours": {"scan": [3.0]}, "hudi": {"scan": [6.0]}, "iceberg": {"scan": [2.0]}}
    text = summarize({"3.5": a_run("a.json", "2026-11-24", times)})
    assert "|  | pyhudi, seconds | / Apache Hudi 1.2.0 | / Iceberg 1.10.0 | run |" in text
    assert "| scan of the whole table | 3.00 | 0.50 | **1.50** | a |" in text
    assert "- a: 2026-11-24, commit `0a1b2c3`, a processor, 2 cores" in text


def test_what_rounds_to_one_is_not_marked():
    times = {"ours": {"scan": [1.004]}, "hudi": {"scan": [1.0]}}
    assert "| 1.00 | 1.00 | a |" in summarize({"3.5": a_run("a.json", "2026-11-24", times)})


def test_runs_have_letters_from_the_newest_on():
    text = summarize({"3.5": everything("older.json", "2026-11-23"), "4": everything("newer.json", "2026-11-24", "4")})
    assert re.findall(r"^- (\w): .*/(\w+\.json)", text, re.MULTILINE) == [("a", "newer.json"), ("b", "older.json")]
    assert "| 1.00 | 0.50 | 0.50 | 0.50 | 0.50 | b |" in text


@pytest.mark.parametrize(("ours", "expected"), [(0.001, 0), (1000.0, len(GOALS))])
def test_goals_are_missed_above_their_limits(ours: float, expected: int):
    text = summarize({"3.5": everything("a", "2026-11-24", ours=ours)})
    assert f"Spark 3.5: {expected} of {len(GOALS)}." in text


def test_headlines_have_the_least_and_the_greatest_ratio():
    times = {"ours": {"upsert_1": [1.0], "upsert_10": [3.0]}, "hudi": {"upsert_1": [10.0], "upsert_10": [10.0]}}
    assert headlines(a_run("a", "2026-11-24", times)) == "- **Upserts**: 0.10 to 0.30 × Apache Hudi 1.2.0"


def test_the_pages_have_what_the_stored_runs_say():
    runs = published_runs(load_runs(RESULTS))
    summary, whole_runs = PAGE.read_text(), (PAGE.parent / "benchmarks" / "whole_runs.md").read_text()
    assert f"<!-- summary: begin -->\n{summarize(runs)}\n<!-- summary: end -->" in summary
    assert f"<!-- headlines: begin -->\n{headlines(runs['3.5'])}\n<!-- headlines: end -->" in summary
    assert f"<!-- runs: begin -->\n{figures(runs)}\n<!-- runs: end -->" in whole_runs


def test_a_section_is_replaced_between_its_marks(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- s: begin -->\nold\n<!-- s: end -->\nb\n")
    replace_section(page, "s", "new")
    assert page.read_text() == "a\n<!-- s: begin -->\nnew\n<!-- s: end -->\nb\n"
    page.write_text("<!-- s: begin -->\nold\n")
    with pytest.raises(SystemExit, match="no place for the section 's'"):
        replace_section(page, "s", "new")
    assert page.read_text() == "<!-- s: begin -->\nold\n"


def test_plots_are_the_same_bytes_each_time(tmp_path: Path):
    saved = []
    for name in ("first.svg", "second.svg"):
        save(draw(everything("a.json", "2026-11-24"))["growth"], tmp_path / name)
        saved.append((tmp_path / name).read_bytes())
    assert saved[0] == saved[1]
    assert b"<dc:date>" not in saved[0]


def test_bars_show_ratios_and_seconds_ours_first():
    plots = draw(everything("a.json", "2026-11-24", ours=1.0, theirs=4.0))
    panels = plots["ratios"].axes
    assert [panel.get_title(loc="left") for panel in panels][:2] == ["/ Apache Hudi 1.2.0", "/ Iceberg 1.10.0"]
    assert {bar.get_width() for panel in panels for bar in panel.patches} == {0.25}
    assert len(panels[0].patches) == len(WORK)
    for panel in plots["writes"].axes:
        assert panel.get_yticklabels()[0].get_text() == "pyhudi"
        assert [bar.get_width() for bar in panel.patches] == [1.0, 4.0, 4.0, 4.0, 4.0]
