"""Every query on merge-on-read tables that Apache Hudi wrote: deltas, deletes, a compaction, deltas after it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from tests.cases import every, seldom
from tests.interop.harness.oracle import RELEASES, Oracle, OracleInstant
from tests.interop.harness.scenarios import PARALLELISM
from tests.rows import assert_same_rows
from tests.spark_arrow import to_arrow

TYPE = "hoodie.datasource.query.type"
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    **PARALLELISM,
}
COMPACT = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int32()), ("v", pa.string())])
COLUMNS = ["_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path", *SCHEMA.names]


def rows(numbers: range | tuple[int, ...], ts: int, v: str) -> pa.Table:
    made = [{"id": f"k{n}", "part": "ab"[n % 2], "ts": ts, "v": v} for n in numbers]
    return pa.Table.from_pylist(made, SCHEMA)


class Queries:
    """Asks both sides the same."""

    def __init__(self, oracle: Oracle, path: Path, spark: SparkSession) -> None:
        self.oracle, self.path, self.spark = oracle, path, spark

    def snapshots(self) -> None:
        self._same({}, {})
        self._same({TYPE: "read_optimized"}, {"read_optimized": True})

    def as_of(self, instant: str) -> None:
        self._same({"as.of.instant": instant}, {"as_of": instant})

    def since(self, begin: str) -> None:
        key = "hoodie.datasource.read.begin.instanttime"
        theirs = begin
        if self.oracle.release == "1.0.2":  # takes it as inclusive
            after = dt.datetime.strptime(begin + "000", "%Y%m%d%H%M%S%f") + dt.timedelta(milliseconds=1)
            theirs = after.strftime("%Y%m%d%H%M%S%f")[:17]
        options = {TYPE: "incremental", key: begin}
        self._same(options, {"begin": begin}, {**options, key: theirs})

    def _same(
        self, options: Mapping[str, str], scan: Mapping[str, object], theirs: Mapping[str, str] | None = None
    ) -> None:
        expected = self.oracle.read(self.path, {"hoodie.metadata.enable": "false", **(theirs or options)})
        on_spark = to_arrow(self.spark.read.format("hudi").options(**options).load(str(self.path)))
        local = HudiTable.for_path(str(self.path)).scan(**scan).to_arrow()
        for who, found in (("Spark", on_spark), ("local", local)):
            try:
                assert_same_rows(found, expected, COLUMNS)
            except AssertionError as error:
                raise AssertionError(f"{options} on {who}: {error}") from None


USUAL = {("1.0.2", "parquet"), ("1.2.0", "avro")}
CASES = [
    (release, block_format) if (release, block_format) in USUAL else seldom((release, block_format))
    for release in RELEASES
    for block_format in ("avro", "parquet")
]


@pytest.mark.parametrize(("oracle", "block_format"), CASES, indirect=["oracle"])
def test_every_query(oracle: Oracle, block_format: str, spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    queries = Queries(oracle, path, spark)

    def write(table: pa.Table, operation: str, **more: str) -> None:
        how = {"hoodie.datasource.write.operation": operation, "hoodie.logfile.data.block.format": block_format}
        oracle.write(path, table, {**OPTIONS, **how, **more})

    write(rows(range(12), 1, "base"), "bulk_insert")
    write(rows((0, 1, 4, 5), 2, "first"), "upsert")
    write(rows((2, 5), 3, ""), "delete")
    write(rows((0, 3, 20), 3, "second"), "upsert")
    queries.snapshots()
    write(rows((1, 6), 4, "third"), "upsert", **COMPACT)
    write(rows((0, 7), 5, "fourth"), "upsert")
    write(rows((9,), 6, ""), "delete")
    queries.snapshots()
    writes = [i for i in oracle.timeline(path) if i.action == "deltacommit" and i.state == "COMPLETED"]
    assert any(i.action == "commit" for i in oracle.timeline(path)), "nothing was compacted"
    for instant in every(2, writes[1:-1]):
        queries.as_of(instant.requested)
    for instant in every(2, (writes[0], writes[3], writes[4])):
        queries.since(_mark(path, instant))


@pytest.mark.parametrize("oracle", [seldom("1.1.1"), seldom("1.2.0")], indirect=True)
@pytest.mark.parametrize("blocks", ["parquet", "avro"])
def test_keys_after_an_incremental_query(oracle: Oracle, blocks: str, spark: SparkSession, tmp_path: Path) -> None:
    """Apache Hudi's incremental query leaves Spark's record-level filter on: it shifts positions in Parquet blocks."""
    path = tmp_path / "t"
    options = {**OPTIONS, "hoodie.logfile.data.block.format": blocks, "hoodie.compact.inline": "false"}
    for ts, numbers in enumerate(((0, 2, 4, 6), (2, 4, 6), (4, 6)), start=1):
        oracle.write(path, rows(numbers, ts, str(ts)), options)
    oracle.read(path, {TYPE: "incremental", "hoodie.datasource.read.begin.instanttime": "000"})

    def versions(options: Mapping[str, str]) -> list[str]:
        return sorted(oracle.read(path, options, where="id = 'k4'")["v"].to_pylist())

    assert versions({}) == (["3"] if blocks == "avro" else ["2", "3"])
    assert versions({"hoodie.merge.use.record.positions": "false"}) == ["3"]
    oracle.sql("RESET spark.sql.parquet.recordLevelFilter.enabled", "RESET spark.sql.parquet.enableVectorizedReader")
    assert versions({}) == ["3"]
    scan = HudiTable.for_path(str(path)).scan(filter="id = 'k4'", columns=["v"])
    assert scan.to_arrow()["v"].to_pylist() == to_arrow(scan.to_spark(spark))["v"].to_pylist() == ["3"]


def _mark(path: Path, instant: OracleInstant) -> str:
    """What an incremental query goes on from."""
    return HudiTable.for_path(str(path)).completion_of(instant.requested)
