"""Which row wins, and how winners get into a batch, against plain Python models."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.write.rowmerge import apply_rows, incoming_wins, last_winners


def wins(old: list[object], new: list[object], kind: pa.DataType, *, delete: bool = False) -> list[bool]:
    deletes = np.full(len(new), delete)
    return incoming_wins([pa.array(old, kind)], [pa.array(new, kind)], deletes).tolist()


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (pa.int32(), 1, 2),
        (pa.int64(), -5, 0),
        (pa.string(), "Z", "a"),
        (pa.string(), "a", "é"),
        (pa.float64(), 1.5, math.inf),
        (pa.float64(), math.inf, math.nan),
        (pa.float64(), -0.0, 0.0),
        (pa.float64(), -2.0, -1.0),
        (pa.decimal128(10, 2), Decimal("-1.00"), Decimal("0.50")),
        (pa.date32(), date(2024, 1, 1), date(2024, 1, 2)),
        (pa.timestamp("us", "UTC"), 1, 2),
        (pa.bool_(), False, True),
        (pa.string(), None, ""),
        (pa.int64(), None, 1),
        (pa.int64(), -1, None),
    ],
)
def test_greater_ordering_wins_and_ties_go_to_the_incoming_row(kind: pa.DataType, low: object, high: object) -> None:
    assert wins([low, high, low, high], [high, low, low, high], kind) == [True, False, True, True]


def test_nulls_count_as_zero_for_numbers() -> None:
    assert wins([0, None, None], [None, 0, None], pa.int64()) == [True, True, True]
    assert wins([5], [None], pa.int64()) == [False]


def test_a_delete_without_ordering_value_always_wins() -> None:
    assert wins([100, 100], [None, 50], pa.int64(), delete=True) == [True, False]
    assert wins([100, 100], [0, 50], pa.int32(), delete=True) == [True, False]
    # only the integer 0 stands for "no ordering": a bigint 0 is a value
    assert wins([100], [0], pa.int64(), delete=True) == [False]


def test_several_ordering_fields_compare_as_a_tuple() -> None:
    base = [pa.array([5] * 5), pa.array(["m"] * 5)]
    new = [pa.array([5, 5, 4, 6, 5]), pa.array(["n", "l", "z", "a", "m"])]
    assert incoming_wins(base, new, np.zeros(5, dtype=bool)).tolist() == [True, False, False, True, True]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3)), max_size=30),
    st.booleans(),
)
def test_the_last_winner_of_each_position(rows: list[tuple[int, int]], by_event_time: bool) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    expected: dict[int, int] = {}
    for i, (position, value) in enumerate(rows):
        if position not in expected or not by_event_time or value >= rows[expected[position]][1]:
            expected[position] = i
    ordering = [pa.array([value for _, value in rows], pa.int64())] if by_event_time else []
    picked = last_winners(np.array([p for p, _ in rows], dtype=np.int64), ordering, np.zeros(len(rows), dtype=bool))
    assert picked.tolist() == list(expected.values())


@settings(deadline=None)
@given(st.integers(0, 20), st.data())
def test_apply_rows_equals_the_model(n: int, data: st.DataObject) -> None:
    positions = sorted(data.draw(st.sets(st.integers(0, n - 1)))) if n else []
    deletes = [data.draw(st.booleans()) for _ in positions]
    schema = pa.schema([("a", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.int32()))])
    base = pa.RecordBatch.from_pylist([{"a": i, "s": str(i), "l": [i]} for i in range(n)], schema)
    updates = pa.RecordBatch.from_pylist([{"a": -p, "s": None, "l": None} for p in positions], schema)
    model = dict(enumerate(base.to_pylist()))
    for row, position, delete in zip(updates.to_pylist(), positions, deletes, strict=True):
        if delete:
            del model[position]
        else:
            model[position] = row
    kept = updates.filter(pa.array([not d for d in deletes], pa.bool_()))
    merged = apply_rows(base, kept, np.array(positions, dtype=np.int64), np.array(deletes, dtype=bool))
    assert merged.to_pylist() == list(model.values())
    assert merged.schema == schema
