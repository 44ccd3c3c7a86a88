"""Rows that find their places by key, and rows that are kept until all have come."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.write.held import HeldRows
from pyhudi.write.keyed import KeyIndex

_KEYS = st.lists(st.sampled_from("abcdefg"), max_size=30)


def _chunked(keys: list[str], cut: int) -> pa.ChunkedArray:
    return pa.chunked_array([keys[:cut], keys[cut:]], pa.string())


@given(base=_KEYS, incoming=_KEYS, cut=st.integers(0, 30))
def test_every_pair_of_equal_keys_is_found_in_order(base: list[str], incoming: list[str], cut: int) -> None:
    positions, numbers = KeyIndex.of(_chunked(incoming, cut // 2)).match(_chunked(base, cut))
    found = list(zip(positions.tolist(), numbers.tolist(), strict=True))
    assert found == [(i, j) for i, key in enumerate(base) for j, other in enumerate(incoming) if key == other]


@given(sizes=st.lists(st.integers(0, 90_000), max_size=6), limit=st.sampled_from([0, 1 << 20, 1 << 40]))
def test_held_rows_are_the_same_in_memory_and_on_disk(sizes: list[int], limit: int) -> None:
    total = sum(sizes)
    ends = np.cumsum([0, *sizes])
    with HeldRows(limit) as held:
        for start, end in itertools.pairwise(ends):
            held.add(pa.record_batch({"n": pa.array(np.arange(start, end))}))
        held.finish()
        assert held.num_rows == total
        keep = np.arange(total) % 3 == 0
        kept = [batch.column(0).to_numpy() for batch in held.chosen(keep)]
        assert np.array_equal(np.concatenate([np.zeros(0), *kept]), np.flatnonzero(keep))
        if total:
            numbers = np.random.default_rng(1).integers(0, total, 50)
            assert np.array_equal(held.take(numbers).column(0).to_numpy(), numbers)
