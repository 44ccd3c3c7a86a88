"""Writes to merge-on-read tables: every operation against a dict, and what is in the log files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from tests.spark.model import SCHEMA, Model, Row, frame, options, rows_of

from pyhudi.errors import ConfigError, UnsupportedTableError
from pyhudi.format.filenames import parse_names
from pyhudi.format.log import BlockType, Header, LogBlock, decode_deletes, decode_records, scan_blocks
from pyhudi.hudi_table import HudiTable
from pyhudi.spark.writer import WriteResult, write
from pyhudi.table.metaclient import TableMetaClient

_EVENT_TIME = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"


def batch(start: int, stop: int, ts: int, v: str, partitions: int = 3) -> list[Row]:
    return [(f"k{i:03d}", f"p{i % partitions}", ts, v) for i in range(start, stop)]


def merge_on_read(operation: str, version: int = 9, **more: Any) -> dict[str, Any]:
    """Options of a write to a merge-on-read table that goes by event time."""
    kind = {"hoodie__datasource__write__table__type": "MERGE_ON_READ", "hoodie__write__table__version": version}
    if version == 6:
        kind["hoodie__datasource__write__payload__class"] = _EVENT_TIME
    return options(operation, **kind, **more)


def log_files(path: Path | str) -> list[Path]:
    return sorted(Path(path).rglob(".*.log.*"))


def blocks(path: Path | str) -> list[LogBlock]:
    return [block for file in log_files(path) for block in scan_blocks(file.read_bytes())]


def stats_of(path: Path | str, result: WriteResult) -> list[dict[str, Any]]:
    """The stats that the timeline has of a write."""
    active = TableMetaClient.open(str(path)).active_timeline()
    instant = active.timeline.find(str(result.instant))
    assert instant is not None
    return list(active.commit_metadata(instant).stats.to_pylist())


@pytest.mark.parametrize("version", [6, 8, 9])
def test_all_operations_one_after_the_other(spark: SparkSession, tmp_path: Path, version: int) -> None:
    path, model = str(tmp_path / "table"), Model()

    def step(operation: str, rows: list[Row], action: str = "deltacommit", **extra: object) -> None:
        result = write(frame(spark, rows), path, merge_on_read(operation, version, **extra), "append")
        assert result.instant is not None
        assert rows_of(path) == model.rows, operation
        last = HudiTable.for_path(path).history().slice(0, 1).to_pylist()[0]
        assert (last["requested"], last["action"], last["operation"]) == (result.instant, action, operation.upper())

    rows = batch(0, 60, 10, "bulk")
    model.upsert(rows)
    step("bulk_insert", rows)

    # older, equal and newer versions, a key twice in the batch
    rows = [*batch(0, 10, 9, "old"), *batch(10, 20, 10, "tie"), *batch(20, 30, 11, "new")]
    rows += [("k021", "p0", 15, "twice, stronger"), ("k021", "p0", 14, "twice")]
    model.upsert(rows)
    step("upsert", rows)
    assert len(log_files(path)) == 3

    # new keys, in partitions with logs and in a new one; a second log
    rows = [*batch(55, 70, 12, "more"), ("x", "fresh", 1, "first")]
    model.upsert(rows)
    step("upsert", rows)

    rows = batch(100, 110, 1, "inserted")
    model.upsert(rows)
    step("insert", rows)

    gone = [*batch(0, 25, 0, ""), ("nobody", "p1", 0, ""), ("k001", "p2", 0, "")]
    model.delete(gone)
    step("delete", gone)

    # records that were deleted come again, records of the log are updated
    rows = [*batch(0, 5, 20, "again"), *batch(55, 60, 30, "third version")]
    model.upsert(rows)
    step("upsert", rows)

    rows = [("a", "p1", 1, "overwritten"), ("b", "other", 1, "overwritten")]
    model.drop("p1", "other")
    model.upsert(rows)
    step("insert_overwrite", rows, "replacecommit")

    model.drop("p2", "other")
    step("delete_partition", [], "replacecommit", hoodie__datasource__write__partitions__to__delete="*2,other")

    rows = [("k030", "p0", 99, "after"), ("z", "p2", 1, "again")]
    model.upsert(rows)
    step("upsert", rows)

    rows = batch(0, 5, 1, "anew")
    model.drop(*{row[1] for row in model.rows})
    model.upsert(rows)
    step("insert_overwrite_table", rows, "replacecommit")
