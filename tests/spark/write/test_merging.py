"""Upserts of tables that update records in part, or by a merger of the user."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

from pyhudi import RecordMerger, Records, choose, register_merger, unregister_merger
from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import ConfigError, UnsupportedTableError
from pyhudi.spark.write.dataframe_writer import write
from tests.spark.model import options, rows_of, tree

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


@pytest.fixture
def balance() -> Iterator[dict[str, str]]:
    """Options of a table with a merger that is local, so that workers know it only by what travels to them."""

    class Balance(RecordMerger):
        """Adds up ``b``; the other columns are the later version's. What is deleted stays deleted."""

        strategy_id = "0c5a3f8e-0000-4000-8000-000000000002"
        columns = ("b",)

        def merge(self, older: Records, newer: Records) -> Records:
            at = newer.rows.schema.get_field_index("b")
            total = pc.add(older.rows.column(at), newer.rows.column(at))
            summed = newer.with_rows(newer.rows.set_column(at, newer.rows.schema.field(at), total))
            return choose(older, summed, pc.invert(older.is_delete))

    register_merger(Balance())
    yield {"hoodie__write__record__merge__strategy__id": Balance.strategy_id, "hoodie__compact__inline": "false"}
    unregister_merger(Balance.strategy_id)


class Locked(RecordMerger):
    """The later version, under a lock."""

    strategy_id = "0c5a3f8e-0000-4000-8000-000000000003"

    def __init__(self, lock: AbstractContextManager[object]) -> None:
        self.lock = lock

    def merge(self, older: Records, newer: Records) -> Records:
        with self.lock:
            return choose(older, newer, pa.array([True] * len(newer)))


def test_a_merger_that_cannot_be_pickled_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    given = {
        "hoodie__write__record__merge__strategy__id": Locked.strategy_id,
        "hoodie__datasource__write__table__type": "MERGE_ON_READ",
        "hoodie__compact__inline": "false",
    }
    rows = frame(spark, ("x", 1, "a", 1))
    register_merger(Locked(threading.Lock()))
    try:
        with pytest.raises(ConfigError, match=f"Locked .*{Locked.strategy_id}.*cannot be pickled.*lock.*in merge"):
            write(rows, str(path), options("upsert", **given))
        assert not path.exists()
        write(rows, str(path), options("bulk_insert", **given))
        register_merger(Locked(nullcontext()))
        write(rows, str(path), options("upsert", **given))
        register_merger(Locked(threading.Lock()))
        table = HudiTable.for_path(str(path))
        with pytest.raises(ConfigError, match="cannot be pickled"):
            table.services.compact()
        assert not table.services.pending_compactions()
        table.services.schedule_compaction()
        before = tree(path)
        for use in (table.services.run_compaction, table.scan().to_spark):
            with pytest.raises(ConfigError, match="cannot be pickled"):
                use()
        assert tree(path) == before
        assert table.scan().to_arrow().num_rows == 1  # without Spark
    finally:
        unregister_merger(Locked.strategy_id)


WITH_MARK = "id string, part string, ts bigint, a string, b int, _hoodie_is_deleted boolean"
# neither is there a row of a key in a write behind its delete: a base file does not tell of what was deleted
WRITES = [
    [("d", 1, "d1", 1, False), ("e", 1, "e1", 3, False), ("x", 1, "x1", 1, False), ("y", 1, "y1", 5, False)],
    [
        ("d", 2, None, None, True),
        ("d", 3, "d3", 4, False),
        ("e", 2, "e2", 1, False),
        ("n", 2, "n2", 7, False),
        ("x", 9, "x9", 10, False),
    ],
    [("e", 3, None, None, True), ("n", 3, "n3", 8, False), ("x", 3, "x3", 100, False), ("x", 2, "x2", 1000, False)],
]
BALANCES = [("n", 3, "n3", 15), ("x", 2, "x2", 1111), ("y", 1, "y1", 5)]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_one_merger_gives_the_same_rows_wherever_it_merges(
    spark: SparkSession, tmp_path: Path, balance: dict[str, str], kind: str
) -> None:
    path, at_once = str(tmp_path / "table"), str(tmp_path / "at once")
    more = {**balance, "hoodie__datasource__write__table__type": kind}
    every = [row for rows in WRITES for row in rows]
    for where, writes in ((path, WRITES), (at_once, [every])):
        for rows in writes:
            df = spark.createDataFrame([(key, "p", *rest) for key, *rest in rows], WITH_MARK).coalesce(1)
            write(df, where, options("upsert", **more))
        assert rows_of(where, COLUMNS) == BALANCES
    table = HudiTable.for_path(path)
    assert sorted(map(tuple, table.scan().to_spark(spark).select(*COLUMNS).collect())) == BALANCES
    if kind == "MERGE_ON_READ":
        assert any(map(len, table.inspect.file_slices()["log_paths"].to_pylist()))
        assert table.services.compact().instants
        assert not any(map(len, table.inspect.file_slices()["log_paths"].to_pylist()))
        assert rows_of(path, COLUMNS) == BALANCES
