"""Merge-on-read tables ordered by texts, dates, and decimals with many digits: late rows lose for every reader."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pyhudi import HudiTable
from tests.cases import seldom
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import PARALLELISM
from tests.rows import assert_same_rows

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.enable": "false",
}
KEYS = [f"k{number:02d}" for number in range(14)]


def _rows(updates: bool, ordering: tuple[str, ...]) -> pa.Table:
    """Return rows; every second one of the updates is late: "10" comes before "9"."""
    texts = [("10" if number % 2 else "é") if updates else "9" for number in range(len(KEYS))]
    columns = {"id": KEYS, "number": [1] * len(KEYS), "text": texts, "value": [f"{updates} {key}" for key in KEYS]}
    return pa.table({name: values for name, values in columns.items() if name != "number" or name in ordering})


@pytest.mark.parametrize(
    ("oracle", "version", "ordering"),
    [
        seldom(("0.15.0", 6, ("text",))),
        ("1.2.0", 6, ("text",)),
        seldom(("1.0.2", 8, ("text",))),
        seldom(("1.1.1", 9, ("text",))),
        ("1.2.0", 9, ("text",)),
        ("1.2.0", 9, ("number", "text")),
    ],
    indirect=["oracle"],
)
def test_late_rows_lose(
    oracle: Oracle, version: int, ordering: tuple[str, ...], spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    how = {"hoodie.datasource.write.precombine.field": ",".join(ordering), "hoodie.write.table.version": str(version)}
    for updates in (False, True):
        pq.write_table(_rows(updates, ordering), tmp_path / "rows.parquet")
        rows = spark.read.parquet(str(tmp_path / "rows.parquet"))
        rows.write.format("hudi").options(**OPTIONS, **how).mode("append").save(path)
    found = HudiTable.for_path(path).scan().to_arrow()
    assert sorted(found["value"].to_pylist()) == sorted(f"{not number % 2} {key}" for number, key in enumerate(KEYS))
    assert_same_rows(oracle.read(path), found, ["id", "value"])
    more = _rows(True, ordering).set_column(len(ordering), "text", pa.array(["10"] * len(KEYS)))
    written = dict(how) if oracle.release != "0.15.0" else {k: v for k, v in how.items() if "version" not in k}
    oracle.write(tmp_path / "t", more, {**OPTIONS, **written, "hoodie.write.auto.upgrade": "false", **PARALLELISM})
    assert_same_rows(HudiTable.for_path(path).scan().to_arrow(), found, ["id", "value"])
    assert_same_rows(oracle.read(path), found, ["id", "value"])


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)  # 1.0.2 reads no delete that is ordered by a decimal
def test_late_deletes_lose_by_decimals(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    """Deletes in log files have 15 digits after the point, the column has 18."""
    path, how = str(tmp_path / "t"), {"hoodie.datasource.write.precombine.field": "number"}
    for values, deleted in ((["2.5"] * 3, False), (["3.000000000000001", "2.499999999999999", "2.5"], True)):
        numbers = pa.array([Decimal(value) for value in values], pa.decimal128(38, 18))
        rows = pa.table({"id": KEYS[:3], "number": numbers, "_hoodie_is_deleted": [deleted] * 3})
        pq.write_table(rows, tmp_path / "rows.parquet")
        frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
        frame.write.format("hudi").options(**OPTIONS, **how).mode("append").save(path)
    assert list((tmp_path / "t").glob(".*.log.*")), "the deletes are in no log file"
    found = HudiTable.for_path(path).scan().to_arrow()
    assert found["id"].to_pylist() == KEYS[1:2]
    assert_same_rows(oracle.read(path), found, ["id", "number"])


@pytest.mark.parametrize(
    ("oracle", "version"),
    [seldom(("0.15.0", 6)), seldom(("1.0.2", 8)), ("1.2.0", 6), ("1.2.0", 9)],
    indirect=["oracle"],
)
def test_late_deletes_lose_by_dates(oracle: Oracle, version: int, spark: SparkSession, tmp_path: Path) -> None:
    """Rows of an upsert, in the log, meet deletes of the day before, of the same day, and of the day after."""
    path = str(tmp_path / "t")
    how = {"hoodie.datasource.write.precombine.field": "day", "hoodie.write.table.version": str(version)}
    for batch, days in enumerate(([1, 1, 1], [10, 10, 10], [9, 10, 11])):
        dates = [dt.date(2026, 11, day) for day in days]
        rows = pa.table({"id": KEYS[:3], "day": dates, "value": [batch] * 3, "_hoodie_is_deleted": [batch == 2] * 3})
        pq.write_table(rows, tmp_path / "rows.parquet")
        frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
        frame.write.format("hudi").options(**OPTIONS, **how).mode("append").save(path)
    found = HudiTable.for_path(path).scan().to_arrow()
    assert found.select(["id", "value"]).to_pylist() == [{"id": KEYS[0], "value": 1}]
    assert_same_rows(oracle.read(path), found, ["id", "day", "value"])


@pytest.mark.parametrize(
    ("oracle", "version"), [seldom(("0.15.0", 6)), ("1.2.0", 6), seldom(("1.2.0", 9))], indirect=["oracle"]
)
def test_deletes_of_1970_01_01_count_by_commit_time(
    oracle: Oracle, version: int, spark: SparkSession, tmp_path: Path
) -> None:
    """The number of that day is 0, the ordering value of deletes that have none."""
    path = str(tmp_path / "t")
    how = {"hoodie.datasource.write.precombine.field": "day", "hoodie.write.table.version": str(version)}
    for batch, days in enumerate(([2, 2], [3, 3], [1, 2])):
        dates = [dt.date(1970, 1, day) for day in days]
        rows = pa.table({"id": KEYS[:2], "day": dates, "value": [batch] * 2, "_hoodie_is_deleted": [batch == 2] * 2})
        pq.write_table(rows, tmp_path / "rows.parquet")
        frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
        frame.write.format("hudi").options(**OPTIONS, **how).mode("append").save(path)
    found = HudiTable.for_path(path).scan().to_arrow()
    assert found.select(["id", "value"]).to_pylist() == [{"id": KEYS[1], "value": 1}]
    assert_same_rows(oracle.read(path), found, ["id", "day", "value"])
