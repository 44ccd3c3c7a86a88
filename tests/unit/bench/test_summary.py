"""What the benchmark's page says: ratios, runs, goals; and that its plots follow from the runs alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench.jars import ROOT
from bench.plots import draw, save
from bench.published_runs import load_runs, newest_rows
from bench.report import GOALS, PAGES, WORK, replace_section
from bench.summary import headlines, missed_goals, summarize

from tests.unit.bench.runs import a_run, everything

PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "bench" / "results"


def test_a_table_has_seconds_and_ratios_and_marks_what_is_slower():
    times = {"ours": {"scan": [3.0]}, "hudi": {"scan": [6.0]}, "iceberg": {"scan": [2.0]}}
    text = summarize([a_run("a.json", "2026-11-24", times)])
    assert "|  | pyhudi, seconds | / Apache Hudi 1.2.0 | / Iceberg 1.10.0 | run |" in text
    assert "| scan of the whole table | 3.00 | 0.50 | **1.50** | a |" in text
    assert "- a: 2026-11-24, commit `0a1b2c3`, a processor, 2 cores" in text


def test_what_rounds_to_one_is_not_marked():
    times = {"ours": {"scan": [1.004]}, "hudi": {"scan": [1.0]}}
    assert "| 1.00 | 1.00 | a |" in summarize([a_run("a.json", "2026-11-24", times)])


def test_runs_that_are_not_whole_are_called_so():
    whole = everything("a.json", "2026-11-24")
    assert "No stored run" not in summarize([whole])
    whole.document["runs"].pop()
    assert "No stored run covers everything: " in summarize([whole])


def test_runs_have_letters_from_the_newest_on():
    newer = a_run("newer.json", "2026-11-24", {"ours": {"scan": [1.0]}, "hudi": {"scan": [2.0]}})
    older = a_run("older.json", "2026-11-23", {"ours": {"point": [1.0]}, "hudi": {"point": [2.0]}})
    unused = a_run("unused.json", "2026-11-22", {"ours": {"point": [9.0]}})
    text = summarize([newer, older, unused])
    assert re.findall(r"^- (\w): .*/(\w+\.json)", text, re.MULTILINE) == [("a", "newer.json"), ("b", "older.json")]


@pytest.mark.parametrize(("ours", "expected"), [(0.001, 0), (1000.0, len(GOALS))])
def test_goals_are_missed_above_their_limits(ours: float, expected: int):
    missed, judged = missed_goals(newest_rows([everything("a", "2026-11-24", ours=ours)], "3.5"), "3.5")
    assert (len(missed), judged) == (expected, len(GOALS))


def test_both_sides_of_a_goal_are_of_one_run():
    upserts = a_run("a", "2026-11-24", {"ours": {"upsert_1": [9.0]}})
    inserts = a_run("b", "2026-11-23", {"ours": {"bulk_insert": [1.0]}, "parquet": {"bulk_insert": [1.0]}})
    missed, judged = missed_goals(newest_rows([upserts, inserts], "3.5"), "3.5")
    assert (missed, judged) == ([], 1)  # an upsert beside plain files' bulk insert is not judged by two runs


def test_headlines_have_the_least_and_the_greatest_ratio():
    times = {"ours": {"upsert_1": [1.0], "upsert_10": [3.0]}, "hudi": {"upsert_1": [10.0], "upsert_10": [10.0]}}
    assert headlines([a_run("a", "2026-11-24", times)]) == "- **Upserts**: 0.10 to 0.30 × Apache Hudi 1.2.0"


def test_the_page_has_what_the_stored_runs_say():
    runs = load_runs(RESULTS)
    assert f"<!-- summary: begin -->\n{summarize(runs)}\n<!-- summary: end -->" in PAGE.read_text()
    assert f"<!-- headlines: begin -->\n{headlines(runs)}\n<!-- headlines: end -->" in PAGE.read_text()


def test_every_section_has_its_marks():
    for section, page in PAGES.items():
        text = (ROOT / "docs" / page).read_text()
        assert re.findall(r"<!-- (.*) -->", text) == [f"{section}: begin", f"{section}: end"]


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
        save(draw([everything("a.json", "2026-11-24")])["growth"], tmp_path / name)
        saved.append((tmp_path / name).read_bytes())
    assert saved[0] == saved[1]
    assert b"<dc:date>" not in saved[0]


def test_bars_show_ratios_and_seconds_ours_first():
    figures = draw([everything("a.json", "2026-11-24", ours=1.0, theirs=4.0)])
    panels = figures["ratios"].axes
    assert [panel.get_title(loc="left") for panel in panels][:2] == ["/ Apache Hudi 1.2.0", "/ Iceberg 1.10.0"]
    assert {bar.get_width() for panel in panels for bar in panel.patches} == {0.25}
    assert len(panels[0].patches) == len(WORK)
    for panel in figures["writes"].axes:
        assert panel.get_yticklabels()[0].get_text() == "pyhudi"
        assert [bar.get_width() for bar in panel.patches] == [1.0, 4.0, 4.0, 4.0, 4.0]


def test_plots_are_drawn_from_few_figures():
    figures = draw([a_run("a", "2026-11-24", {"ours": {"scan": [1.0]}, "hudi": {"scan": [2.0]}})])
    assert set(figures) == {"ratios", "reads", "growth"}
