"""Apache Hudi merges the log files that we wrote to tables of payload classes that only versions below 9 know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import PARALLELISM
from tests.rows import assert_same_rows
from tests.spark_arrow import to_arrow

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


PARTIAL = Case(
    6, "PartialUpdateAvroPayload", "k string, o int, a string, b string, _hoodie_is_deleted boolean", "o", {}
)
OF_ONE_KEY: dict[str, tuple[int, str | None, str | None, bool]] = {
    "u5": (5, "u5", None, False),
    "u15": (15, None, "u15", False),
    "d5": (5, "d5", None, True),
    "d10": (10, "d10", None, True),
    "d15": (15, None, "d15", True),
}
"""Rows with the ordering value, two columns and the mark of deletes."""


@pytest.mark.parametrize(
    ("oracle", "version", "table_type"),
    [
        ("0.15.0", 6, "COPY_ON_WRITE"),
        pytest.param("0.15.0", 6, "MERGE_ON_READ", marks=pytest.mark.slow),
        pytest.param("1.0.2", 8, "COPY_ON_WRITE", marks=pytest.mark.slow),
    ],
    indirect=["oracle"],
)
def test_rows_of_one_key_in_a_batch(
    oracle: Oracle, version: int, table_type: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Of several rows of a key, of which some are deletes, the same is left as with Apache Hudi."""
    several = [(first, *more) for first in OF_ONE_KEY for more in ((), *((other,) for other in OF_ONE_KEY))]
    several += [
        ("u5", "d10", "u15"),
        ("u5", "d15", "d5"),
        ("u15", "d5", "u5"),
        ("d15", "u5", "d10"),
        ("d5", "u15", "u5"),
    ]
    base = [(" ".join(names), 10, "A", "B", False) for names in several[::2]]
    rows = [(" ".join(names), *OF_ONE_KEY[name]) for names in several for name in names]
    options = replace(PARTIAL, version=version).options("upsert") | {"hoodie.datasource.write.table.type": table_type}
    theirs = dict(options)
    if oracle.release == "0.15.0":
        del theirs["hoodie.write.table.version"]
    for batch in (base, rows):
        df = spark.createDataFrame(batch, PARTIAL.schema).coalesce(1)
        df.write.format("hudi").options(**options).mode("append").save(str(tmp_path / "ours"))
        oracle.write(tmp_path / "theirs", to_arrow(df), {**theirs, **PARALLELISM})
    names = [part.split()[0] for part in PARTIAL.schema.split(", ")]
    expected = oracle.read(tmp_path / "theirs")
    assert_same_rows(HudiTable.for_path(str(tmp_path / "ours")).scan().to_arrow(), expected, names)
    assert_same_rows(oracle.read(tmp_path / "ours"), expected, names)


def without(table: pa.Table, keys: Iterable[str]) -> pa.Table:
    """The rows of other keys."""
    return table.filter(pc.invert(pc.is_in(table["k"], pa.array(list(keys), pa.string()))))


def rows_of(table: pa.Table) -> dict[str, str]:
    """The texts by key."""
    return dict(zip(table["k"].to_pylist(), table["v"].to_pylist(), strict=True))
