"""Distribution of file slices to tasks."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.arrow.ipc import table_from_bytes
from pyhudi.spark.execution.slice_tasks import KEYS, LOGS, WHOLE, cut_rows, piece_numbers

_MIB = 1024 * 1024


def _slices(*sizes: tuple[int, int]) -> pa.Table:
    """Slices of these sizes of base and log files."""
    columns = {"base_size": [base for base, _ in sizes], "log_sizes": [[log] for _, log in sizes]}
    return pa.table(columns, pa.schema([("base_size", pa.int64()), ("log_sizes", pa.list_(pa.int64()))]))


@pytest.mark.parametrize("part", [WHOLE, KEYS, LOGS])
def test_two_slices_of_almost_the_same_size_get_a_task_each(part):
    slices = _slices((60 * _MIB, 60_000), (60 * _MIB + 4, 60_000))
    assert len(piece_numbers(slices, 2, part=part)) == 2


def test_tasks_that_read_base_files_are_more_than_those_that_read_log_files():
    slices = _slices(*[(60 * _MIB, 60_000)] * 64)
    assert [len(piece_numbers(slices, 2, part=part)) for part in (WHOLE, KEYS, LOGS)] == [64, 16, 4]


@given(
    st.lists(st.tuples(st.integers(0, 200 * _MIB), st.integers(0, 10 * _MIB)), max_size=40),
    st.integers(1, 16),
    st.sampled_from([WHOLE, KEYS, LOGS]),
)
def test_each_slice_is_in_one_piece(sizes, cores, part):
    pieces = piece_numbers(_slices(*sizes), cores, part=part)
    assert sorted(np.concatenate([*pieces, np.zeros(0, int)]).tolist()) == list(range(len(sizes)))
    assert all(len(piece) for piece in pieces)
    total = sum(int(base * part) + log + 4 * _MIB for base, log in sizes)
    assert len(pieces) <= max(cores, -(-total // (64 * _MIB)))


def test_small_slices_share_tasks():
    rows = pa.table({"number": np.arange(100_000)})
    pieces = cut_rows(rows, np.full(rows.num_rows, 5_000), 2)
    assert len(pieces) == 6_258  # of 64 MiB, with what opening a file costs
    assert pa.concat_tables(map(table_from_bytes, pieces)).sort_by("number").equals(rows)


def test_many_chunks_of_a_listing_take_no_longer_than_one():
    rows = pa.table({"path": [f"p/{number:0100}.parquet" for number in range(20_000)]})
    chunks = pa.concat_tables(rows.slice(start, 10) for start in range(0, rows.num_rows, 10))
    seconds = []
    for table in (rows, chunks):
        start = time.process_time()
        assert len(cut_rows(table, np.full(table.num_rows, 5_000), 2)) == 1_252
        seconds.append(time.process_time() - start)
    assert seconds[1] < 5 * seconds[0], seconds
