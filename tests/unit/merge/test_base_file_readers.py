"""The last rows of base files, which are the new ones where a file was written anew."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.orc import OrcFileWriter
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter
from pyhudi.merge.base_file_readers import open_base
from pyhudi.storage import open_storage

ROWS = pa.table({"k": [f"k{i}" for i in range(10)], "v": pa.array(range(10), pa.int64())})


@pytest.mark.parametrize("extension", ["parquet", "orc"])
@pytest.mark.parametrize("pieces", [(10,), (7, 3), (1, 2, 3, 4)])
def test_the_last_rows(tmp_path: Path, extension: str, pieces: tuple[int, ...]) -> None:
    name = f"f.{extension}"
    maker = ParquetFileWriter if extension == "parquet" else OrcFileWriter
    with maker(tmp_path / name, BaseFileSchema(ROWS.schema)) as writer:
        start = 0
        for count in pieces:
            writer.write(ROWS.slice(start, count))
            writer.flush()
            start += count
    wanted = pa.schema([ROWS.schema.field("k")])
    with open_base(open_storage(tmp_path), name) as base:
        for count in range(12):
            found = pa.Table.from_batches(base.last(wanted, count), wanted)
            assert found["k"].to_pylist() == ROWS["k"].to_pylist()[max(0, 10 - count) :]
