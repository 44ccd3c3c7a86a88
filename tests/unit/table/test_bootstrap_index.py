"""Bootstrap index of many files (`pyhudi.table.bootstrap_index`)."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa

from pyhudi.storage.local_storage import LocalStorage
from pyhudi.table.bootstrap_index import SOURCE_SCHEMA, BootstrapIndex, SourceFile

PARTITIONS = ("a", "a!", "a;fileid=", "", "é/x")
"""Keys of the index by file group have another order than partitions."""


def test_sources_are_found_again(tmp_path: Path) -> None:
    rows = [
        (partition, f"f{i}", f"of {partition}", f"file:///s/{i}", 300 * i, None if i == 3 else i)
        for partition in PARTITIONS
        for i in (9, 700, 3, 1)
    ]
    index = BootstrapIndex(LocalStorage(tmp_path))
    sources = [dict(zip(SOURCE_SCHEMA.names, row, strict=True)) for row in rows]
    index.write("/s", pa.Table.from_pylist(sources, schema=SOURCE_SCHEMA))
    found = list(index.sources())
    assert sorted(found, key=repr) == sorted((SourceFile(*row) for row in rows), key=repr)
    assert index.partitions() == sorted(PARTITIONS)
    assert [index.source_of(one.partition, one.file_id) for one in found] == found


def test_many_files_are_encoded_by_columns(tmp_path: Path) -> None:
    count = 20_000
    texts = pa.array([f"{i:08}" for i in range(count)])
    partitions = pa.array([f"p{i % 100:03}" for i in range(count)])
    sizes = pa.array(range(count))
    sources = pa.Table.from_arrays([partitions, texts, partitions, texts, sizes, sizes], schema=SOURCE_SCHEMA)
    start = time.process_time()
    BootstrapIndex(LocalStorage(tmp_path)).write("/s", sources)
    assert time.process_time() - start < 1.5, "an object for each file takes 3 seconds"
