"""Space-filling curves over columns of any type."""

from __future__ import annotations

import datetime as dt
import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.config.enums import LayoutStrategy
from pyhudi.services.clustering.space_filling_curves import (
    assign_ranges,
    curve_positions,
    hilbert_positions,
    range_bounds,
    z_order_positions,
)


def _grid(dimensions: int, bits: int) -> list[np.ndarray]:
    points = np.array(list(itertools.product(range(1 << bits), repeat=dimensions)), dtype=np.int64)
    return [points[:, axis] for axis in range(dimensions)]


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 5), (2, 1), (2, 4), (3, 3), (4, 2)])
def test_a_hilbert_curve_visits_every_point_and_goes_to_a_neighbour(dimensions: int, bits: int):
    grid = _grid(dimensions, bits)
    place = hilbert_positions(grid, bits)
    assert sorted(place.tolist()) == list(range(1 << (bits * dimensions)))
    order = np.argsort(place)
    steps = sum(np.abs(np.diff(axis[order])) for axis in grid)
    assert set(np.atleast_1d(steps).tolist()) == {1}


def test_z_order_takes_bits_in_turns():
    assert z_order_positions([np.array([0b10]), np.array([0b01])], 2).tolist() == [0b1001]


@given(st.lists(st.one_of(st.none(), st.floats(), st.integers(-5, 5).map(float)), max_size=50), st.integers(1, 6))
def test_ranges_are_in_the_order_of_values(values: list[float | None], bits: int):
    column = pa.array(values, pa.float64())
    lower = range_bounds(column, bits)
    assert len(lower) < 1 << bits
    found = assign_ranges(column, lower).tolist()
    known = [(v, n) for v, n in zip(values, found, strict=True) if v is not None and v == v]
    assert all(n == sum(b <= v for b in lower.to_pylist()) for v, n in known)
    assert all(n == 0 for v, n in zip(values, found, strict=True) if v is None or v != v)


@pytest.mark.parametrize(
    "values",
    [
        [f"user_{n:06}" for n in range(64)],
        [dt.date(2026, 1, 1) + dt.timedelta(days=n) for n in range(64)],
        [b"%c" % n for n in range(64)],
    ],
)
def test_ranges_of_every_type_hold_equally_many(values: list[object]):
    column = pa.array(values)
    counts = np.bincount(assign_ranges(column, range_bounds(column, 3)))
    assert len(counts) == 8
    assert counts.max() <= 10


@pytest.mark.parametrize("layout", [LayoutStrategy.ZORDER, LayoutStrategy.HILBERT])
def test_a_column_of_few_values_counts_as_much_as_others(layout: LayoutStrategy):
    x = pa.array(np.arange(4096) % 64)
    y = pa.array((np.arange(4096) // 64) % 2 == 0)
    z = pa.array([None] * 4096, pa.int64())
    place = curve_positions(
        [x, y, z], [range_bounds(x, 12), range_bounds(y, 12), range_bounds(z, 12)], layout
    ).to_numpy()
    quarter = np.argsort(place, kind="stable")[:1024]
    assert x.to_numpy()[quarter].max() < 32
    assert len(set(y.to_numpy(zero_copy_only=False)[quarter].tolist())) == 1


def test_no_rows():
    empty = pa.array([], pa.string())
    assert (
        len(curve_positions([empty, empty], [range_bounds(empty, 4), range_bounds(empty, 4)], LayoutStrategy.HILBERT))
        == 0
    )
