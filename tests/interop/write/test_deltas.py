"""Apache Hudi and pyhudi write deltas and deletes on each other's file slices in turns and agree on the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.transaction.transaction import Transaction
from tests.cases import seldom
from tests.interop.harness.both import OURS, THEIRS, Both
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import ENGINES, LAYOUTS, Engine, Scenario, Step
from tests.properties import FACTOR

LAYOUT = next(layout for layout in LAYOUTS if layout.name == "one")
# 1.0.2 cannot read slices that mix deletes by key with a bigint ordering field
SCENARIOS = [
    Scenario(Engine("0.15.0", 6), LAYOUT, event_time=True, metadata=False, merge_on_read=True),
    Scenario(Engine("1.0.2", 8), LAYOUT, metadata=False, ours_first=True, merge_on_read=True),
    Scenario(Engine("1.2.0", 9), LAYOUT, event_time=True, wide=True, ours_first=True, merge_on_read=True),
    Scenario(Engine("1.2.0", 6), LAYOUT, metadata=False, index="BLOOM", merge_on_read=True),
    Scenario(Engine("1.1.1", 9), LAYOUT, event_time=True, merge_on_read=True),
]
assert {scenario.engine for scenario in SCENARIOS} < set(ENGINES)

# 1.0.2 cannot append nulls, which rows 3, 10, 17, … have
STEPS = [
    Step("bulk_insert", numbers=tuple(range(24)), mode="overwrite"),
    Step("upsert", numbers=(0, 1, 5, 25, 27), stale=(8,)),
    Step("upsert", numbers=(0, 2, 3, 5, 26)),
    Step("delete", numbers=(2, 5, 26)),
    Step("delete", numbers=(4, 9, 11)),
    Step("upsert", numbers=(2, 6, 11, 29), stale=(0,)),
    Step("upsert", numbers=(2, 3, 5, 7, 9)),
    Step("insert_overwrite", numbers=(0, 6, 30)),
    Step("upsert", numbers=(0, 1, 4, 31)),
    Step("insert", numbers=(32, 33)),
]


def _cases() -> list[Any]:
    cases = [pytest.param(scenario.engine.release, scenario, id=str(scenario)) for scenario in SCENARIOS]
    # 0.15.0 writes version 6, too; 1.1.1 has no other test of merge-on-read tables
    return [case if number in (2, 4) else seldom(case) for number, case in enumerate(cases)]


@pytest.mark.parametrize(("oracle", "scenario"), _cases(), indirect=["oracle"])
def test_deltas_in_turns(oracle: Oracle, scenario: Scenario, spark: SparkSession, tmp_path: Path) -> None:
    both = Both(scenario, tmp_path / "table", oracle, spark)
    sides = (OURS, THEIRS) if scenario.ours_first else (THEIRS, OURS)
    # the second delete and the last insert are like those before
    for number, step in enumerate(STEPS if FACTOR >= 1 else [*STEPS[:4], *STEPS[5:9]]):
        both.write(sides[number % 2], step)
        if number % 2 or FACTOR >= 1:
            both.check_snapshot()
    slices = HudiTable.for_path(str(both.path)).inspect.file_slices()
    assert max(map(len, slices["log_paths"].to_pylist())) >= 1
    both.check_hudi_rs()


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
@pytest.mark.parametrize("event_time", [seldom(False), True], ids=["commit time", "event time"])
def test_hudi_rs_reads_our_deltas_of_version_9(
    event_time: bool, oracle: Oracle, spark: SparkSession, tmp_path: Path
) -> None:
    scenario = Scenario(Engine("1.2.0", 9), LAYOUT, event_time=event_time, merge_on_read=True)
    both = Both(scenario, tmp_path / "table", oracle, spark)
    for step in STEPS[:4]:  # the next one would be compacted
        both.write(OURS, step)
    slices = HudiTable.for_path(str(both.path)).inspect.file_slices()
    assert max(map(len, slices["log_paths"].to_pylist())) >= 2
    both.check_our_snapshot()
    both.check_hudi_rs()


@pytest.mark.parametrize(("oracle", "scenario"), _cases()[:3:2], indirect=["oracle"])
def test_each_rolls_back_what_the_other_left(
    oracle: Oracle, scenario: Scenario, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Both(scenario, tmp_path / "table", oracle, spark)
    load, first, second = STEPS[:3]
    both.write(THEIRS, load)
    both.write(OURS, first)
    expected = dict(both.model.content)

    both.write(THEIRS, second)  # as if they had died before the end
    _timeline_file(both.path, f"{_newest(both)}*.deltacommit").unlink()
    both.model.content = dict(expected)
    both.write(OURS, Step("upsert", numbers=(1, 7)))
    both.check_snapshot()
    assert not _pending(both)

    expected = dict(both.model.content)
    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "commit", _die)
        patch.setattr(Transaction, "abort", _die)
        with pytest.raises(KeyboardInterrupt):
            both.write(OURS, second)
    assert _pending(both) == ["deltacommit"]
    both.model.content = dict(expected)
    both.write(THEIRS, Step("upsert", numbers=(2, 8)))
    if scenario.engine.version < 8:
        # its rollback block has a later instant than its own write, at which its reader stops, until the next write
        both.check_our_snapshot()
    else:
        both.check_snapshot()
    assert not _pending(both)
    # in version 6 the blocks must stay void when the timeline forgets the write
    both.write(OURS, Step("upsert", numbers=(5, 8)))
    both.check_snapshot()


def _die(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def _timeline_file(table: Path, pattern: str) -> Path:
    """A file of the table's own timeline; the metadata table has one like it."""
    (found,) = (path for path in (table / ".hoodie").rglob(pattern) if "metadata" not in path.parts)
    return found


def _newest(both: Both) -> str:
    return str(HudiTable.for_path(str(both.path)).latest_instant)


def _pending(both: Both) -> list[str]:
    history = HudiTable.for_path(str(both.path)).history().to_pylist()
    return [row["action"] for row in history if row["state"] != "COMPLETED" and row["action"] != "rollback"]
