"""Estimated numbers of rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.index.row_estimates import estimated_rows
from pyhudi.storage import open_storage
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from tests.fault_injection import FaultyStorage

FILE = "f_0-0-0_20240101000000000.parquet"
ROWS, SIZE = 7, 1000


@pytest.mark.parametrize("files", [3, 5000])
def test_few_footers_are_read_however_many_files_there_are(tmp_path: Path, files: int) -> None:
    pq.write_table(pa.table({"id": list(range(ROWS))}), tmp_path / FILE)
    storage = FaultyStorage(open_storage(str(tmp_path)))
    one: dict[str, Any] = {"partition": "", "base_instant": "20240101000000000", "log_paths": [], "log_sizes": []}
    slices = [{**one, "file_id": f"f{n}", "base_path": FILE, "base_size": SIZE} for n in range(files)]
    logs_only = {**one, "file_id": "g", "base_path": None, "base_size": None}
    rows = estimated_rows(storage, pa.Table.from_pylist([*slices, logs_only], SLICE_SCHEMA))
    assert rows.tolist() == [*[ROWS] * files, 0]
    assert len([operation for operation, _ in storage.operations if operation == "open_input"]) == min(files, 250)
