"""Which stored runs the benchmark's page shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.published_runs import is_whole, load_runs, published_runs, rows_of
from bench.report import WORK
from bench.workloads import ENGINES, WORKS

from tests.unit.bench.runs import a_run, everything


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


def test_the_newest_whole_run_of_a_spark_is_published():
    partial = a_run("partial", "2026-11-24", {"ours": {"scan": [1.0]}, "hudi": {"scan": [2.0]}})
    large = everything("large", "2026-11-24")
    large.document["scale"] = 10.0
    runs = [partial, large, everything("whole", "2026-11-23"), everything("older", "2026-11-22")]
    assert {series: run.name for series, run in published_runs(runs).items()} == {"3.5": "whole"}
    runs.insert(0, everything("newest", "2026-11-25", "4"))
    assert {series: run.name for series, run in published_runs(runs).items()} == {"3.5": "whole", "4": "newest"}


def test_rows_are_of_work_that_ours_did():
    run = a_run("a", "2026-11-24", {"ours": {"scan": [3.0]}, "hudi": {"scan": [6.0], "point": [1.0]}})
    [row] = rows_of(run, "3.5")
    assert (row.work, row.ratio("hudi"), row.ratio("iceberg")) == ("scan", 0.5, None)
    assert rows_of(run, "4") == []
