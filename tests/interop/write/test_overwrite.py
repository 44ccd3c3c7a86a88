"""Apache Hudi reads, goes on with, and cleans a table that pyhudi has put in the place of another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from tests.cases import seldom
from tests.interop.harness.alternating_writes import OPTIONS, SIMPLE, VERSIONS, rows, table
from tests.interop.harness.oracle import Oracle

CLEANING = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.async": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}
PLAIN = {"hoodie.metadata.enable": "false"}


OTHER_KEYS = {"hoodie.datasource.write.recordkey.field": "num"}


@pytest.mark.parametrize(
    ("oracle", "other"),
    [
        ("1.2.0", {}),
        seldom(("1.2.0", OTHER_KEYS)),
        seldom(("1.0.2", {})),
        seldom(("1.0.2", OTHER_KEYS)),
        seldom(("0.15.0", OTHER_KEYS)),
        seldom(("0.15.0", {})),
    ],
    indirect=["oracle"],
)
def test_what_stays_of_an_overwritten_table(
    oracle: Oracle, spark: SparkSession, tmp_path: Path, other: dict[str, str]
) -> None:
    version = {"hoodie.write.table.version": str(VERSIONS[oracle.release])}
    first, path = {**OPTIONS, **SIMPLE, **version}, tmp_path / "t"
    oracle.write(path, table(rows(0, 10, 1, "one")), first)
    before = HudiTable.for_path(path).latest_instant
    old = data_files(path)
    frame = spark.createDataFrame(rows(20, 23, 2, "two"), "id string, num int, part string, ts long, v string")
    frame.write.format("hudi").options(**{**first, **other}).mode("overwrite").save(str(path))
    assert old < data_files(path)
    assert ids(oracle, path) == ["k020", "k021", "k022"]
    if not other:
        assert len(ids(oracle, path, {"as.of.instant": str(before)})) == 10
    for n in range(4):
        oracle.write(path, table(rows(20, 23, 3 + n, f"v{n}")), {**first, **other, **CLEANING})
    assert ids(oracle, path) == ["k020", "k021", "k022"]
    assert set(HudiTable.for_path(path).scan().to_arrow()["v"].to_pylist()) == {"v3"}
    assert not old & data_files(path), "its cleaner knows what was replaced"


def ids(oracle: Oracle, path: Path, options: dict[str, str] | None = None) -> list[str]:
    return sorted(oracle.read(path, PLAIN | (options or {}), columns=["id"])["id"].to_pylist())


def data_files(path: Path) -> set[str]:
    return {str(p.relative_to(path)) for p in path.rglob("*.parquet") if ".hoodie" not in p.parts}
