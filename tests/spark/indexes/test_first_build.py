"""Statistics and bloom filters that Spark builds of a whole table are those that threads find."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import FormatError
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.spark.indexes import file_statistics_build, key_ranges
from pyhudi.spark.indexes.key_ranges import KeyRanges
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from tests.cases import seldom
from tests.spark.model import by_event_time

SCHEMA = "id string, part string, ts long, v string, x double, day date"
BARE = {"hoodie__metadata__enable": False, "hoodie__clean__automatic": False}
GROUPS = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.column.stats.file.group.count": "3",
    "hoodie.metadata.index.partition.stats.file.group.count": "2",
}
FEW_GROUPS = {
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
    "hoodie.metadata.global.record.level.index.max.filegroup.count": "2",
}
NAN = float("nan")


def make(spark: SparkSession, path: Path, table_type: str, version: int) -> None:
    """Partitions of several files, without a metadata table: with log files, NaN and nulls; a file without statistics
    and bloom filter, and one with bounds that its rows alone tell."""
    for start in (0, 1, 2):
        rows = [
            (f"k{start}{i:02d}", f"p{i % 3}", i, "v", [None, NAN, i / 4][start] if i % 3 else NAN, None)
            for i in range(12)
        ]
        options = by_event_time("insert", table_type, version, **BARE, hoodie__parquet__small__file__limit=0)
        write(spark.createDataFrame(rows, SCHEMA), str(path), options, "append")
    changed = [(f"k0{i:02d}", f"p{i % 3}", 50, f"w{i}", -1.5, None) for i in range(1, 6)]
    write(
        spark.createDataFrame(changed, SCHEMA),
        str(path),
        by_event_time("upsert", table_type, version, **BARE),
        "append",
    )
    plain, untold = sorted((path / "p1").glob("*.parquet"))[:2]
    pq.write_table(pq.read_table(plain), plain, write_statistics=False, store_schema=False)
    table = pq.read_table(untold)
    pq.write_table(table.replace_schema_metadata(None), untold, write_statistics=["id"])
    for file in (plain, untold):
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def records(path: Path) -> dict[str, list[Any]]:
    """All records of the metadata table's partitions."""
    client = TableMetaClient.open(str(path))
    metadata = MetadataTable.open(TableSnapshot.load(client))
    found = {}
    for partition in metadata.partitions:
        rows = metadata.scan(partition).to_pylist()
        found[partition] = sorted(repr(row) for row in rows)
        assert len({row["key"] for row in rows}) == len(rows) > 0, partition
    return found


@pytest.mark.parametrize(
    ("table_type", "version"), [("MERGE_ON_READ", 9), seldom(("MERGE_ON_READ", 6)), seldom(("COPY_ON_WRITE", 8))]
)
def test_the_same_as_by_threads(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_type: str, version: int
) -> None:
    by_threads, by_spark = tmp_path / "threads", tmp_path / "spark"
    make(spark, by_threads, table_type, version)
    shutil.copytree(by_threads, by_spark)
    monkeypatch.setattr(file_statistics_build, "_FILES_A_TASK", 2)
    for path, few in ((by_threads, math.inf), (by_spark, 0)):
        monkeypatch.setattr(file_statistics_build, "FEW", few)
        services = HudiTable.for_path(str(path)).services
        for name in ("partition_stats" if version >= 8 else "column_stats", "bloom_filters"):
            services.build_index(name, options=GROUPS, spark=spark)
        assert not HudiTable.for_path(str(path)).validate_metadata().num_rows
    expected = records(by_threads)
    assert {"files", "column_stats", "bloom_filters"} <= set(expected)
    assert ("partition_stats" in expected) is (version >= 8)
    assert records(by_spark) == expected


def test_an_index_that_is_planned(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged file is told by its own name, nothing is left, and the plan can be run again."""
    path = tmp_path / "table"
    make(spark, path, "COPY_ON_WRITE", 9)
    monkeypatch.setattr(file_statistics_build, "FEW", 0)
    services = HudiTable.for_path(str(path)).services
    services.build_index("column_stats", spark=spark)
    before = records(path)
    client = TableMetaClient.open(str(path))
    slices = FileSystemView.load(client, client.active_timeline().timeline).latest_slices()
    file = path / slices["base_path"][0].as_py()
    content = file.read_bytes()
    file.write_bytes(content[:-20] + bytes(20))
    with pytest.raises(FormatError):
        services.build_index("bloom_filters", spark=spark)
    assert not (path / ".hoodie" / "metadata" / "bloom_filters").exists()
    assert records(path) == before
    planned = services.schedule_index("bloom_filters")
    with pytest.raises(FormatError):
        services.run_index(planned.instant, spark=spark)
    file.write_bytes(content)
    assert services.run_index(planned.instant, spark=spark).partitions == ("bloom_filters",)
    assert set(records(path)) == {*before, "bloom_filters"}


@pytest.mark.parametrize(
    ("name", "columns"), [("record_index", ()), seldom(("by_v", ("v",)))], ids=["record-index", "secondary-index"]
)
def test_large_file_groups_are_written_in_ranges_of_keys(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, columns: tuple[str, ...]
) -> None:
    one_range, many = tmp_path / "one", tmp_path / "many"
    rows = [(f"k{i:03d}", f"p{i % 3}", i, f"v{i % 7}", 1.0, None) for i in range(120)]
    write(spark.createDataFrame(rows, SCHEMA), str(one_range), by_event_time("insert", "MERGE_ON_READ", 9), "append")
    if columns:
        HudiTable.for_path(str(one_range)).services.build_index("record_index", options=FEW_GROUPS, spark=spark)
    shutil.copytree(one_range, many)
    sampled: list[KeyRanges] = []
    from_sample = KeyRanges.from_sample

    def sample(keys: DataFrame, rows: int, ranges: int) -> KeyRanges:
        sampled.append(from_sample(keys, rows, ranges))
        return sampled[-1]

    for path, keys_per_range in ((one_range, 500), (many, 10)):
        monkeypatch.setattr(key_ranges, "_KEYS_PER_RANGE", keys_per_range)
        monkeypatch.setattr(KeyRanges, "from_sample", sample)
        HudiTable.for_path(str(path)).services.build_index(name, columns, options=FEW_GROUPS, spark=spark)
    assert [len(ranges) for ranges in sampled] == [6]
    assert records(many) == records(one_range)


def test_a_file_that_cannot_be_sampled_fails_the_build_and_not_the_write_before(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "table"
    rows = [(f"k{i:03d}", f"p{i % 3}", i, "v", 1.0, None) for i in range(60)]
    write(spark.createDataFrame(rows, SCHEMA), str(path), by_event_time("insert", "COPY_ON_WRITE", 9), "append")
    file = min((path / "p1").glob("*.parquet"))
    content = file.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    file.write_bytes(content[:4] + bytes(footer - 4) + content[footer:])
    monkeypatch.setattr(key_ranges, "_KEYS_PER_RANGE", 4)
    services = HudiTable.for_path(str(path)).services
    with pytest.raises(FormatError):
        services.build_index("record_index", options=FEW_GROUPS, spark=spark)
    more = by_event_time("insert", "COPY_ON_WRITE", 9, hoodie__parquet__small__file__limit=0) | FEW_GROUPS
    more["hoodie.metadata.global.record.level.index.enable"] = "true"
    write(spark.createDataFrame([("k100", "p0", 1, "v", 1.0, None)], SCHEMA), str(path), more, "append")
    assert "the record index" in caplog.text
    file.write_bytes(content)
    assert HudiTable.for_path(str(path)).scan(columns=["id"]).to_arrow().num_rows == 61
    services.build_index("record_index", options=FEW_GROUPS, spark=spark)
    file.write_bytes(content[:4] + bytes(footer - 4) + content[footer:])
    with pytest.raises(FormatError):
        services.build_index("by_v", "v", options=FEW_GROUPS, spark=spark)
