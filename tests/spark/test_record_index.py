"""The record index: built by the write that asks for it, kept by all others, and looked up by those that use it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.model import Model, Row, frame, options, rows_of

from pyhudi.hudi_table import HudiTable
from pyhudi.index.locations import locations_of
from pyhudi.metadata.records import RECORD_INDEX
from pyhudi.metadata.table import MetadataTable
from pyhudi.spark.writer import write
from pyhudi.table.metaclient import TableMetaClient

_EVENT_TIME = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"


def batch(start: int, stop: int, ts: int, v: str) -> list[Row]:
    return [(f"k{i:03d}", f"p{i % 2}", ts, v) for i in range(start, stop)]


def indexed(operation: str, table_type: str, version: int = 9, **more: Any) -> dict[str, Any]:
    kind: dict[str, Any] = {
        "hoodie__datasource__write__table__type": table_type,
        "hoodie__write__table__version": version,
        "hoodie__index__type": "RECORD_INDEX",
        "hoodie__metadata__record__index__enable": True,
        "hoodie__metadata__record__index__min__filegroup__count": 3,
        "hoodie__record__index__update__partition__path": True,
    }
    if version == 6:
        kind["hoodie__datasource__write__payload__class"] = _EVENT_TIME
    return options(operation, **{**kind, **more})


def places(path: str) -> dict[str, tuple[str, str]]:
    """Partition and file group of every key by the record index."""
    client = TableMetaClient.open(path)
    index = MetadataTable.open(client.storage, client.config, client.active_timeline())
    assert index.groups("record_index").num_rows == 3
    found = index.scan("record_index", [RECORD_INDEX])
    where = locations_of(found[RECORD_INDEX]).to_pylist()
    return {key: (row["partition"], row["file_id"]) for key, row in zip(found["key"].to_pylist(), where, strict=True)}


def real_places(path: str) -> dict[str, tuple[str, str]]:
    columns = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
    rows = HudiTable.for_path(path).scan(columns=columns).to_arrow().to_pylist()
    return {row[columns[0]]: (row[columns[1]], row[columns[2]].split("_")[0]) for row in rows}


@pytest.mark.parametrize(("table_type", "version"), [("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 9), ("MERGE_ON_READ", 6)])
def test_the_index_says_where_every_key_is(
    spark: SparkSession, tmp_path: Path, table_type: str, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    path, model = str(tmp_path / "table"), Model()

    def step(operation: str, rows: list[Row], **extra: Any) -> None:
        write(frame(spark, rows), path, indexed(operation, table_type, version, **extra), "append")
        assert rows_of(path) == model.rows, operation
        assert places(path) == real_places(path), operation

    with caplog.at_level(logging.WARNING, "pyhudi.spark"):
        rows = batch(0, 60, 10, "first")
        model.upsert(rows)
        step("bulk_insert", rows)
        rows = [*batch(0, 5, 9, "old"), *batch(10, 20, 11, "new"), *batch(60, 65, 1, "fresh")]
        model.upsert(rows)
        step("upsert", rows)
        # a record moves to another partition, unless the stored one wins
        model.delete([("k020", "p0", 0, "")])
        model.upsert([("k020", "p7", 12, "moved")])
        step("upsert", [("k020", "p7", 12, "moved"), ("k021", "p7", 3, "weaker"), ("n", "p7", 1, "new")][:2])
        gone = [*batch(0, 3, 0, ""), ("nobody", "p1", 0, "")]
        model.delete(gone)
        step("delete", gone)
        rows = batch(100, 105, 1, "inserted")
        model.upsert(rows)
        step("insert", rows)
        rows = [("k000", "p1", 1, "overwritten")]
        model.drop("p1")
        model.upsert(rows)
        step("insert_overwrite", rows)
        # another index knows nothing of it, and it is kept all the same
        rows = [("k000", "p1", 2, "again"), ("other", "p1", 2, "fresh")]
        model.upsert(rows)
        step("upsert", rows, hoodie__index__type="SIMPLE")
    assert not [r for r in caplog.records if "record index" in r.getMessage()]


def test_an_index_that_is_wrong_is_not_believed(spark: SparkSession, tmp_path: Path) -> None:
    path, model = str(tmp_path / "table"), Model()
    rows = batch(0, 20, 1, "first")
    model.upsert(rows)
    write(frame(spark, rows), path, indexed("upsert", "COPY_ON_WRITE"))
    assert pa.array(sorted(places(path))).equals(pa.array(sorted(row[0] for row in rows)))
    for file in (tmp_path / "table/.hoodie/metadata/record_index").glob("*.hfile"):
        file.unlink()
    rows = batch(10, 30, 2, "second")
    model.upsert(rows)
    write(frame(spark, rows), path, indexed("upsert", "COPY_ON_WRITE"))
    assert rows_of(path) == model.rows
