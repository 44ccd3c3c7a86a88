"""Rows of a task, group by group."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.arrow.group_runs import by_group


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 8))
def test_every_group_comes_once_with_all_its_rows(numbers: list[int], size: int) -> None:
    table = pa.table({"n": pa.array(sorted(numbers), pa.int32()), "row": pa.array(range(len(numbers)), pa.int64())})
    found = list(by_group([*table.to_batches(max_chunksize=size), *table.slice(0, 0).to_batches()], "n"))
    assert [number for number, _ in found] == sorted(set(numbers))
    assert [row for _, rows in found for row in rows["row"].to_pylist()] == list(range(len(numbers)))
    assert all(set(rows["n"].to_pylist()) == {number} for number, rows in found)
