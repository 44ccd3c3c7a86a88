"""Which file slices a clustering plan takes on, and how they are grouped."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.config import Options
from pyhudi.errors import InvalidOptionError
from pyhudi.services.clustering.plan_strategies import PlanStrategy
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.timeline.instant import State
from pyhudi.timeline.plans.clustering_plan import ClusteringPlan

PLAN = "hoodie.clustering.plan.strategy."
DAYS = [f"2026/11/{day:02}" for day in range(1, 5)]


def _slices(sizes: dict[str, list[int | None]]) -> pa.Table:
    rows = [
        {
            "partition": partition,
            "file_id": f"{partition}-{n}",
            "base_instant": "1",
            "base_path": None if size is None else f"{partition}/{partition.replace('/', '')}{n}_0-0-0_1.parquet",
            "base_size": size,
            "log_paths": [f"{partition}/.{n}.log"] if size is None else [],
            "log_sizes": [7] if size is None else [],
        }
        for partition, found in sizes.items()
        for n, size in enumerate(found)
    ]
    return pa.Table.from_pylist(rows, schema=SLICE_SCHEMA)


def _groups(sizes: dict[str, list[int | None]], hour: int = 0, **given: Any) -> tuple[list[list[int]], tuple[int, ...]]:
    """For each group the numbers of its slices in their partition."""
    opts = Options.parse({PLAN + key.replace("__", "."): value for key, value in given.items() if value is not None})
    strategy = PlanStrategy.from_options(opts, new_file_size=50, now=datetime(2026, 11, 4, hour))
    plan = strategy.plan(_slices(sizes))
    found: list[list[int]] = [[] for _ in plan.outputs]
    for row in plan.inputs.to_pylist():
        found[row["group"]].append(int(row["file_id"].rpartition("-")[2]))
    return found, plan.outputs


@pytest.mark.parametrize(
    "name",
    [
        *("SparkSizeBasedClusteringPlanStrategy", "SparkSingleFileSortPlanStrategy"),
        *("JavaSizeBasedClusteringPlanStrategy", "SparkRecentDaysClusteringPlanStrategy"),
    ],
)
def test_strategies_are_named_with_and_without_their_package(name: str) -> None:
    now, package = datetime(2026, 11, 4), "org.apache.hudi.client.clustering.plan.strategy."
    with_package = PlanStrategy.from_options(Options.parse({f"{PLAN}class": package + name}), 50, now)
    assert PlanStrategy.from_options(Options.parse({f"{PLAN}class": name}), 50, now) == with_package
    with pytest.raises(InvalidOptionError, match="FlinkSizeBased"):
        PlanStrategy.from_options(Options.parse({f"{PLAN}class": f"{package}FlinkSizeBasedClusteringPlanStrategy"}), 50)


def test_largest_first_as_many_as_fit():
    sizes: dict[str, list[int | None]] = {"a": [10, 40, None, 99, 30]}
    found = _groups(sizes, max__bytes__per__group=100, small__file__limit=99, target__file__max__bytes=45)
    # a slice without a base file is taken to need a whole new one
    assert found == ([[2, 1], [4, 0]], (2, 1))


def test_a_slice_larger_than_a_group_is_one():
    assert _groups({"a": [500, 400, 1]}, max__bytes__per__group=100) == ([[0], [1], [2]], (1, 1, 1))


def test_what_is_left_over_alone():
    given = {"max__bytes__per__group": 100, "single__group__clustering__enabled": "false"}
    assert _groups({"a": [60, 40, 30], "b": [5]}, **given) == ([[0, 1]], (1,))


def test_as_many_groups_as_allowed():
    given = {"max__bytes__per__group": 10, "max__num__groups": 3}
    assert _groups({"a": [10, 10], "b": [10, 10]}, **given)[0] == [[0], [1], [0]]


def test_files_one_by_one():
    name = "org.apache.hudi.client.clustering.plan.strategy.SparkSingleFileSortPlanStrategy"
    assert _groups({"a": [10, 20]}, **{"class": name}) == ([[1], [0]], (1, 1))


@pytest.mark.parametrize(
    ("mode", "given", "expected"),
    [
        ("NONE", {}, DAYS),
        ("NONE", {"partition__selected": f"{DAYS[2]},{DAYS[0]},none"}, [DAYS[0], DAYS[2]]),
        ("NONE", {"partition__regex__pattern": r"2026/11/0[34]"}, DAYS[2:]),
        ("NONE", {"partition__regex__pattern": "2026"}, []),
        ("RECENT_DAYS", {}, [DAYS[3], DAYS[2]]),
        ("RECENT_DAYS", {"daybased__skipfromlatest__partitions": 1, "daybased__lookback__partitions": 1}, [DAYS[2]]),
        ("SELECTED_PARTITIONS", {"cluster__begin__partition": DAYS[1], "cluster__end__partition": DAYS[2]}, DAYS[1:3]),
        ("DAY_ROLLING", {}, [DAYS[2]]),
    ],
)
def test_partitions(mode: str, given: dict[str, Any], expected: list[str]):
    opts = Options.parse(
        {
            "hoodie.clustering.plan.partition.filter.mode": mode,
            **{PLAN + key.replace("__", "."): value for key, value in given.items()},
        }
    )
    strategy = PlanStrategy.from_options(opts, 50, datetime(2026, 11, 4, 1))
    plan = strategy.plan(_slices({day: [1] for day in DAYS}))
    assert plan.inputs["partition"].to_pylist() == expected


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_plan_is_the_same_when_read_again(version: int):
    strategy = PlanStrategy.from_options(Options.parse({}), 50)
    plan = replace(strategy.plan(_slices({"a": [10, None], "": [5]})), sort_columns=("x", "y.z"))
    data = plan.encode(version, lambda path: f"s3://bucket/t/{path}")
    again = ClusteringPlan.decode("clustering", "1", State.REQUESTED, data)
    named = ["group", "partition", "file_id", "base_file", "log_files"]
    assert again.inputs.select(named) == plan.inputs.select(named)
    assert (again.outputs, again.strategy, again.sort_columns) == (plan.outputs, plan.strategy, plan.sort_columns)
