"""Apache Hudi and pyhudi write in turns to tables whose index says where a key belongs, and find each other's keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.hudi_table import HudiTable
from tests.interop.oracle import Oracle
from tests.interop.scenarios import PARALLELISM
from tests.spark_arrow import to_arrow

VERSIONS = {"0.15.0": 6, "1.0.2": 8, "1.2.0": 9}
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.metadata.enable": "false",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "4",
    **PARALLELISM,
}
SIMPLE = {"hoodie.datasource.write.recordkey.field": "id"}
COMPLEX = {
    "hoodie.datasource.write.recordkey.field": "id,num",
    "hoodie.bucket.index.hash.field": "num",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
}
CASES = [
    ("0.15.0", "COPY_ON_WRITE", SIMPLE),
    ("0.15.0", "MERGE_ON_READ", COMPLEX),
    ("1.0.2", "MERGE_ON_READ", SIMPLE),
    ("1.2.0", "COPY_ON_WRITE", COMPLEX),
    ("1.2.0", "MERGE_ON_READ", SIMPLE),
]


def rows(start: int, stop: int, ts: int, v: str) -> list[tuple[str, int, str, int, str]]:
    return [(f"k{i:03d}", i % 7, f"p{i % 2}", ts, v) for i in range(start, stop)]


def table(found: list[tuple[str, int, str, int, str]]) -> pa.Table:
    names = ["id", "num", "part", "ts", "v"]
    kinds = [pa.string(), pa.int32(), pa.string(), pa.int64(), pa.string()]
    return pa.table([pa.array(c, k) for c, k in zip(zip(*found, strict=True), kinds, strict=True)], names)


class Table:
    """One table that both sides write, and what it must hold."""

    def __init__(self, path: Path, oracle: Oracle, spark: SparkSession, options: dict[str, str]) -> None:
        self.path, self.oracle, self.spark, self.options = path, oracle, spark, options
        self.model: dict[str, Any] = {}

    def write(self, side: str, found: list[Any], operation: str = "upsert") -> None:
        options = {**self.options, "hoodie.datasource.write.operation": operation}
        if side == "theirs":
            self.oracle.write(self.path, table(found), options)
        else:
            options["hoodie.write.table.version"] = str(VERSIONS[self.oracle.release])
            frame = self.spark.createDataFrame(found, "id string, num int, part string, ts long, v string")
            frame.write.format("hudi").options(**options).mode("append").save(str(self.path))
        for row in found:
            if operation == "delete":
                self.model.pop(row[0], None)
            else:
                self.model[row[0]] = row

    def check(self, options: dict[str, str] | None = None) -> None:
        options = options or {"hoodie.metadata.enable": "false"}
        expected = sorted(self.model.values())
        names = ["id", "num", "part", "ts", "v"]
        ours = to_arrow(self.spark.read.format("hudi").load(str(self.path)))
        theirs = self.oracle.read(self.path, options)
        for found in (ours, theirs):
            assert sorted(zip(*(found[n].to_pylist() for n in names), strict=True)) == expected


@pytest.mark.parametrize(("oracle", "table_type", "keys"), CASES, indirect=["oracle"])
def test_buckets_in_turns(
    oracle: Oracle, table_type: str, keys: dict[str, str], spark: SparkSession, tmp_path: Path
) -> None:
    both = Table(
        tmp_path / "table", oracle, spark, {**OPTIONS, **keys, "hoodie.datasource.write.table.type": table_type}
    )
    both.write("theirs", rows(0, 20, 1, "a"))
    both.write("ours", rows(10, 30, 2, "b"))
    both.check()
    both.write("theirs", rows(5, 35, 3, "c"))
    both.write("ours", rows(0, 4, 4, ""), "delete")
    both.write("ours", rows(40, 50, 4, "d"), "bulk_insert")
    both.check()
    both.write("theirs", rows(30, 45, 5, "e"))
    both.check()
    groups = HudiTable.for_path(str(both.path)).inspect.file_slices().to_pylist()
    assert len({(row["partition"], row["file_id"][:8]) for row in groups}) == len(groups)


@pytest.mark.parametrize("oracle", ["1.0.2", "1.2.0"], indirect=True)
def test_consistent_hashing_in_turns(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    engine = {
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }
    for first, second in (("theirs", "ours"), ("ours", "theirs")):
        both = Table(tmp_path / first, oracle, spark, {**OPTIONS, **SIMPLE, **engine})
        both.write(first, rows(0, 20, 1, "a"))
        both.write(second, rows(10, 30, 2, "b"))
        both.write(first, rows(5, 35, 3, "c"))
        both.write(second, rows(0, 4, 4, ""), "delete")
        both.check()


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_apache_hudi_goes_on_with_our_buckets(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    both = Table(tmp_path / "table", oracle, spark, {**OPTIONS, **SIMPLE})
    both.write("ours", rows(0, 20, 1, "a"), "bulk_insert")
    both.write("theirs", rows(10, 30, 2, "b"))
    both.check()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_the_record_index_in_turns(oracle: Oracle, table_type: str, spark: SparkSession, tmp_path: Path) -> None:
    records = {
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.record.index.min.filegroup.count": "2",
        "hoodie.metadata.record.index.max.filegroup.count": "2",
        "hoodie.datasource.write.table.type": table_type,
    }
    skipping = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
    for first, second in (("ours", "theirs"), ("theirs", "ours")):
        both = Table(tmp_path / first, oracle, spark, {**OPTIONS, **SIMPLE, **records})
        both.write(first, rows(0, 20, 1, "a"))
        assert "record_index" in oracle.metadata_partitions(both.path)
        both.write(second, rows(10, 30, 2, "b"))
        both.check(skipping)
        both.write(first, rows(5, 35, 3, "c"))
        both.write(second, rows(0, 4, 4, ""), "delete")
        both.write(first, rows(2, 8, 5, "again"))
        both.check(skipping)
        assert "record_index" in oracle.metadata_partitions(both.path)
        for key in ("k003", "k034", "k000"):
            found = oracle.read(both.path, skipping, where=f"id = '{key}'")
            assert found["id"].to_pylist() == [key] * (key in both.model)
