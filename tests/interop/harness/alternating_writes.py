"""A table of keyed rows that Apache Hudi and pyhudi write alternately, and its expected content."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.cases import every
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import PARALLELISM
from tests.spark_arrow import to_arrow

VERSIONS = {"0.15.0": 6, "1.0.2": 8, "1.1.1": 9, "1.2.0": 9}
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.metadata.enable": "false",
    **PARALLELISM,
}
# a metadata table that is compacted, and a timeline that is archived, after few commits
ARCHIVAL = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "2",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.archive.automatic": "false",
}
SIMPLE = {"hoodie.datasource.write.recordkey.field": "id"}
Row = tuple[str, int, str, int, str]
NAMES = ["id", "num", "part", "ts", "v"]


def rows(start: int, stop: int, ts: int, v: str) -> list[Row]:
    return [(f"k{i:03d}", i % 7, f"p{i % 2}", ts, v) for i in range(start, stop)]


def table(found: list[Row]) -> pa.Table:
    kinds = [pa.string(), pa.int32(), pa.string(), pa.int64(), pa.string()]
    return pa.table([pa.array(c, k) for c, k in zip(zip(*found, strict=True), kinds, strict=True)], NAMES)


class AlternatingWrites:
    """A table that both engines write, and its expected content. ``by_partition``: a key identifies one record in each
    partition, not one in the table."""

    def __init__(
        self, path: Path, oracle: Oracle, spark: SparkSession, options: dict[str, str], *, by_partition: bool = False
    ) -> None:
        self.path, self.oracle, self.spark, self.options = path, oracle, spark, options
        self.model: dict[Any, Row] = {}
        self._by_partition, self._times = by_partition, count(1)

    def write(self, side: str, found: list[Row], operation: str = "upsert", **more: str) -> None:
        """Write rows with the engine ``theirs`` or ``ours``; double underscores in the names of further options stand
        for dots."""
        extra = {key.replace("__", "."): value for key, value in more.items()}
        options = {**self.options, "hoodie.datasource.write.operation": operation, **extra}
        if side == "theirs":
            self.oracle.write(self.path, table(found), options)
        else:
            options["hoodie.write.table.version"] = str(VERSIONS[self.oracle.release])
            frame = self.spark.createDataFrame(found, "id string, num int, part string, ts long, v string")
            frame.write.format("hudi").options(**options).mode("append").save(str(self.path))
        if operation in ("insert_overwrite", "delete_partition"):
            gone = {row[2] for row in found}
            self.model = {key: row for key, row in self.model.items() if row[2] not in gone}
        for row in found:
            key = (row[0], row[2]) if self._by_partition else row[0]
            if operation in ("delete", "delete_partition"):
                self.model.pop(key, None)
            else:
                self.model[key] = row

    def write_keys(self, side: str, start: int, stop: int, operation: str = "upsert") -> None:
        """Write `rows` with these keys by ``theirs`` or ``ours``, later than all before."""
        ts = next(self._times)
        self.write(side, rows(start, stop, ts, f"{side} {ts}"), operation)

    def check(self, options: dict[str, str] | None = None, keys: tuple[str, ...] = ()) -> None:
        """Check that both engines return the rows of the model, and find those of some keys by filters on them."""
        options = options or {"hoodie.metadata.enable": "false"}
        for where in (None, *every(2, keys)):
            expected = sorted(row for row in self.model.values() if where in (None, row[0]))
            reader = self.spark.read.format("hudi").options(**options).load(str(self.path))
            ours = to_arrow(reader if where is None else reader.where(f"id = '{where}'"))
            theirs = self.oracle.read(self.path, options, where=None if where is None else f"id = '{where}'")
            for found in (ours, theirs):
                assert sorted(zip(*(found[n].to_pylist() for n in NAMES), strict=True)) == expected, where
