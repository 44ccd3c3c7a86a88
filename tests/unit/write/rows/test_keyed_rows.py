"""Rows that find their places by key, and rows that are kept until all have come."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from pyhudi.config.enums import InvalidText
from pyhudi.errors import FormatError
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.spark.lookup.scan.base_file_keys import read_positioned_rows
from pyhudi.storage import open_storage
from pyhudi.write.rows import keyed_rows
from pyhudi.write.rows.keyed_rows import KeyIndex, base_keys
from pyhudi.write.rows.spillable_row_buffer import SpillableRowBuffer

_KEYS = st.lists(st.sampled_from("abcdefg"), max_size=30)


def _chunked(keys: list[str], cut: int) -> pa.ChunkedArray:
    return pa.chunked_array([keys[:cut], keys[cut:]], pa.string())


@given(base=_KEYS, incoming=_KEYS, cut=st.integers(0, 30))
def test_every_pair_of_equal_keys_is_found_in_order(base: list[str], incoming: list[str], cut: int) -> None:
    positions, numbers = KeyIndex.from_keys(_chunked(incoming, cut // 2)).match(_chunked(base, cut))
    found = list(zip(positions.tolist(), numbers.tolist(), strict=True))
    assert found == [(i, j) for i, key in enumerate(base) for j, other in enumerate(incoming) if key == other]


@given(bases=st.lists(_KEYS, max_size=5), incoming=_KEYS, size=st.sampled_from([1, 40, 1 << 20]))
def test_each_base_has_its_own_pairs(bases: list[list[str]], incoming: list[str], size: int) -> None:
    index = KeyIndex.from_keys(_chunked(incoming, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed_rows, "_SEARCHED_BYTES", size)
        found = list(index.match_each(_chunked(base, len(base) // 2) for base in bases))
    expected = [index.match(_chunked(base, 1)) for base in bases]
    assert [[part.tolist() for part in pair] for pair in found] == [[p.tolist() for p in pair] for pair in expected]


@given(sizes=st.lists(st.integers(0, 90_000), max_size=6), limit=st.sampled_from([0, 1 << 20, 1 << 40]))
def test_held_rows_are_the_same_in_memory_and_on_disk(sizes: list[int], limit: int) -> None:
    total = sum(sizes)
    ends = np.cumsum([0, *sizes])
    with SpillableRowBuffer(limit) as buffer:
        for start, end in itertools.pairwise(ends):
            buffer.add(pa.record_batch({"n": pa.array(np.arange(start, end))}))
        buffer.finish()
        assert buffer.num_rows == total
        keep = np.arange(total) % 3 == 0
        kept = [batch.column(0).to_numpy() for batch in buffer.filter(keep)]
        assert np.array_equal(np.concatenate([np.zeros(0), *kept]), np.flatnonzero(keep))
        if total:
            numbers = np.random.default_rng(1).integers(0, total, 50)
            assert np.array_equal(buffer.take(numbers).column(0).to_numpy(), numbers)


@pytest.mark.parametrize("extension", ["parquet", "orc"])
def test_keys_that_are_not_text_block_no_file_for_ever(tmp_path: Path, extension: str) -> None:
    raw = pa.array([b"good", b"b\xe4d"])
    keys = pa.StringArray.from_buffers(2, raw.buffers()[1], raw.buffers()[2])
    table = pa.table({RECORD_KEY: keys})
    if extension == "parquet":
        pq.write_table(table, tmp_path / "f.parquet")
    else:
        orc.write_table(table, tmp_path / "f.orc")
    storage, name = open_storage(tmp_path), f"f.{extension}"
    with pytest.raises(FormatError, match=r"pyhudi\.read\.invalid\.text=replace"):
        base_keys(storage, name)
    assert base_keys(storage, name, InvalidText.REPLACE).to_pylist() == ["good", "b\ufffdd"]
    with pytest.raises(FormatError, match=r"pyhudi\.read\.invalid\.text=replace"):
        list(read_positioned_rows(storage, name, 7, table.schema))
    (batch,) = read_positioned_rows(storage, name, 7, table.schema, InvalidText.REPLACE)
    assert [column.to_pylist() for column in batch.columns] == [["good", "b\ufffdd"], [7, 7], [0, 1]]
