"""Keys in files, found by the bloom filters of the files."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.format.base_file.base_file_footer import BloomOptions
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.spark.helper_columns import SEARCHED_FILE
from pyhudi.spark.lookup.bloom import bloom_lookup
from pyhudi.spark.lookup.bloom.bloom_filter_sources import FilterSource
from pyhudi.spark.lookup.scan.base_file_keys import read_positioned_rows
from pyhudi.storage import open_storage

KEYS_BY_FILE = (["a", "b", "c", "b"], ["d", "e"], ["c", "f"])
WANTED = [(0, "b"), (0, "c"), (0, "x"), (1, "a"), (1, "b"), (2, "c"), (2, "d"), (2, "f")]
"""Numbers of files, and keys that they may contain, as tasks get them: sorted by file."""


def _file(keys: list[str], bloom: BloomOptions | None) -> bytes:
    sink = io.BytesIO()
    rows = pa.table({RECORD_KEY: keys, "n": pa.array(range(len(keys)), pa.int64())})
    with ParquetFileWriter(sink, BaseFileSchema(rows.schema, "{}"), bloom=bloom) as writer:
        writer.write(rows)
    return sink.getvalue()


@pytest.mark.parametrize("batch_size", [1, 2, 3, 5, 8])
def test_keys_of_a_file_come_in_several_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_size: int
) -> None:
    names = [f"f{number}-0_0-0-0_20260101000000000.parquet" for number in range(3)]
    for number, (name, keys) in enumerate(zip(names, KEYS_BY_FILE, strict=True)):
        (tmp_path / name).write_bytes(_file(keys, None if number == 2 else BloomOptions(num_entries=100)))
    opened: list[int] = []

    def read(storage, path, number, *settings):
        opened.append(number)
        return read_positioned_rows(storage, path, number, *settings)

    monkeypatch.setattr(bloom_lookup, "read_positioned_rows", read)
    files, keys = (list(column) for column in zip(*WANTED, strict=True))
    wanted = pa.table({SEARCHED_FILE: pa.array(files, pa.int32()), bloom_lookup._WANTED: keys})
    batches = [wanted.to_batches()[0].slice(0, 0), *wanted.to_batches(max_chunksize=batch_size)]
    source = FilterSource(open_storage(str(tmp_path)), pa.array(names))
    extra = pa.schema([("n", pa.int64()), ("added_later", pa.string())])
    found = [
        tuple(row.values()) for part in bloom_lookup.check_files(batches, source, extra) for row in part.to_pylist()
    ]
    assert found == [
        ("b", 1, None, 0, 1),
        ("c", 2, None, 0, 2),
        ("b", 3, None, 0, 3),
        ("c", 0, None, 2, 0),
        ("f", 1, None, 2, 1),
    ]
    assert opened == [0, 2], "each file once; not one without any key that its filter lets through"
