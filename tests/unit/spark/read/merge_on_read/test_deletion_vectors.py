"""Which form the rows to leave out of base files take, and what its tables hold."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.spark.read.merge_on_read.deletion_vectors import (
    BitmapDeletionVectors,
    FileNameHash,
    PositionDeletes,
    deletion_vectors_for,
)

GIB = 1024**3
LAST_ROW = 2**31 - 1
ROWS = st.lists(st.integers(0, 5000), unique=True, max_size=200).map(sorted)


def tasks(sizes: dict[str, int]) -> pa.Table:
    return pa.table(
        {"base_path": pa.array(list(sizes), pa.string()), "base_size": pa.array(list(sizes.values()), pa.int64())}
    )


@pytest.mark.parametrize(
    ("sizes", "form"),
    [
        ({"a/f1.parquet": 32 * GIB, "a/f2.parquet": 32 * GIB}, BitmapDeletionVectors),
        ({"a/f1.parquet": 32 * GIB, "a/f2.parquet": 32 * GIB + 1}, PositionDeletes),
    ],
    ids=["64 GiB", "above"],
)
def test_form_by_size(sizes: dict[str, int], form: type) -> None:
    found = deletion_vectors_for(tasks(sizes))
    assert type(found) is form


@pytest.mark.parametrize("large", [1, 100 * GIB], ids=["bitmaps", "positions"])
def test_no_form_for_names_that_do_not_tell_files_apart(large: int) -> None:
    assert deletion_vectors_for(tasks({"a/f1.parquet": large, "b/f1.parquet": 1})) is None
    assert deletion_vectors_for(tasks({"a/f 1.parquet": large})) is None


def test_the_numbers_of_many_files_differ_in_the_bits_that_positions_leave() -> None:
    form = deletion_vectors_for(tasks({f"a/f{i}.parquet": GIB for i in range(20_000)}))
    assert isinstance(form, PositionDeletes)
    numbers = {form.files.number(f"f{i}.parquet") for i in range(20_000)}
    assert len(numbers) == 20_000
    assert all(number & LAST_ROW == 0 and -(2**63) <= number < 2**63 for number in numbers)


@given(
    rows=st.lists(st.integers(0, LAST_ROW), unique=True, max_size=200).map(sorted), name=st.text("abc01._-", min_size=1)
)
def test_positions_give_back_file_and_row(rows: list[int], name: str) -> None:
    form = PositionDeletes(FileNameHash("0", 33))
    batches = list(form.encode_file(name, np.array(rows, np.int64)))
    found = [value for batch in batches for value in batch.column(0).to_pylist()]
    assert [value & LAST_ROW for value in found] == rows
    assert {value & ~LAST_ROW for value in found} <= {form.files.number(name)}
    assert all(batch.schema == form.schema for batch in batches)


def test_positions_come_in_batches() -> None:
    form = PositionDeletes(FileNameHash("0", 33))
    rows = np.arange(600_000)
    batches = list(form.encode_file("f", rows))
    assert len(batches) > 1
    assert np.array_equal(np.concatenate([b.column(0).to_numpy() for b in batches]) & LAST_ROW, rows)


@given(rows=ROWS)
def test_bitmaps_give_back_the_rows(rows: list[int]) -> None:
    form = BitmapDeletionVectors(FileNameHash("0", 64))
    batches = list(form.encode_file("f", np.array(rows, np.int64)))
    assert len(batches) == bool(rows)
    for batch in batches:
        assert batch.column(0).to_pylist() == [form.files.number("f")]
        words = batch.column(1).to_pylist()[0]
        assert [64 * i + bit for i, word in enumerate(words) for bit in range(64) if word >> bit & 1] == rows
