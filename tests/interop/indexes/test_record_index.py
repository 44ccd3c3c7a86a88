"""Apache Hudi and pyhudi keep one record index in turns, and find all keys by it; whichever index a write uses."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.format.hfile.hfile_reader import HFileReader
from tests.cases import seldom
from tests.interop.harness.alternating_writes import OPTIONS, SIMPLE, AlternatingWrites, rows
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import NO_COLUMN_STATISTICS

GLOBAL = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.max.filegroup.count": "2",
}
PARTITIONED = {"hoodie.metadata.record.level.index.enable": "true"}
UNPARTITIONED = {
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}


def _options(table_type: str, *more: dict[str, str]) -> dict[str, str]:
    found = {**OPTIONS, **SIMPLE, "hoodie.metadata.enable": "true", "hoodie.datasource.write.table.type": table_type}
    for one in more:
        found |= one
    return found


@pytest.mark.parametrize(
    ("oracle", "first", "table_type"),
    [
        ("1.2.0", "theirs", "COPY_ON_WRITE"),
        seldom(("1.2.0", "ours", "COPY_ON_WRITE")),
        seldom(("1.2.0", "theirs", "MERGE_ON_READ")),
        seldom(("1.2.0", "ours", "MERGE_ON_READ")),
        seldom(("1.1.1", "theirs", "MERGE_ON_READ")),
    ],
    indirect=["oracle"],
)
def test_the_record_index_in_turns(
    oracle: Oracle, first: str, table_type: str, spark: SparkSession, tmp_path: Path
) -> None:
    options = _options(table_type, GLOBAL, {"hoodie.index.type": "RECORD_INDEX"}, NO_COLUMN_STATISTICS)
    second = {"ours": "theirs", "theirs": "ours"}[first]
    both = AlternatingWrites(tmp_path / first, oracle, spark, options)
    both.write(first, rows(0, 20, 1, "a"))
    assert "record_index" in oracle.metadata_partitions(both.path)
    both.write(second, rows(10, 30, 2, "b"))
    both.write(first, rows(5, 35, 3, "c"))
    both.write(second, rows(0, 4, 4, ""), "delete")
    both.write(first, rows(2, 8, 5, "again"))
    both.write("ours", rows(30, 38, 6, "by another index"), hoodie__index__type="BLOOM")
    # by event time k013 is stronger where it is
    moves, stronger = {"hoodie__index__type": "GLOBAL_SIMPLE"}, both.model["k013"]
    both.write(first, [("k012", 5, "p1", 7, "moved"), ("k013", 5, "p0", 2, "stays")], **moves)
    both.model["k013"] = stronger
    both.write(second, [("k012", 5, "p0", 8, "moved back"), ("k015", 5, "p9", 8, "moved")], **moves)
    both.check(SKIPPING, ("k037", "k003", "k000", "k034", "k012", "k013", "k015"))
    assert "record_index" in oracle.metadata_partitions(both.path)


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_base_files_of_several_blocks(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    """Blocks of a record index are smaller than those of other HFiles."""
    both = AlternatingWrites(
        tmp_path / "ours", oracle, spark, _options("COPY_ON_WRITE", GLOBAL, {"hoodie.index.type": "RECORD_INDEX"})
    )
    both.write("ours", rows(0, 900, 1, "a"))
    blocks = [
        len(HFileReader(file.read_bytes()).index) for file in both.path.glob(".hoodie/metadata/record_index/*.hfile")
    ]
    assert min(blocks) > 2
    both.write("theirs", rows(100, 950, 2, "b"))
    both.write("ours", rows(300, 960, 3, "c"))
    both.check(SKIPPING, ("k000", "k050", "k299", "k899", "k959"))


@pytest.mark.parametrize(
    ("oracle", "table_type"),
    [
        seldom(("1.2.0", "COPY_ON_WRITE")),
        ("1.2.0", "MERGE_ON_READ"),
        seldom(("1.1.1", "MERGE_ON_READ")),
    ],
    indirect=["oracle"],
)
def test_a_partitioned_record_index_in_turns(
    oracle: Oracle, table_type: str, spark: SparkSession, tmp_path: Path
) -> None:
    # of a key that is in a batch for two partitions, 1.2.0 writes one record only; and with statistics of partitions it
    # fails in the third write to such a table (a null pointer)
    plain = {"hoodie.metadata.index.column.stats.enable": "false", "hoodie.index.type": "RECORD_LEVEL_INDEX"}
    options = _options(table_type, PARTITIONED, plain)
    logs = table_type == "MERGE_ON_READ"
    first, second = ("ours", "theirs") if logs else ("theirs", "ours")
    both = AlternatingWrites(tmp_path / first, oracle, spark, options, by_partition=True)
    both.write(first, rows(0, 20, 1, "a"))
    assert "record_index" in oracle.metadata_partitions(both.path)
    elsewhere = [("k003", 3, "p_9-x", 2, "of a new partition"), ("k004", 4, "p1", 2, "another k004")]
    both.write(second, [*rows(10, 30, 2, "b"), *elsewhere])
    both.write(first, [*rows(5, 35, 3, "c"), *elsewhere[:1], ("x005", 5, "new", 3, "of a partition")])
    both.write(second, rows(0, 4, 4, ""), "delete")
    # merge-on-read tables lose k004 of p0 along with it by 1.2.0, if the deletes are of that partition, too
    both.write("ours", [elsewhere[1], *rows(32, 33, 4, "")], "delete")
    both.check(SKIPPING, ("k004", "k003", "k034"))
    both.write(first, [("k004", 4, "p0", 5, "overwritten")], "insert_overwrite")
    both.write(second, rows(2, 8, 6, "again"))
    if logs:
        compacted = {"hoodie__compact__inline": "true", "hoodie__compact__inline__max__delta__commits": "1"}
        both.write(second, rows(3, 5, 7, "compacted"), **compacted)
        both.write(first, rows(3, 12, 8, "after it"))
    both.check(SKIPPING, ("k004", "k003", "k006", "k010"))
    assert "record_index" in oracle.metadata_partitions(both.path)
    planned = HudiTable.for_path(str(both.path)).scan(filter=[("id", "=", "k003")]).plan()
    assert planned.tasks.num_rows == 2


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
@pytest.mark.parametrize("first", [seldom("ours"), seldom("theirs")])
def test_a_partitioned_record_index_without_partitions(
    oracle: Oracle, first: str, spark: SparkSession, tmp_path: Path
) -> None:
    plain = {"hoodie.metadata.index.column.stats.enable": "false", "hoodie.index.type": "RECORD_LEVEL_INDEX"}
    second = "theirs" if first == "ours" else "ours"
    options = _options("MERGE_ON_READ", PARTITIONED, UNPARTITIONED, plain)
    both = AlternatingWrites(tmp_path / first, oracle, spark, options)
    both.write(first, rows(0, 20, 1, "a"))
    both.write(second, rows(10, 30, 2, "b"))
    both.write(first, rows(5, 35, 3, "c"))
    both.write(second, rows(0, 4, 4, ""), "delete")
    both.check(SKIPPING, ("k003", "k004", "k034"))
    assert "record_index" in oracle.metadata_partitions(both.path)


@pytest.mark.parametrize("oracle", [seldom("1.2.0")], indirect=True)
def test_deletes_by_a_partitioned_record_index(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    plain = {"hoodie.metadata.index.column.stats.enable": "false", "hoodie.index.type": "RECORD_LEVEL_INDEX"}
    left = {}
    for side in ("ours", "theirs"):
        both = AlternatingWrites(
            tmp_path / side, oracle, spark, _options("MERGE_ON_READ", PARTITIONED, plain), by_partition=True
        )
        both.write(side, rows(0, 4, 1, "a"))
        both.write(side, [("k002", 2, "p1", 2, "another"), ("k005", 5, "p1", 2, "b")])
        both.write(side, [("k000", 0, "p0", 3, ""), ("k002", 2, "p1", 3, "")], "delete")
        found = oracle.read(both.path, columns=["id", "part"])
        left[side] = sorted(zip(*(found[name].to_pylist() for name in ("id", "part")), strict=True))
    assert left["ours"] == [("k001", "p1"), ("k002", "p0"), ("k003", "p1"), ("k005", "p1")]
    # 1.2.0 deletes a key in all partitions that the batch is of
    assert left["theirs"] == [("k001", "p1"), ("k003", "p1"), ("k005", "p1")]


@pytest.mark.slow
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_buckets_with_a_record_index_in_turns(
    oracle: Oracle, table_type: str, spark: SparkSession, tmp_path: Path
) -> None:
    both = AlternatingWrites(tmp_path / "table", oracle, spark, _options(table_type, GLOBAL, BUCKET))
    both.write("ours", rows(0, 20, 1, "a"))
    both.write("theirs", rows(10, 30, 2, "b"))
    both.write("ours", rows(25, 35, 3, "c"))
    both.write("ours", rows(0, 4, 4, ""), "delete")
    # 1.2.0 does not index keys of log files: neither new ones nor those that were deleted, and are there again
    both.write("theirs", [*rows(20, 24, 5, "again"), *rows(2, 3, 5, "again")])
    both.check(SKIPPING, ("k003", "k004", "k034"))
    assert "record_index" in oracle.metadata_partitions(both.path)
    for key, (indexed, there) in {"k002": (0, 1), "k021": (0, 1), "k024": (0, 1), "k000": (0, 0)}.items():
        theirs = oracle.read(both.path, SKIPPING, where=f"id = '{key}'")
        assert theirs.num_rows == (indexed if table_type == "MERGE_ON_READ" else there)
        scan = HudiTable.for_path(str(both.path)).scan(filter=[("id", "=", key)])
        assert scan.to_arrow().num_rows == scan.to_spark(spark).count() == there, key


@pytest.mark.parametrize("oracle", [seldom("1.2.0")], indirect=True)
def test_bloom_filters_of_the_metadata_table(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    bloom = {
        "hoodie.index.type": "BLOOM",
        "hoodie.bloom.index.use.metadata": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
    }
    both = AlternatingWrites(tmp_path / "table", oracle, spark, _options("COPY_ON_WRITE", bloom))
    both.write("ours", rows(0, 20, 1, "a"))
    footers = {"hoodie__bloom__index__use__metadata": "false"}  # for which 1.2.0 wants options of its Java
    both.write("theirs", rows(10, 30, 2, "b"), **footers)
    both.write("ours", rows(5, 35, 3, "c"))
    both.write("theirs", rows(0, 4, 4, ""), "delete", **footers)
    both.check(SKIPPING, ("k003", "k034"))
