"""Copy-on-write upserts of tables that update records in part, or by a merger of the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.model import options, rows_of

from pyhudi import RecordMerger, Records, register_merger, unregister_merger
from pyhudi.errors import UnsupportedTableError
from pyhudi.spark.writer import write

SCHEMA = "id string, part string, ts bigint, a string, b int"
COLUMNS = ("id", "ts", "a", "b")


def frame(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame([(key, "p", *rest) for key, *rest in rows], SCHEMA)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ("PartialUpdateAvroPayload", [("x", 10, "new", 1), ("y", 20, "A", 2), ("z", 9, "n", 9)]),
        ("OverwriteNonDefaultsWithLatestAvroPayload", [("x", 5, "new", 1), ("y", 15, "A", 3), ("z", 8, "n", 9)]),
    ],
)
def test_partial_updates(spark: SparkSession, tmp_path: Path, payload: str, expected: list[Any]) -> None:
    path = str(tmp_path / "table")
    more = {"hoodie__datasource__write__payload__class": f"org.apache.hudi.common.model.{payload}"}
    write(frame(spark, ("x", 10, None, 1), ("y", 10, "A", 1)), path, options("insert", **more))
    # the late row fills what is null; two rows of one batch fill each other
    rows = [("x", 5, "new", None), ("y", 20, None, 2), ("y", 15, None, 3), ("z", 9, None, 9), ("z", 8, "n", None)]
    write(frame(spark, *rows), path, options("upsert", **more))
    assert rows_of(path, COLUMNS) == expected


def test_a_merger_of_the_user(spark: SparkSession, tmp_path: Path) -> None:
    class Total(RecordMerger):
        """Adds up ``b``."""

        strategy_id = "0c5a3f8e-0000-4000-8000-000000000001"

        def merge(self, older: Records, newer: Records) -> Records:
            at = newer.rows.schema.get_field_index("b")
            total = pc.add(pc.fill_null(older.rows.column("b"), 0), newer.rows.column("b"))
            return newer.with_rows(newer.rows.set_column(at, newer.rows.schema.field(at), total.cast(pa.int32())))

    path = str(tmp_path / "table")
    more = {"hoodie__write__record__merge__strategy__id": Total.strategy_id}
    first = frame(spark, ("x", 1, "a", 1), ("y", 1, "a", 5))
    write(first, path, options("insert", **more))
    with pytest.raises(UnsupportedTableError, match=f"{Total.strategy_id}.*register_merger"):
        write(first, path, options("upsert", **more))
    assert rows_of(path, COLUMNS) == [("x", 1, "a", 1), ("y", 1, "a", 5)]
    register_merger(Total())
    try:
        write(frame(spark, ("x", 1, "b", 10), ("x", 1, "c", 100), ("z", 1, "d", 7)), path, options("upsert", **more))
    finally:
        unregister_merger(Total.strategy_id)
    assert rows_of(path, COLUMNS) == [("x", 1, "c", 111), ("y", 1, "a", 5), ("z", 1, "d", 7)]
