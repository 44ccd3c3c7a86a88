"""Placement keys lead Spark to the tasks we mean, and groups are spread evenly."""

from __future__ import annotations

import numpy as np
import pytest

from pyhudi.spark.execution.task_placement import MIN_TASK_BYTES, assign_tasks, murmur3_int, placement_keys


def test_the_hash_is_sparks() -> None:
    # SELECT hash(0), hash(1), hash(-1), hash(42), hash(2147483647) on Spark 3.5
    assert murmur3_int(np.array([0, 1, 42], dtype=np.int32)).tolist() == [933211791, -559580957, 29417773]


@pytest.mark.parametrize("tasks", [1, 2, 7, 200, 5000])
def test_every_task_has_its_key(tasks: int) -> None:
    keys = np.array(placement_keys(tasks), dtype=np.int32)
    assert np.mod(murmur3_int(keys).astype(np.int64), tasks).tolist() == list(range(tasks))


def test_large_groups_get_tasks_of_their_own_and_small_ones_share() -> None:
    sizes = np.array([1, 50, 1, 40, 1], dtype=np.int64) * MIN_TASK_BYTES
    keys, tasks = assign_tasks(sizes, 3)
    assert tasks == 3
    assert keys[1] != keys[3]
    assert keys[0] == keys[2] == keys[4] == placement_keys(3)[2]
    assert keys[1] == placement_keys(3)[0], "the largest group is on the task that starts first"


def test_a_small_write_is_one_task() -> None:
    assert assign_tasks(np.full(500, 1000, dtype=np.int64), 200)[1] == 1
    assert assign_tasks(np.zeros(0, dtype=np.int64), 200)[1] == 1
