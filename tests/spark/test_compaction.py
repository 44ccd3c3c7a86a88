"""Compaction on Spark: one task for each file slice, the same rows and files as by threads of this process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from tests.golden.expected import unpack
from tests.unit.services.mortable import FILE_IDS, MorTable, row

from pyhudi.errors import HudiError
from pyhudi.hudi_table import HudiTable
from pyhudi.services.run import run_in_threads, run_pending

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
    theirs = run_pending(copy.client, copy.client.options, run_in_threads)
    same = ["partitionPath", "fileId", "numWrites", "numInserts", "numUpdateWrites", "totalLogRecords"]
    assert ours.stats.select(same) == theirs.stats.select(same)
    assert mor.rows() == copy.rows()
    assert pc.sum(ours.stats["numInserts"]).as_py() == 100
