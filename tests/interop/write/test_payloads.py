"""Apache Hudi merges the log files that we wrote to tables of payload classes that only versions below 9 know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from tests.interop.harness.oracle import Oracle
from tests.rows import assert_same_rows

META = ("_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path")
Row = tuple[str, int, int, str]
"""Key, number of the source's file, position in it and text; rows without text are flagged deletes."""

BASE: list[Row] = [(f"k{n}", 1, 10, "base") for n in range(9)]
FIRST: list[Row] = [
    ("k0", 1, 9, "late"),  # its text is greater than the base row's
    ("k1", 1, 100, "first"),
    ("k2", 10, 1, "first"),
    ("k3", 1, 20, ""),
    ("k4", 1, 5, ""),
    ("k7", 1, 11, "first"),
]
SECOND: list[Row] = [("k1", 1, 50, "late"), ("k2", 9, 1, "late"), ("k5", 1, 12, "second"), ("k7", 1, 13, "second")]
GONE: list[Row] = [("k6", 1, 30, "gone"), ("k7", 1, 30, "gone")]


@dataclass(frozen=True)
class Case:
    """A payload class in a version of the table, the rows that must be left, and where Apache Hudi has others."""

    version: int
    payload: str
    schema: str
    precombine: str
    left: Mapping[str, str]
    differs: Mapping[str, str] = field(default_factory=dict)

    def values(self, row: Row) -> tuple[Any, ...]:
        key, file, position, text = row
        if self.precombine == "_event_seq":
            return key, f"{file:06d}.{position}", text or "gone", "u" if text else "d"
        return key, file * 1000 + position, text or "gone", not text

    def options(self, operation: str) -> dict[str, str]:
        return {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.write.table.version": str(self.version),
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": "k",
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.datasource.write.precombine.field": self.precombine,
            "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{self.payload}",
            "hoodie.metadata.enable": "false",
            "hoodie.compact.inline": "false",
        }


EVENTS = "k string, _event_seq string, v string, _change_operation_type string"
NUMBERS = "k string, o int, v string, _hoodie_is_deleted boolean"  # 1.0.2 fails on bigint beside deletes by key
LEFT = {"k0": "base", "k1": "first", "k2": "first", "k5": "second", "k8": "base"}
MYSQL = "debezium.MySqlDebeziumAvroPayload"
CASES = {
    # it compares the text of _event_seq where both versions are in log files
    "0.15.0 MySqlDebezium": Case(6, MYSQL, EVENTS, "_event_seq", LEFT, {"k1": "late"}),
    "1.0.2 MySqlDebezium": Case(8, MYSQL, EVENTS, "_event_seq", LEFT),
    "1.2.0 MySqlDebezium of version 6": Case(6, MYSQL, EVENTS, "_event_seq", LEFT),
    "1.2.0 MySqlDebezium of version 8": Case(8, MYSQL, EVENTS, "_event_seq", LEFT),
    "1.0.2 EventTime": Case(8, "EventTimeAvroPayload", NUMBERS, "o", {**LEFT, "k4": "base"}),
}
VARIANTS = ("1.0.2 MySqlDebezium", "1.2.0 MySqlDebezium of version 6")


@pytest.mark.parametrize(
    ("oracle", "case"),
    [
        pytest.param(name.split()[0], case, id=name, marks=pytest.mark.slow if name in VARIANTS else ())
        for name, case in CASES.items()
    ],
    indirect=["oracle"],
)
def test_apache_hudi_merges_our_logs(oracle: Oracle, case: Case, spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")

    def write(operation: str, rows: Iterable[Row]) -> None:
        df = spark.createDataFrame([case.values(row) for row in rows], case.schema).coalesce(1)
        df.write.format("hudi").options(**case.options(operation)).mode("append").save(path)

    write("insert", BASE)
    write("upsert", FIRST)
    write("upsert", SECOND)
    write("delete", GONE)
    table = HudiTable.for_path(path)
    assert [len(logs) for logs in table.inspect.file_slices()["log_paths"].to_pylist()] == [3]
    ours, theirs = table.scan().to_arrow(), oracle.read(path)
    assert rows_of(ours) == case.left
    assert rows_of(theirs) == {**case.left, **case.differs}
    names = [*META, *(part.split()[0] for part in case.schema.split(", "))]
    assert_same_rows(without(ours, case.differs), without(theirs, case.differs), names)


def without(table: pa.Table, keys: Iterable[str]) -> pa.Table:
    """The rows of other keys."""
    return table.filter(pc.invert(pc.is_in(table["k"], pa.array(list(keys), pa.string()))))


def rows_of(table: pa.Table) -> dict[str, str]:
    """The texts by key."""
    return dict(zip(table["k"].to_pylist(), table["v"].to_pylist(), strict=True))
