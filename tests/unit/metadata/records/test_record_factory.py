"""Records of files, in tables with very many partitions."""

from __future__ import annotations

import time

import pyarrow as pa

from pyhudi.metadata.records.metadata_record import FILES_PAYLOAD, decode, record_schema
from pyhudi.metadata.records.record_factory import FILE_COLUMNS, file_records


def test_first_lists_of_many_partitions_take_linear_time() -> None:
    """The table's lock is held meanwhile: a minute for these when each name was compared with all."""
    partitions = [f"p={number:05d}" for number in range(20_000)]
    half = partitions[::2]
    files = pa.table([half, ["f"] * len(half), [1] * len(half)], schema=FILE_COLUMNS)
    begun = time.process_time()
    records = file_records(files, partitions, 9, is_initial=True)
    assert time.process_time() - begun < 10
    lists = decode(records.values, record_schema(9))[FILES_PAYLOAD].to_pylist()
    by_key = dict(zip(records.keys.to_pylist(), lists, strict=True))
    assert {key for key, names in by_key.items() if names == []} == set(partitions[1::2])
