"""Apache Hudi reads, and writes to, tables from which duplicates and orphans were taken out here."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.spark.write.dataframe_writer import write
from tests.cases import seldom
from tests.interop.harness.oracle import Oracle

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.record.level.index.enable": "true",
}
SCHEMA = "id string, p string, ts long, v string"
KEPT = ["id", "p", "ts", "v", "_hoodie_commit_time"]


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
@pytest.mark.parametrize("table_type", [seldom("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_repaired_tables(oracle: Oracle, spark: SparkSession, tmp_path: Path, table_type: str) -> None:
    path = tmp_path / "t"
    options = {**OPTIONS, "hoodie.datasource.write.table.type": table_type}

    def put(rows: list[tuple], operation: str) -> None:
        given = {**options, "hoodie.datasource.write.operation": operation}
        write(spark.createDataFrame(rows, SCHEMA), str(path), given)

    def theirs() -> list[tuple]:
        rows = oracle.read(path, {}).select(KEPT).sort_by([("p", "ascending"), ("id", "ascending")])
        return [tuple(row.values()) for row in rows.to_pylist()]

    put([("k1", "a", 1, "old"), ("k2", "a", 1, "old"), ("k3", "b", 1, "x")], "bulk_insert")
    put([("k1", "a", 2, "new"), ("k2", "a", 2, "new"), ("k2", "a", 2, "new"), ("k4", "a", 2, "y")], "bulk_insert")
    assert len(theirs()) == 7
    table = HudiTable.for_path(str(path))
    first, second = sorted(table.scan().to_arrow()["_hoodie_commit_time"].unique().to_pylist())
    base = next(path.glob("b/*.parquet"))
    orphan = base.with_name(f"cccccccc-0000-4000-8000-000000000003-0_0-0-0_{int(first) + 1}.parquet")
    shutil.copyfile(base, orphan)
    assert table.services.deduplicate("a", dedupe_type="upsert_type", spark=spark).num_surplus == 3
    assert table.services.delete_orphan_files(dry_run=False)["path"].to_pylist() == [f"b/{orphan.name}"]
    expected = [
        ("k1", "a", 2, "new", second),
        ("k2", "a", 2, "new", second),
        ("k4", "a", 2, "y", second),
        ("k3", "b", 1, "x", first),
    ]
    assert theirs() == expected
    changed = pa.table({"id": ["k1", "k4"], "p": ["a", "a"], "ts": [9, 9], "v": ["last", "last"]})
    oracle.write(path, changed, {**options, "hoodie.datasource.write.operation": "upsert"}, "append")
    seen = [row[:4] for row in theirs()]
    assert seen == [("k1", "a", 9, "last"), ("k2", "a", 2, "new"), ("k4", "a", 9, "last"), ("k3", "b", 1, "x")]
    ours = table.scan(columns=KEPT[:4]).to_arrow().sort_by([("p", "ascending"), ("id", "ascending")])
    assert [tuple(row.values()) for row in ours.to_pylist()] == seen
