"""The bloom index with its filters and key ranges in the metadata table."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options, options
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.spark.lookup.bloom.bloom_filter_sources import FilterSource, StoredFilters, metadata_of, stored_ranges
from pyhudi.spark.lookup.key_lookup import KeyLookup
from pyhudi.spark.lookup.scan.base_file_keys import BaseFiles
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_system_view import FileSystemView
from tests.cases import seldom
from tests.spark.model import Steps, batch, by_event_time

BY_FILTERS = {"hoodie__index__type": "BLOOM", "pyhudi__index__task__rows": 0}
"""Tasks would read the keys of so small files instead."""
BLOOM = {
    **BY_FILTERS,
    "hoodie__bloom__index__use__metadata": True,
    "hoodie__metadata__index__bloom__filter__enable": True,
}


@pytest.mark.parametrize("table_type", [seldom("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_lookups(spark: SparkSession, tmp_path: Path, table_type: str) -> None:
    path = tmp_path / "table"
    options_of = partial(by_event_time, table_type=table_type, **BLOOM)
    step = Steps(spark, path, options_of)
    step("upsert", batch(0, 60, 10, "first"))
    step("upsert", [*batch(0, 5, 9, "old"), *batch(10, 20, 11, "new"), *batch(60, 70, 1, "\uffee, too")])
    step("delete", batch(0, 3, 0, ""))
    step("upsert", batch(0, 80, 12, "all"), hoodie__bloom__index__prune__by__ranges=False)

    client = TableMetaClient.open(str(path))
    given = Options.parse({key.replace("__", "."): value for key, value in BLOOM.items()})
    lookup = KeyLookup(client, KeySpec.from_config(client.config, given), client.config.merging, given)
    files = BaseFiles.from_slices(FileSystemView.load(client, client.active_timeline().timeline).latest_slices(), None)
    table = metadata_of(lookup)
    assert table is not None
    ranges = stored_ranges(table, files)
    assert ranges is not None
    stored, footers = (
        FilterSource.from_files(lookup, files, table).open(),
        FilterSource.from_files(lookup, files, None).open(),
    )
    assert isinstance(stored, StoredFilters)
    numbers = files.table["file_no"].to_pylist()
    stored.expect(numbers)
    keys = pa.array([f"k{i:03d}" for i in range(200)])
    for number, least, most in zip(numbers, *(r.to_pylist() for r in ranges), strict=True):
        mine = footers.filter_of(number)
        found = stored.filter_of(number)
        assert mine is not None
        assert found is not None
        passed = found.might_contain(keys)
        assert passed.equals(mine.might_contain(keys))
        real = keys.filter(passed).to_pylist()
        assert (least, most) == (real[0], real[-1])
    off = lookup.opts.merged({options.BLOOM_USE_METADATA.key: False})
    assert metadata_of(KeyLookup(client, lookup.spec, lookup.merging, off)) is None


def test_utf16_key_ranges(spark: SparkSession, tmp_path: Path) -> None:
    """As Java compares texts; files may also have the range in the order of bytes."""
    path = tmp_path / "table"
    options_of = partial(by_event_time, table_type="COPY_ON_WRITE", **BY_FILTERS)
    step = Steps(spark, path, options_of)
    low, high = "\U0001f600", "\uffee"
    step("insert", [(low, "p", 1, "first"), (high, "p", 1, "first")])
    (file,) = path.rglob("p/*.parquet")
    table = HudiTable.for_path(str(path))

    def found() -> list[int]:
        return [table.scan(filter=[("id", "=", key)]).to_arrow().num_rows for key in (low, high)]

    assert found() == [1, 1]
    written = pq.read_table(file)
    entries = written.schema.metadata
    ends = b"hoodie_min_record_key", b"hoodie_max_record_key"
    assert [entries[end].decode() for end in ends] == [low, high]
    entries |= {ends[0]: high.encode(), ends[1]: low.encode()}
    with pq.ParquetWriter(file, written.schema.remove_metadata(), store_schema=False) as writer:
        writer.write_table(written.replace_schema_metadata())
        writer.add_key_value_metadata(entries)
    assert found() == [1, 1]
    step("upsert", [(low, "p", 2, "second"), (high, "p", 2, "second")])
