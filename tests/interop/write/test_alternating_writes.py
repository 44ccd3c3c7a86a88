"""Apache Hudi and pyhudi write the same table in turns and agree on it after every commit.

The combinations of table version, layout, types, merge mode, index, metadata table and who begins are pairwise: every
pair of choices is in some test, and every choice in one of those that `make test` runs. One of each engine goes through
nine commits of every operation, the others through two, so that each side meets what the other wrote."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cases import seldom
from tests.interop.harness.both import OURS, THEIRS, Both
from tests.interop.harness.oracle import OTHER_RELEASES, Oracle
from tests.interop.harness.pairwise import pairwise
from tests.interop.harness.scenarios import ENGINES, LAYOUTS, Scenario, Step, ping_pong_steps

ENGINE_OF = {6: ENGINES[0], 8: ENGINES[1], 9: ENGINES[-1]}
NEW_WRITES_OLD = next(engine for engine in ENGINES if (engine.release, engine.version) == ("1.2.0", 6))


def _scenarios() -> list[Scenario]:
    """Pairwise; where rows lie and how they are looked up are different rooms of both engines. Version 6 is written by
    0.15.0, and by 1.2.0 every third time."""
    axes = {
        "version": (6, 8, 9),
        "layout": LAYOUTS,
        "wide": (False, True),
        "event_time": (False, True),
        "index": ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"),
        "metadata": (True, False),
        "ours_first": (True, False),
    }
    rows = pairwise(axes, lambda row: row["layout"].fits(ENGINE_OF[row["version"]]), unrelated={("layout", "index")})
    old = itertools.cycle([ENGINE_OF[6], NEW_WRITES_OLD, ENGINE_OF[6]])
    engines = [next(old) if row["version"] == 6 else ENGINE_OF[row["version"]] for row in rows]
    traits = [name for name in axes if name != "version"]
    return [Scenario(engine, **{name: row[name] for name in traits}) for engine, row in zip(engines, rows, strict=True)]


SCENARIOS = _scenarios()
LONG = list({scenario.engine: scenario for scenario in reversed(SCENARIOS)}.values())
"""One scenario of each engine gets all nine commits."""

SHORT = [scenario for scenario in SCENARIOS if scenario not in LONG]
OTHER = [
    replace(next(s for s in SHORT if s.engine.version == engine.version and s.layout.fits(engine)), engine=engine)
    for engine in ENGINES
    if engine.release in OTHER_RELEASES
]
"""One scenario of each release whose table version another one writes, too."""

SHORT_STEPS = [
    Step("bulk_insert", numbers=tuple(range(12)), mode="overwrite"),
    Step("upsert", numbers=(0, 1, 5, 12, 13), stale=(8,)),
]


def _cases(scenarios: list[Scenario]) -> list[Any]:
    return [pytest.param(scenario.engine.release, scenario, id=str(scenario)) for scenario in scenarios]


def _choices(scenario: Scenario) -> set[tuple[str, Any]]:
    """The choices; a layout is one of keys and partitions, and another one of the names of folders."""
    fields = ("engine", "wide", "event_time", "index", "metadata", "ours_first")
    layout = str(scenario.layout)
    found = {("layout", layout.removesuffix("-hive")), ("hive", layout.endswith("-hive"))}
    return found | {(name, str(getattr(scenario, name))) for name in fields}


def _usual(scenarios: list[Scenario]) -> list[Any]:
    """The cases, those left out that bring no choice which no case before has."""
    left = set().union(*map(_choices, scenarios))
    found = set()
    while left:
        best = max(scenarios, key=lambda scenario: len(_choices(scenario) & left))
        left -= _choices(best)
        found.add(str(best))
    return [case if case.id in found else seldom(case) for case in _cases(scenarios)]


def _sides(scenario: Scenario) -> tuple[str, str]:
    return (OURS, THEIRS) if scenario.ours_first else (THEIRS, OURS)


@pytest.mark.parametrize(
    ("oracle", "scenario"), [seldom(case) for case in _cases([*LONG, *OTHER])], indirect=["oracle"]
)
def test_nine_commits(oracle: Oracle, scenario: Scenario, spark: Any, tmp_path: Path) -> None:
    both = Both(scenario, tmp_path / "table", oracle, spark)
    sides = _sides(scenario)
    bookmark = "000"
    instants = []
    for number, step in enumerate(ping_pong_steps(scenario.layout)):
        side = sides[number % 2]
        both.write(side, step)
        both.check_snapshot()
        both.check_incremental(bookmark)
        if side == OURS:
            both.check_filter()
        elif scenario.metadata:
            assert "files" in oracle.metadata_partitions(both.path), "Apache Hudi rebuilds its metadata table"
        bookmark = both.bookmark()
        instants.append(both.last_write().requested)
    both.check_incremental("000")
    for instant in instants[1::3]:
        both.check_time_travel(instant)
    both.check_timeline()
    both.check_hudi_rs()


@pytest.mark.parametrize(("oracle", "scenario"), [*_usual(SHORT), *_cases(OTHER)], indirect=["oracle"])
def test_each_reads_and_changes_what_the_other_wrote(
    oracle: Oracle, scenario: Scenario, spark: Any, tmp_path: Path
) -> None:
    both = Both(scenario, tmp_path / "table", oracle, spark)
    first, second = _sides(scenario)
    load, change = SHORT_STEPS
    both.write(first, load)
    both.check_snapshot()
    bookmark = both.bookmark()
    both.write(second, change)
    both.check_snapshot()
    both.check_incremental(bookmark)
    both.check_filter()
    both.check_timeline()
    both.check_hudi_rs()
