"""Duplicates of record keys: found by their type, taken out in one write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shutil import copytree

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import BusyError, QueryError, UnsupportedTableError
from pyhudi.services.repair.duplicate_keys import DedupeType
from pyhudi.spark.services.spark_deduplication import deduplicate
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.storage import open_storage
from pyhudi.table.meta_client import TableMetaClient
from tests.cases import seldom
from tests.fault_injection import WRITES, Fault, FaultyStorage, Killed

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
}
SCHEMA = "id string, p string, ts long, v string"


def put(spark: SparkSession, path: str, rows: list[tuple], options: Mapping[str, str], operation: str) -> None:
    write(spark.createDataFrame(rows, SCHEMA), path, {**options, "hoodie.datasource.write.operation": operation})


def duplicated(spark: SparkSession, path: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """A table whose partition a has k1 and k2 twice, by different commits, k3 twice, by one, and k4 and k5 once."""
    options = {**OPTIONS, **(more or {})}
    first = [("k1", "a", 1, "old"), ("k2", "a", 1, "old"), ("k4", "a", 1, "x"), ("k1", "b", 1, "other")]
    put(spark, path, first, options, "bulk_insert")
    second = [
        ("k1", "a", 2, "new"),
        ("k2", "a", 2, "new"),
        ("k3", "a", 2, "y"),
        ("k3", "a", 2, "y"),
        ("k5", "a", 2, "z"),
    ]
    put(spark, path, second, options, "bulk_insert")
    return options


def found(path: str) -> list[tuple[str, ...]]:
    rows = HudiTable.for_path(path).scan().to_arrow().to_pylist()
    return sorted((row["p"], row["id"], row["v"], row["_hoodie_commit_time"]) for row in rows)


TABLES: dict[str, dict[str, str]] = {
    "copy_on_write": {"hoodie.metadata.record.level.index.enable": "true"},
    "version 6": {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.write.table.version": "6"},
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
}


@pytest.mark.parametrize("name", ["copy_on_write", seldom("version 6"), seldom("bucket")])
def test_duplicates_are_taken_out_of_one_partition(name: str, spark: SparkSession, tmp_path: Path) -> None:
    path, output = str(tmp_path / "t"), str(tmp_path / "out")
    options = duplicated(spark, path, TABLES[name])
    before, table = found(path), HudiTable.for_path(path)
    first, second = sorted({row[3] for row in before})
    with pytest.raises(QueryError, match=r"one commit has written the record key 'k3' more than once.*upsert_type"):
        table.services.deduplicate("a", spark=spark)
    with pytest.raises(QueryError, match="unknown dedupe type 'delete'; there are insert_type"):
        table.services.deduplicate("a", dedupe_type="delete", spark=spark)
    with pytest.raises(QueryError, match=r"no rows in a partition 'p=a'; its partitions are 'a', 'b'$"):
        table.services.deduplicate("p=a", spark=spark)
    seen = table.services.deduplicate("a", dedupe_type="upsert", dry_run=True, output=output, spark=spark)
    assert (seen.num_keys, seen.num_surplus, seen.instant, found(path)) == (3, 3, None, before)
    expected = [
        ("a", "k1", "new", second), ("a", "k2", "new", second), ("a", "k3", "y", second),
        ("a", "k4", "x", first), ("a", "k5", "z", second), ("b", "k1", "other", first),
    ]  # fmt: skip
    stays = sorted((r["id"], r["_hoodie_commit_time"]) for r in spark.read.parquet(output).collect())
    assert [one for one in stays if one[0] < "k4"] == [(f"k{n}", second) for n in (1, 2, 3)]
    done = table.services.deduplicate("a", dedupe_type="upsert_type", spark=spark)
    assert (done.num_keys, done.num_surplus, done.groups) == (3, 3, seen.groups)
    assert found(path) == expected
    assert table.services.deduplicate("a", spark=spark).instant is None  # nothing is left, and nothing is written
    assert table.history().num_rows == 3
    past = table.scan(as_of=second).to_arrow()
    assert past.num_rows == len(before)
    put(spark, path, [("k1", "a", 9, "newest"), ("k4", "a", 9, "newest")], options, "upsert")
    assert [row[:3] for row in found(path)][:4] == [
        ("a", "k1", "newest"), ("a", "k2", "new"), ("a", "k3", "y"), ("a", "k4", "newest"),
    ]  # fmt: skip


def test_statistics_of_the_partition_include_other_file_groups(spark: SparkSession, tmp_path: Path) -> None:
    """Those that have no duplicates are not replaced."""
    path = str(tmp_path / "t")
    options = duplicated(spark, path, {"hoodie.metadata.index.partition.stats.enable": "true"})
    put(spark, path, [("k6", "a", 99, "far")], options, "bulk_insert")
    table = HudiTable.for_path(path)
    assert "partition_stats" in table.config.metadata_partitions
    assert table.services.deduplicate("a", dedupe_type="upsert", spark=spark).num_surplus == 3
    assert table.scan([("ts", "=", 99)]).to_arrow()["id"].to_pylist() == ["k6"]
    assert table.scan([("ts", "=", 77)]).plan().tasks.num_rows == 0


def test_tables_without_keys_and_with_work_under_way_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    plain, planned = str(tmp_path / "plain"), str(tmp_path / "planned")
    duplicated(spark, plain, {"hoodie.populate.meta.fields": "false"})
    with pytest.raises(UnsupportedTableError, match="stores no record keys"):
        HudiTable.for_path(plain).services.deduplicate("a", spark=spark)
    duplicated(spark, planned)
    services = HudiTable.for_path(planned).services
    assert len(services.schedule_clustering())
    before = found(planned)
    with pytest.raises(BusyError, match=r"pending plan is going to rewrite .* services.run_clustering"):
        services.deduplicate("a", dedupe_type="update", spark=spark)
    assert found(planned) == before


@pytest.mark.slow
def test_a_deduplication_that_dies_is_done_by_the_next_one(spark: SparkSession, tmp_path: Path) -> None:
    made = str(tmp_path / "made")
    duplicated(spark, made, {"hoodie.metadata.enable": "false"})
    opts = Options.parse({**OPTIONS, "hoodie.metadata.enable": "false"})

    def run(path: str, *faults: Fault) -> FaultyStorage:
        storage = FaultyStorage(open_storage(path, opts), faults)
        client = TableMetaClient.open(storage, opts)
        deduplicate(spark, client, client.config.validate_against(opts), "a", DedupeType.UPSERT)
        return storage

    whole = str(tmp_path / "whole")
    copytree(made, whole)
    operations = [one for one, _ in run(whole).operations if one in WRITES]
    expected, before = [row[:3] for row in found(whole)], [row[:3] for row in found(made)]
    assert len(operations) > 3
    for number in sorted({1, len(operations) // 2, len(operations) - 2}):
        path = str(tmp_path / f"died{number}")
        copytree(made, path)
        with pytest.raises(Killed):
            run(path, Fault("writes", number, "after", Killed))
        assert [row[:3] for row in found(path)] in (before, expected)
        run(path)
        assert [row[:3] for row in found(path)] == expected


def test_an_evolved_table_keeps_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    options = duplicated(spark, path)
    table = HudiTable.for_path(path)
    with table.alter_schema() as columns:
        columns.rename_column("v", "w").add_column("extra", "long")
    third = spark.createDataFrame([("k4", "a", 3, "late", 7)], "id string, p string, ts long, w string, extra long")
    write(third, path, {**options, "hoodie.datasource.write.operation": "bulk_insert"})
    assert table.services.deduplicate("a", dedupe_type="upsert_type", spark=spark).num_surplus == 4
    expected = [("k1", "new", None), ("k2", "new", None), ("k3", "y", None), ("k4", "late", 7), ("k5", "z", None)]
    rows = table.scan([("p", "=", "a")]).to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["w"], row["extra"]) for row in rows] == expected
    spark_rows = table.scan([("p", "=", "a")]).to_spark(spark).orderBy("id").collect()
    assert [(row.id, row.w, row.extra) for row in spark_rows] == expected
