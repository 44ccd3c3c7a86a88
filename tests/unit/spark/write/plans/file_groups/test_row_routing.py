"""Numbers of tasks that write file groups."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.spark.write.plans.file_groups.row_routing import _placed_groups
from pyhudi.write.planning.workload_profile import GROUPS_SCHEMA

_MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("groups", "size", "cores", "tasks"),
    [(1, 1_000, 8, 1), (7, 1_000, 8, 1), (8, 1_000, 8, 2), (40, 1_000, 8, 8), (40, 1_000, 2, 2), (2, 4 * _MIB, 8, 2)],
)
def test_idle_cores_write_many_file_groups_or_large_ones(groups: int, size: int, cores: int, tasks: int) -> None:
    rows = [{"partition": "", "file_id": f"f{i}", "base_path": None, "rows": 10, "size": size} for i in range(groups)]
    placed, count = _placed_groups(pa.Table.from_pylist(rows, GROUPS_SCHEMA), cores, max_tasks=200)
    assert count == len(set(placed["task"].to_pylist())) == tasks
