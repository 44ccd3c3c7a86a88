"""Numbers of tasks, by the settings of the session."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pyhudi.spark.execution.slice_tasks import parallelism


@pytest.mark.parametrize(
    ("settings", "tasks"),
    [
        ({"spark.master": "local"}, 1),
        ({"spark.master": "local[3]"}, 3),
        ({"spark.master": "local[3,2]"}, 3),
        ({"spark.master": "local-cluster[2,1,1024]"}, 16),
        ({}, 16),
        ({"spark.master": "local", "spark.default.parallelism": "7"}, 7),
    ],
)
def test_tasks_that_run_at_a_time(settings: dict[str, str], tasks: int) -> None:
    assert parallelism(SimpleNamespace(conf=settings)) == tasks  # type: ignore[arg-type]
