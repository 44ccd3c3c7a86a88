"""A table as a plain dict, and the checks that a real table is the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyhudi.hudi_table import HudiTable

SCHEMA = "id string, part string, ts long, v string"
OPTIONS: Mapping[str, str] = {
    "hoodie.table.name": "model",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}
Row = tuple[str, str, int, str]


def frame(spark: SparkSession, rows: Iterable[Row], schema: str = SCHEMA) -> DataFrame:
    """Rows as a data frame."""
    return spark.createDataFrame(list(rows), schema)


def options(operation: str, **more: Any) -> dict[str, Any]:
    """The usual options; dots of further keys are written as double underscores."""
    return {
        **OPTIONS,
        "hoodie.datasource.write.operation": operation,
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def rows_of(path: Path | str, columns: tuple[str, ...] = ("id", "part", "ts", "v")) -> list[tuple[Any, ...]]:
    """The snapshot's rows, sorted."""
    found = HudiTable.for_path(str(path)).scan().to_arrow().select(list(columns)).to_pylist()
    return sorted((tuple(row[c] for c in columns) for row in found), key=repr)


def tree(path: Path) -> dict[str, bytes]:
    """Every file below a folder with its content."""
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


class Model:
    """Records by key and partition, merged by event time."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], Row] = {}

    def upsert(self, rows: Iterable[Row]) -> None:
        for row in rows:
            key = (row[0], row[1])
            if key not in self.records or row[2] >= self.records[key][2]:
                self.records[key] = row

    def delete(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.records.pop((row[0], row[1]), None)

    def drop(self, *partitions: str) -> None:
        self.records = {key: row for key, row in self.records.items() if key[1] not in partitions}

    @property
    def rows(self) -> list[Row]:
        return sorted(self.records.values(), key=repr)
