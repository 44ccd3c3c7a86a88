"""Which stored runs the benchmark's page shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench.published_runs import Run, deltas_run, is_whole, load_runs, newest_rows
from bench.report import WORK
from bench.workloads import ENGINES, WORKS

from tests.unit.bench.runs import a_run, everything


def shown(runs: list[Run], series: str = "3.5") -> dict[str, str]:
    """Work → name of the run that its row is of."""
    return {row.work: row.run.name for row in newest_rows(runs, series)}


def test_every_work_belongs_to_a_part():
    assert set(WORK) == {"bulk_insert", *(work for works in WORKS.values() for work in works)}


def test_the_newest_run_comes_first(tmp_path: Path):
    for run in (a_run("a.json", "2026-11-22"), a_run("b.json", "2026-11-23"), a_run("c.json", "2026-11-21")):
        (tmp_path / run.name).write_text(json.dumps(run.document))
    assert [run.name for run in load_runs(tmp_path)] == ["b.json", "a.json", "c.json"]


def test_medians_are_of_repetitions_that_count():
    run = a_run("a", "2026-11-22", {"ours": {"scan": [9.0, 2.0, 4.0, 3.0]}})
    assert run.seconds("3.5") == {"ours": {"scan": 3.0}}


@pytest.mark.parametrize("series", ENGINES)
def test_a_run_is_whole_with_all_engines_and_parts(series: str):
    assert is_whole(everything("a", "2026-11-22", series), series)


@pytest.mark.parametrize("engine", ENGINES["3.5"])
def test_a_run_without_an_engine_is_not_whole(engine: str):
    run = everything("a", "2026-11-22")
    run.document["runs"] = [one for one in run.document["runs"] if one["engine"] != engine]
    assert not is_whole(run, "3.5")


@pytest.mark.parametrize("part", WORKS)
def test_a_run_without_a_part_is_not_whole(part: str):
    run = everything("a", "2026-11-22")
    for one in run.document["runs"]:
        one["measured"] = [row for row in one["measured"] if row["work"] not in WORKS[part]]
    assert not is_whole(run, "3.5")


def test_a_whole_run_gives_all_rows_beside_newer_ones_that_are_not_whole():
    newer, whole, older = (
        a_run("newer", "2026-11-24", {"ours": {"scan": [1.0]}, "hudi": {"scan": [2.0]}}),
        everything("whole", "2026-11-23"),
        everything("older", "2026-11-22"),
    )
    assert shown([newer, whole, older]) == dict.fromkeys(WORK, "whole")


def test_without_a_whole_run_each_row_is_of_the_newest_that_has_it():
    scans = a_run("scans", "2026-11-24", {"ours": {"scan": [1.0]}, "hudi": {"scan": [2.0]}})
    rivals = a_run("rivals", "2026-11-25", {"hudi": {"scan": [3.0]}})
    writes = a_run("writes", "2026-11-23", {"ours": {"scan": [5.0], "upsert_1": [5.0]}})
    assert shown([rivals, scans, writes]) == {"upsert_1": "writes", "scan": "scans"}


def test_other_scales_and_other_sparks_are_left_out():
    large, small = everything("large", "2026-11-24"), everything("small", "2026-11-23")
    large.document["scale"] = 10.0
    assert set(shown([large, small]).values()) == {"small"}
    assert shown([large, small], "4") == {}


def test_a_ratio_is_ours_by_theirs_of_one_run():
    timed: dict[str, Any] = {"ours": {"scan": [3.0]}, "hudi": {"scan": [6.0]}}
    row, *more = newest_rows([a_run("a", "2026-11-24", timed), everything("b", "2026-11-23")][:1], "3.5")
    assert not more
    assert (row.ratio("hudi"), row.ratio("iceberg")) == (0.5, None)


def test_growth_is_of_the_run_with_the_most_deltas_then_of_the_newest():
    few = a_run("few", "2026-11-25", {"ours": {"scan": [1.0], "mor_scan_1": [1.0]}})
    many = {"ours": {"scan": [1.0], "mor_scan_1": [1.0], "mor_scan_5": [1.0]}}
    runs = [few, a_run("newer", "2026-11-24", many), a_run("older", "2026-11-23", many)]
    found = deltas_run(runs, "3.5")
    assert found is not None
    assert found.name == "newer"
    assert deltas_run([a_run("a", "2026-11-25", {"ours": {"scan": [1.0]}})], "3.5") is None
