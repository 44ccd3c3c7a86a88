"""Which row wins by its ordering values."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import UnsupportedTableError
from pyhudi.merge.ordering_values import (
    check_orderable,
    distinct,
    field_of,
    newer_wins,
    ordering_ranks,
    padded,
    without_ordering,
)
from pyhudi.schema.name_resolution import field_type


def wins(old: list[object], new: list[object], kind: pa.DataType, *, delete: bool = False) -> list[bool]:
    won = newer_wins([pa.array(old, kind)], [pa.array(new, kind)])
    if delete:
        won |= without_ordering([pa.array(new, kind)], len(new))
    return won.tolist()


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
    # decimals without room for one more digit
    assert wins([Decimal("0.5"), None, Decimal("-0.5")], [None, Decimal("-0.5"), None], pa.decimal128(1, 1)) == [
        False,
        False,
        True,
    ]


def test_a_delete_without_ordering_value_always_wins() -> None:
    assert wins([100, 100], [None, 50], pa.int64(), delete=True) == [True, False]
    assert wins([100, 100], [0, 50], pa.int32(), delete=True) == [True, False]
    # only the integer 0 stands for "no ordering": a bigint 0 is a value
    assert wins([100], [0], pa.int64(), delete=True) == [False]


def test_several_ordering_fields_compare_as_a_tuple() -> None:
    base = [pa.array([5] * 5), pa.array(["m"] * 5)]
    new = [pa.array([5, 5, 4, 6, 5]), pa.array(["n", "l", "z", "a", "m"])]
    assert newer_wins(base, new).tolist() == [True, False, False, True, True]


@given(st.lists(st.one_of(st.none(), st.integers(-3, 3)), max_size=30))
def test_ranks_order_as_pairs_do(values: list[int | None]) -> None:
    column = pa.array(values, pa.int64())
    assert_same_order([column], len(values))


@pytest.mark.parametrize("kind", [pa.string(), pa.float64(), pa.decimal128(2, 1), pa.date32(), pa.bool_(), pa.int32()])
@given(values=st.lists(st.one_of(st.none(), st.integers(0, 1)), max_size=12))
def test_ranks_of_every_kind(kind: pa.DataType, values: list[int | None]) -> None:
    column = pa.array(values, pa.int32())
    column = column.cast(pa.string()).cast(kind) if pa.types.is_decimal(kind) else column.cast(kind)
    assert_same_order([column, pa.array(values[::-1], pa.int64())], len(values))


def assert_same_order(columns: list[pa.Array], n: int) -> None:
    """Every pair of rows compares by rank as by value."""
    found = ordering_ranks(columns, n)
    left, right = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)
    by_value = newer_wins([c.take(pa.array(left)) for c in columns], [c.take(pa.array(right)) for c in columns])
    assert (by_value == (found[right] >= found[left])).all()


def test_ordering_values_inside_structs() -> None:
    rows = pa.RecordBatch.from_pylist([{"s": {"o": 5}}, {"s": None}])
    assert field_of(rows, "s.o").to_pylist() == [5, None]
    assert field_type(rows.schema, "s.o") == pa.int64()
    assert field_type(rows.schema, "s.x") is None
    assert field_type(rows.schema, "x.o") is None


def test_values_without_an_order_are_refused() -> None:
    with pytest.raises(UnsupportedTableError, match=r"'o'.*list<item: int64>"):
        check_orderable(pa.list_(pa.int64()), "o")


@given(st.lists(st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1)))
def test_distinct_numbers_are_ascending(values: list[int]) -> None:
    assert distinct(np.array(values, dtype=np.int64)).tolist() == sorted(set(values))


@given(st.lists(st.tuples(st.integers(0, 2**31), st.integers(0, 2**63 - 1) | st.integers(0, 30)), max_size=9))
def test_sequences_sort_as_their_numbers(pairs: list[tuple[int, int]]) -> None:
    texts = pa.array([None, *(f"{file:06d}.{position}" for file, position in pairs)], pa.string())
    found = padded(texts).to_pylist()
    assert found[0] is None
    assert [pairs[i] for i in np.argsort(np.array(found[1:], dtype=object), kind="stable")] == sorted(pairs)
    assert padded(texts.slice(1)).to_pylist() == found[1:]
