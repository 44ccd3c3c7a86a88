"""Partition columns whose values in files are not those of the paths, and paths with line ends, as in Apache Hudi."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.spark.write.dataframe_writer import write
from tests.cases import seldom
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import PARALLELISM
from tests.rows import assert_same_rows
from tests.spark_arrow import to_arrow

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int32())])
INCREMENTAL = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.read.begin.instanttime": "000",
}
STAYING = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}


def options(table_type: str, hive: bool, **more: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.hive_style_partitioning": str(hive).lower(),
        "hoodie.compact.inline": "false",
        **PARALLELISM,
        **more,
    }


def rows(*found: tuple[str, str, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in found], SCHEMA)


@pytest.mark.parametrize(("table_type", "hive"), [("COPY_ON_WRITE", True), seldom(("MERGE_ON_READ", False))])
@pytest.mark.parametrize("oracle", [seldom("0.15.0"), seldom("1.0.2"), "1.2.0"], indirect=True)
def test_records_that_stay_in_their_old_partition(
    oracle: Oracle, spark: SparkSession, tmp_path: Path, table_type: str, hive: bool
) -> None:
    """The path's value counts, in one partition as in several, with filters and without. 0.15.0 gives the file's in
    snapshots of merge-on-read tables and in changes, and loses the row in a filter."""
    path, given = tmp_path / "t", options(table_type, hive, **STAYING)
    oracle.write(path, rows(("1", "a", 1), ("2", "b", 1), ("3", "a", 1)), given)
    oracle.write(path, rows(("1", "b", 2)), given)
    table = HudiTable.for_path(str(path))
    for where in (None, "part = 'a'", "part = 'b'", "id = '1'"):
        if oracle.release == "0.15.0" and table_type == "MERGE_ON_READ":
            break
        theirs = oracle.read(path, where=where)
        scan = table.scan(where, SCHEMA.names)
        assert_same_rows(scan.to_arrow(), theirs, SCHEMA.names)
        assert_same_rows(to_arrow(scan.to_spark(spark)), theirs, SCHEMA.names)
    changes = to_arrow(spark.read.format("hudi").options(**INCREMENTAL).load(str(path)))
    assert_same_rows(changes, rows(("1", "a", 2), ("2", "b", 1), ("3", "a", 1)), SCHEMA.names)
    if oracle.release != "0.15.0":
        assert_same_rows(changes, oracle.read(path, INCREMENTAL), SCHEMA.names)


@pytest.mark.parametrize(("table_type", "hive"), [("COPY_ON_WRITE", False), seldom(("MERGE_ON_READ", True))])
@pytest.mark.parametrize("oracle", [seldom("0.15.0"), "1.2.0"], indirect=True)
def test_line_ends_in_partition_values(
    oracle: Oracle, spark: SparkSession, tmp_path: Path, table_type: str, hive: bool
) -> None:
    """Each writes what the other reads."""
    version = {"0.15.0": "6", "1.2.0": "9"}[oracle.release]
    path, given = tmp_path / "t", {**options(table_type, hive), "hoodie.write.table.version": version}
    frame = spark.createDataFrame([("1", "a\nb", 1), ("2", "c", 1)], "id string, part string, ts int")
    write(frame, str(path), given)
    oracle.write(path, rows(("1", "a\nb", 2), ("3", "a\nb", 2)), {**given, "hoodie.write.table.version": version})
    write(frame.selectExpr("id", "part", "3 as ts").where("id = '2'"), str(path), given)
    expected = rows(("1", "a\nb", 2), ("2", "c", 3), ("3", "a\nb", 2))
    assert_same_rows(oracle.read(path), expected, SCHEMA.names)
    scan = HudiTable.for_path(str(path)).scan()
    assert_same_rows(scan.to_arrow(), expected, SCHEMA.names)
    assert_same_rows(to_arrow(scan.to_spark(spark)), expected, SCHEMA.names)
