"""Pages of a Parquet file as a file of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from pyhudi.errors import FormatError
from pyhudi.format.base_file.filtered_parquet_file import FilteredFile
from pyhudi.format.base_file.parquet_page_selection import select_pages
from tests.properties import examples

pytest.importorskip("pyarrow", "23", reason="older releases cannot write pages of a number of rows")

ROWS, GROUP, PAGE = 2000, 1000, 100


def _table(rows: int = ROWS) -> pa.Table:
    numbers = np.arange(rows)
    return pa.table(
        {
            "id": pa.array(numbers * 3),
            "text": [None if n % 7 == 0 else f"text {n}" for n in numbers],
            "few": [f"value {n // 400}" for n in numbers],
            "price": pa.array([None if n % 900 < 300 else n / 4 for n in numbers], pa.float64()),
            "flag": [bool(n % 2) for n in numbers],
        }
    )


def _written(folder: Path, table: pa.Table | None = None, **options: Any) -> Path:
    given = {"row_group_size": GROUP, "max_rows_per_page": PAGE, "write_batch_size": PAGE, "write_page_index": True}
    path = folder / "file.parquet"
    pq.write_table(_table() if table is None else table, path, use_dictionary=["few"], **{**given, **options})
    return path


def _selected(path: Path, wanted: dict[int, list[int]]) -> pa.Buffer | None:
    with pa.OSFile(str(path)) as source:
        return select_pages(source, [(group, np.array(rows, np.int64)) for group, rows in wanted.items()])


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_pages_of_rows(tmp_path: Path, codec: str) -> None:
    path = _written(tmp_path, compression=codec)
    found = _selected(path, {0: [5, 950], 1: [300, 301]})
    assert found is not None
    table = _table()
    parts = [table.slice(start, PAGE) for start in (0, 900, 1300)]
    assert pq.read_table(pa.BufferReader(found)).equals(pa.concat_tables(parts).combine_chunks())
    assert pq.ParquetFile(pa.BufferReader(found)).num_row_groups == 3
    assert found.size < path.stat().st_size / 3


def test_most_of_the_pages_are_not_picked(tmp_path: Path) -> None:
    path = _written(tmp_path)
    assert _selected(path, {0: [n * PAGE for n in range(5)]}) is not None
    assert _selected(path, {0: [n * PAGE for n in range(6)]}) is None


@pytest.mark.parametrize(
    "options", [{"write_page_index": False}, {"max_rows_per_page": GROUP, "data_page_size": 1 << 30}], ids=str
)
def test_pages_that_are_not_told(tmp_path: Path, options: dict[str, Any]) -> None:
    assert _selected(_written(tmp_path, **options), {0: [5]}) is None


def test_columns_inside_of_columns(tmp_path: Path) -> None:
    nested = _table().append_column("list", pa.array([[n] for n in range(ROWS)]))
    assert _selected(_written(tmp_path, nested), {0: [5]}) is None


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(_written(tmp_path).read_bytes()[:-20])
    with pytest.raises(FormatError, match="not a Parquet file"):
        _selected(path, {0: [5]})


@settings(max_examples=examples(20), deadline=None)
@given(
    st.lists(st.integers(0, ROWS), min_size=1, max_size=5),
    st.sampled_from(["id", "few"]),
    st.booleans(),
    st.sets(st.sampled_from(["id", "text", "few", "price", "flag"])),
)
def test_rows_of_a_condition(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], column: str, less: bool, more: set[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.parquet"
    if not path.exists():
        _written(path.parent).rename(path)
    rows = _table().combine_chunks()
    values = pa.array([n * 3 for n in numbers]) if column == "id" else pa.array([f"value {n // 400}" for n in numbers])
    condition = pc.field(column).isin(values)
    if less:
        condition &= pc.field("id") < 900
    columns = [name for name in rows.column_names if name in more | {"id"}]
    with pa.OSFile(str(path)) as source:
        found = list(FilteredFile(source).batches(columns, condition, 300, sorted({column, "id"})))
    expected = rows.filter(condition).select(columns)
    assert pa.Table.from_batches(found, expected.schema).combine_chunks().equals(expected.combine_chunks())
