"""Ranges of keys keep the order of HFiles, and give each key one place."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.spark.helper_columns import INDEX_GROUP
from pyhudi.spark.indexes.key_ranges import KeyRanges, range_count, ranges_by_group, sampled_files

KEYS = st.lists(st.text(max_size=6), min_size=1, max_size=30)


@given(KEYS, st.lists(st.text(max_size=6), unique=True, max_size=5), st.integers(1, 4))
def test_the_ranges_of_a_group_have_its_keys_in_their_order(keys: list[str], bounds: list[str], groups: int) -> None:
    ranges = KeyRanges(tuple(sorted(bounds)))
    of_key = np.array([len(key) % groups for key in keys], np.int32)
    numbers = ranges.group_ranges(of_key, pa.array(keys))
    assert numbers.type == pa.int32()
    rows = pa.table({"key": pa.array(keys), INDEX_GROUP: numbers}).sort_by(INDEX_GROUP)
    found = {
        group: [sorted(part["key"].to_pylist(), key=str.encode) for part in parts]
        for group, parts in ranges_by_group(rows.to_batches(max_chunksize=3), len(ranges))
    }
    expected: dict[int, list[str]] = {}
    for key, group in zip(keys, of_key.tolist(), strict=True):
        expected.setdefault(group, []).append(key)
    joined = {group: [key for part in parts for key in part] for group, parts in found.items()}
    assert joined == {group: sorted(some, key=str.encode) for group, some in expected.items()}


def test_how_many_ranges_there_are() -> None:
    assert [range_count(rows, 10) for rows in (0, 1, 5_000_000, 5_000_001, 60_000_000, 10**12)] == [1, 1, 1, 2, 12, 32]
    assert range_count(10, 0) == 1


def test_files_of_a_sample_are_spread_over_all() -> None:
    assert list(sampled_files(0)) == []
    assert list(sampled_files(3)) == [0, 1, 2]
    assert list(sampled_files(33)) == list(range(0, 33, 3))
