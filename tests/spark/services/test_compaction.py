"""Compaction on Spark: one task for each file slice, the same rows and files as by threads of this process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import HudiError, OptionWithoutEffectWarning
from pyhudi.services.compaction.compaction_runner import ThreadCompactionRunner, run_pending_compactions
from pyhudi.spark.write.dataframe_writer import write as write_df
from tests.cases import seldom
from tests.golden.expected import unpack
from tests.unit.services.merge_on_read_table import FILE_IDS, MorTable, row

ORDER = [("_hoodie_record_key", "ascending"), ("_hoodie_partition_path", "ascending")]


@pytest.mark.parametrize("name", ["v6_mor_compaction", "v8_mor_event_deletes", "v9_mor_compaction_lsm"])
def test_golden_tables(name: str, spark: SparkSession, tmp_path: Path):
    golden = unpack(name, tmp_path)
    table = HudiTable.for_path(str(golden.path))
    before = table.scan().to_arrow().sort_by(ORDER)
    plan = table.services.schedule_compaction()
    result = table.services.compact(spark=spark)
    assert result.num_log_files > 0
    assert plan.instant is None or plan.instant in result.instants
    after = table.scan().to_arrow().sort_by(ORDER)
    assert after.drop(["_hoodie_file_name"]) == before.drop(["_hoodie_file_name"])
    native = spark.read.parquet(*(str(golden.path / path) for path in _base_paths(table)))
    assert native.count() == after.num_rows


def _base_paths(table: HudiTable) -> list[str]:
    paths: list[str] = table.inspect.file_slices()["base_path"].to_pylist()
    return paths


def test_a_task_that_fails_leaves_the_plan(spark: SparkSession, tmp_path: Path):
    mor = MorTable(tmp_path / "table", 9)
    mor.load([row(f"{p}{i}", p, 1, "base") for p in FILE_IDS for i in range(3)])
    mor.delta([row("a0", "a", 2, "new"), row("b0", "b", 2, "new")])
    plan = mor.table.services.schedule_compaction()
    (log,) = (mor.root / "b").glob(".*.log.*")
    content = log.read_bytes()
    log.unlink()
    with pytest.raises(HudiError, match="a file of slice"):
        mor.table.services.run_compaction(spark=spark)
    assert mor.table.services.pending_compactions()[0].instant == plan.instant
    assert not [p for part in FILE_IDS for p in (mor.root / part).glob(f"*_{plan.instant}.parquet")]
    log.write_bytes(content)
    result = mor.table.services.run_compaction(spark=spark)
    assert result.instants == (plan.instant,)
    tokens = {path.split("_")[-2] for path in result.stats["path"].to_pylist()}
    assert len(tokens) == 2
    assert mor.rows()["b0"]["v"] == "new"


def test_the_same_files_as_by_threads(spark: SparkSession, tmp_path: Path):
    mor = MorTable(tmp_path / "table", 8)
    mor.load([row(f"{p}{i}", p, 1, "base") for p in FILE_IDS for i in range(100)])
    mor.delta([row(f"{p}{i}", p, 2, "new") for p in FILE_IDS for i in range(50, 150)])
    mor.table.services.schedule_compaction()
    shutil.copytree(mor.root, tmp_path / "copy")
    copy = MorTable(tmp_path / "copy", 8)
    ours = mor.table.services.run_compaction(spark=spark)
    theirs = run_pending_compactions(copy.client, copy.client.options, ThreadCompactionRunner())
    same = ["partitionPath", "fileId", "numWrites", "numInserts", "numUpdateWrites", "totalLogRecords"]
    assert ours.stats.select(same) == theirs.stats.select(same)
    assert mor.rows() == copy.rows()
    assert pc.sum(ours.stats["numInserts"]).as_py() == 100


@pytest.mark.parametrize("version", [seldom(6), 9])
def test_inline_after_writes(version: int, spark: SparkSession, tmp_path: Path):
    """Every second delta commit compacts, as the options say, and the writer's rows are in base files then."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.write.table.version": str(version),
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "o",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "2",
    }
    path = str(tmp_path / "table")

    def write(n: int) -> None:
        rows = [(i, n, f"v{n}") for i in range(n, 10)]
        write_df(spark.createDataFrame(rows, "id int, o long, v string"), path, options)

    write(0)
    table = HudiTable.for_path(path)
    assert not _operations(table).count("COMPACT")
    write(1)
    assert _operations(table).count("COMPACT") == 1
    assert table.scan(read_optimized=True).to_arrow()["v"].to_pylist().count("v1") == 9
    write(2)
    assert _operations(table).count("COMPACT") == 1
    write(3)
    assert _operations(table) == ["COMPACT", "UPSERT", "UPSERT", "COMPACT", "UPSERT", "UPSERT"]
    found = table.scan(columns=["id", "v"]).to_arrow().to_pylist()
    assert {row["id"]: row["v"] for row in found} == {i: f"v{min(i, 3)}" for i in range(10)}


@pytest.mark.parametrize(
    ("given", "compactions"),
    [
        ({}, 1),
        ({"hoodie.compact.inline": "false"}, 0),
        seldom(({"hoodie.datasource.compaction.async.enable": "true"}, 0)),
        seldom(({"hoodie.compact.schedule.inline": "true"}, 0)),
    ],
)
def test_batch_writes_compact_by_themselves(
    given: dict[str, str], compactions: int, spark: SparkSession, tmp_path: Path
):
    """Every fifth delta commit, as those of Apache Hudi's data source do without being asked."""
    path = str(tmp_path / "table")
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }
    for number in range(5):
        rows = spark.createDataFrame([(1, f"v{number}"), (2, "same")], "id int, v string").coalesce(1)
        write_df(rows, path, options | given)
    table = HudiTable.for_path(path)
    assert _operations(table).count("COMPACT") == compactions
    assert len(table.services.pending_compactions()) == ("hoodie.compact.schedule.inline" in given)
    assert sorted(table.scan(columns=["v"]).to_arrow()["v"].to_pylist()) == ["same", "v4"]


def test_inline_in_a_copy_on_write_table(spark: SparkSession, tmp_path: Path):
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.compact.inline": "true",
    }
    rows = spark.createDataFrame([(1, "a")], "id int, v string")
    with pytest.warns(OptionWithoutEffectWarning, match="no log files"):
        write_df(rows, str(tmp_path / "table"), options)


def _operations(table: HudiTable) -> list[str]:
    """Newest first."""
    operations: list[str] = table.history()["operation"].to_pylist()
    return operations
