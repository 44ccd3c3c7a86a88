"""Pruning by the bloom filters of record keys."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.metadata.records.metadata_record import RecordType, encode
from pyhudi.table.view.file_listing import list_files
from tests.metadata_tables import attach, file_lists, grouped
from tests.tables import at
from tests.unit.read.pruning.statistics_tables import build, plan, simple


def test_bloom_filters_for_keys(tmp_path: Path):
    from pyhudi.format.bloom_filter import BloomFilter
    from pyhudi.metadata.records import metadata_keys

    files = {("a", f"f{n}-0"): [simple(n)] for n in range(4)}
    table = build(tmp_path / "t", files)
    listed, _ = list_files(table.storage, None)
    names = pc.replace_substring_regex(listed["path"].combine_chunks(), "^.*/", "")
    payload = pa.table(
        {
            "type": ["DYNAMIC_V0"] * 3,
            "timestamp": [at(1)] * 3,
            "bloomFilter": [
                BloomFilter.build(pa.array([f"k{file_id[1]}"])).serialize().encode()
                for file_id in listed["file_id"].to_pylist()[:3]
            ],
        }
    )
    key = metadata_keys.bloom_filter_keys(listed["partition"].combine_chunks()[:3], names[:3])
    every = pa.table({"partition": listed["partition"], "name": names, "size": listed["size"]})
    blooms = grouped(key, encode(RecordType.BLOOM_FILTER, payload, 9), 2)
    attach(table.storage, {"files": file_lists(every), "bloom_filters": blooms}, at(9))
    missing = listed["file_id"].to_pylist()[3]
    for n in range(4):
        found = plan(table, [("id", "=", f"k{n}")])
        assert set(found.tasks["file_id"].to_pylist()) == {f"f{n}-0", missing}
        assert "bloom_filters: " in found.skipped[1]
