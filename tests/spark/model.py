"""A table as a plain dict, and checks that a real table is equal to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.write.write_result import WriteResult

SCHEMA = "id string, part string, ts long, v string"
OPTIONS: Mapping[str, str] = {
    "hoodie.table.name": "model",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}
Row = tuple[str, str, int, str]


def frame(spark: SparkSession, rows: Iterable[Row], schema: str = SCHEMA) -> DataFrame:
    """Return rows as a DataFrame."""
    return spark.createDataFrame(list(rows), schema)


def options(operation: str, **more: Any) -> dict[str, Any]:
    """Return the usual options; double underscores in the names of further options stand for dots."""
    return {
        **OPTIONS,
        "hoodie.datasource.write.operation": operation,
        **{key.replace("__", "."): value for key, value in more.items()},
    }


EVENT_TIME = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"


def by_event_time(operation: str, table_type: str, version: int = 9, **more: Any) -> dict[str, Any]:
    """Return the options of a write to a table of a type and a version with event time ordering."""
    kind: dict[str, Any] = {
        "hoodie__datasource__write__table__type": table_type,
        "hoodie__write__table__version": version,
    }
    if version == 6:
        kind["hoodie__datasource__write__payload__class"] = EVENT_TIME
    return options(operation, **{**kind, **more})


def rows_of(path: Path | str, columns: tuple[str, ...] = ("id", "part", "ts", "v")) -> list[tuple[Any, ...]]:
    """Return the rows of the snapshot, sorted."""
    found = HudiTable.for_path(str(path)).scan().to_arrow().select(list(columns)).to_pylist()
    return sorted((tuple(row[c] for c in columns) for row in found), key=repr)


def tree(path: Path) -> dict[str, bytes]:
    """Return every file below a folder with its content."""
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


def batch(start: int, stop: int, ts: int, v: str, partitions: int = 3) -> list[Row]:
    """Return rows whose keys are numbers, distributed over partitions."""
    return [(f"k{i:03d}", f"p{i % partitions}", ts, v) for i in range(start, stop)]


@dataclass
class Steps:
    """A table and its model, written in parallel. ``options_of`` returns the options of an operation."""

    spark: SparkSession
    path: Path | str
    options_of: Callable[..., dict[str, Any]] = options
    model: Model = field(default_factory=Model)

    def __call__(self, operation: str, rows: Iterable[Row], *, drop: Iterable[str] = (), **extra: Any) -> WriteResult:
        """Write rows to both, and check that they are equal; ``drop`` are partitions that are dropped first."""
        rows = list(rows)
        if operation == "insert_overwrite_table":
            drop = {row[1] for row in self.model.rows}
        self.model.drop(*drop)
        if operation == "delete":
            self.model.delete(rows)
        else:
            self.model.upsert(rows)
        result = write(frame(self.spark, rows), str(self.path), self.options_of(operation, **extra), "append")
        assert result.instant is not None
        assert rows_of(self.path) == self.model.rows, operation
        last = HudiTable.for_path(str(self.path)).history().slice(0, 1).to_pylist()[0]
        assert (last["requested"], last["operation"]) == (result.instant, operation.upper())
        return result
