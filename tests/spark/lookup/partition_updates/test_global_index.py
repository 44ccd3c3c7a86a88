"""Writes with an index over the whole table: a key is one record, whatever partition its rows name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyhudi import RecordMerger, Records, choose, register_merger, unregister_merger
from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import RecordKeyError, UnsupportedTableError
from pyhudi.spark.write.dataframe_writer import write
from tests.cases import each_choice, seldom
from tests.spark.model import frame, options, rows_of

TWICE = [("a", "p", 1, "older"), ("a", "q", 2, "newer"), ("b", "p", 1, "")]


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
def test_keys_in_two_partitions(spark: SparkSession, tmp_path: Path, operation: str) -> None:
    path = str(tmp_path / "table")
    more = {"hoodie__index__type": "GLOBAL_SIMPLE", "hoodie__combine__before__insert": True}
    write(frame(spark, TWICE), path, options(operation, **more))
    assert rows_of(path) == [("a", "q", 2, "newer"), ("b", "p", 1, "")]
    # without such an index the partition is part of the key
    write(frame(spark, TWICE), path, options(operation, hoodie__combine__before__insert=True), "overwrite")
    assert len(rows_of(path)) == 3


@pytest.mark.parametrize(("index", "hive_style"), each_choice(["simple", "bloom"], [False, True]))
def test_records_that_stay(spark: SparkSession, tmp_path: Path, index: str, hive_style: bool) -> None:
    path = str(tmp_path / "table")
    more = {
        "hoodie__index__type": f"GLOBAL_{index.upper()}",
        f"hoodie__{index}__index__update__partition__path": False,
        "hoodie__datasource__write__hive_style_partitioning": hive_style,
    }
    write(frame(spark, [("a", "p", 1, "old"), ("b", "q", 1, "old")]), path, options("insert", **more))
    rows = [("a", "q", 2, "changed"), ("b", "q", 2, "changed"), ("n", "r", 1, "new")]
    write(frame(spark, rows), path, options("upsert", **more))
    expected = [("a", "p", 2, "changed"), ("b", "q", 2, "changed"), ("n", "r", 1, "new")]
    assert rows_of(path) == expected, "the column says where the record is"
    table = HudiTable.for_path(path)
    # so that a filter finds it, whether or not it leaves out partitions
    for part in "pqr":
        found = table.scan(filter=[("part", "=", part)]).to_arrow()["id"].to_pylist()
        assert found == [row[0] for row in expected if row[1] == part]
        assert table.scan(filter=f"part = '{part}'").to_spark(spark).count() == len(found)


def test_fields_inside_structs(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")

    def rows(*given: tuple[str, str, int, int]) -> DataFrame:
        df = spark.createDataFrame(list(given), "id string, part string, ts int, v int")
        return df.selectExpr("id", "named_struct('part', part, 'ts', ts, 'v', v) s")

    plain = {
        "hoodie__index__type": "GLOBAL_SIMPLE",
        "hoodie__datasource__write__partitionpath__field": "s.part",
        "hoodie__datasource__write__precombine__field": "s.ts",
    }
    write(rows(("a", "p", 5, 1), ("b", "p", 5, 1)), path, options("insert", **plain))
    write(rows(("a", "q", 4, 2), ("b", "q", 6, 2)), path, options("upsert", **plain))
    found = {row["id"]: row["s"] for row in HudiTable.for_path(path).scan().to_arrow().to_pylist()}
    assert found == {"a": {"part": "p", "ts": 5, "v": 1}, "b": {"part": "q", "ts": 6, "v": 2}}
    staying = {**plain, "hoodie__simple__index__update__partition__path": False}
    write(rows(("a", "r", 9, 3)), path, options("upsert", **staying))
    found = {row["id"]: row["s"] for row in HudiTable.for_path(path).scan().to_arrow().to_pylist()}
    assert found["a"] == {"part": "p", "ts": 9, "v": 3}


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", seldom("GLOBAL_BLOOM")])
def test_wider_stored_ordering_values(spark: SparkSession, tmp_path: Path, index: str) -> None:
    path, more = str(tmp_path / "table"), {"hoodie__index__type": index}
    large = 2**31 + 5  # -2147483643 as an int
    write(frame(spark, [("a", "p", large, "newer"), ("b", "p", 1, "old")]), path, options("insert", **more))
    rows = frame(spark, [("a", "q", 7, "older"), ("b", "q", 7, "new")], "id string, part string, ts int, v string")
    write(rows, path, options("upsert", **more))
    assert rows_of(path) == [("a", "p", large, "newer"), ("b", "q", 7, "new")]


def test_inserts_of_known_keys(spark: SparkSession, tmp_path: Path) -> None:
    path, more = str(tmp_path / "table"), {"hoodie__index__type": "GLOBAL_SIMPLE"}
    write(frame(spark, [("a", "p", 1, "old")]), path, options("insert", **more))
    rows = frame(spark, [("a", "q", 2, "again"), ("b", "q", 2, "new")])
    with pytest.raises(RecordKeyError, match="keys of 1 records"):
        write(rows, path, options("insert", hoodie__datasource__insert__dup__policy="fail", **more))
    write(rows, path, options("insert", hoodie__datasource__write__insert__drop__duplicates=True, **more))
    assert rows_of(path) == [("a", "p", 1, "old"), ("b", "q", 2, "new")]


FILLING = {"hoodie__datasource__write__payload__class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}
MOVES = {
    "GLOBAL_SIMPLE": "hoodie__simple__index__update__partition__path",
    "GLOBAL_BLOOM": "hoodie__bloom__index__update__partition__path",
    "RECORD_INDEX": "hoodie__record__index__update__partition__path",
}


def moving(index: str, table_type: str, version: int = 9, **more: Any) -> dict[str, Any]:
    kind = {"hoodie__datasource__write__table__type": table_type, "hoodie__write__table__version": version}
    own = {"hoodie__index__type": index, "hoodie__metadata__record__index__enable": index == "RECORD_INDEX"}
    return {**kind, **own, MOVES[index]: True, "hoodie__compact__inline": False, **more}


@pytest.mark.parametrize(
    ("index", "table_type", "version"),
    [
        ("GLOBAL_SIMPLE", "MERGE_ON_READ", 9),
        seldom(("RECORD_INDEX", "COPY_ON_WRITE", 9)),
        seldom(("GLOBAL_BLOOM", "MERGE_ON_READ", 6)),
        seldom(("RECORD_INDEX", "MERGE_ON_READ", 8)),
        seldom(("GLOBAL_BLOOM", "COPY_ON_WRITE", 6)),
    ],
)
def test_moves_with_partial_updates(
    spark: SparkSession, tmp_path: Path, index: str, table_type: str, version: int
) -> None:
    fewer = {"hoodie__write__set__null__for__missing__columns": True}
    path, more = str(tmp_path / "table"), moving(index, table_type, version, **FILLING, **fewer)
    columns = "id string, part string, ts long, v string, w int"

    def upsert(*rows: tuple[Any, ...], schema: str = columns) -> list[tuple[Any, ...]]:
        df = spark.createDataFrame(list(rows), schema)
        if schema == columns:
            df = df.withColumn("tags", F.array(F.struct(F.lit(1).alias("n"))))  # nothing in it may be null
        write(df, path, options("upsert", **more))
        return rows_of(path, ("id", "part", "ts", "v", "w"))

    upsert(("a", "p", 5, "kept", 1), ("b", "p", 5, "kept", 1), ("c", "p", 5, None, 1), ("d", "q", 5, "kept", 1))
    upsert(("d", "q", 6, None, 2))  # by a log file, in a merge-on-read table
    found = upsert(
        *(("a", "q", 7, None, 2), ("b", "q", 4, None, None), ("c", "q", 4, "filled", 2), ("d", "r", 7, None, None)),
        ("e", None, 7, "new", 1),
    )
    stays = [("b", "p", 5, "kept", 1), ("c", "p", 5, "filled", 1)]
    assert found == [("a", "q", 7, "kept", 2), *stays, ("d", "r", 7, "kept", 2), ("e", None, 7, "new", 1)]
    # a narrower type, fewer columns, and a partition column that is not given
    found = upsert(("a", "r", 8), ("b", None, 8), ("d", "q", 8), schema="id string, part string, ts int")
    assert found[:4] == [("a", "r", 8, "kept", 2), ("b", "p", 8, "kept", 1), stays[1], ("d", "q", 8, "kept", 2)]
    found = upsert(("d", "r", 9, "later", 3))
    assert [row[0] for row in found] == ["a", "b", "c", "d", "e"], "no record is there twice"
    table = HudiTable.for_path(path)
    assert table.validate_metadata().num_rows == 0
    assert table.scan(columns=["tags"]).to_arrow()["tags"].to_pylist() == [[{"n": 1}]] * 5
    # copy-on-write tables of version 6 do not store the payload class, as in Apache Hudi
    keys = ("hoodie__index__type", MOVES[index], *FILLING)
    table.update({"part": "'s'", "v": "NULL"}, "id = 'd'", {key.replace("__", "."): more[key] for key in keys})
    assert rows_of(path)[3] == ("d", "s", 9, "later")


class Balance(RecordMerger):
    """Adds up ``ts``; the other columns are the later version's."""

    strategy_id = "0c5a3f8e-0000-4000-8000-000000000003"

    def merge(self, older: Records, newer: Records) -> Records:
        at = newer.rows.schema.get_field_index("ts")
        total = pc.add(older.rows.column("ts"), pc.if_else(newer.is_delete, 0, newer.rows.column("ts")))
        return newer.with_rows(newer.rows.set_column(at, newer.rows.schema.field(at), total))


class Undying(Balance):
    """Lets no version win against the older one if it is a delete."""

    strategy_id = "0c5a3f8e-0000-4000-8000-000000000004"

    def merge(self, older: Records, newer: Records) -> Records:
        return choose(older, super().merge(older, newer), pc.invert(newer.is_delete))


@pytest.mark.parametrize(
    ("index", "table_type"), [seldom(("RECORD_INDEX", "MERGE_ON_READ")), ("GLOBAL_SIMPLE", "COPY_ON_WRITE")]
)
def test_moves_with_a_custom_merger(spark: SparkSession, tmp_path: Path, index: str, table_type: str) -> None:
    path = str(tmp_path / "table")
    more = moving(index, table_type, hoodie__write__record__merge__strategy__id=Balance.strategy_id)
    register_merger(Balance())
    try:
        write(frame(spark, [("a", "p", 1, "old"), ("b", "p", 1, "old")]), path, options("insert", **more))
        write(frame(spark, [("a", "p", 10, "logged")]), path, options("upsert", **more))
        write(frame(spark, [("a", "q", 100, "moved"), ("b", "p", 100, "here")]), path, options("upsert", **more))
        assert rows_of(path) == [("a", "q", 111, "moved"), ("b", "p", 101, "here")]
        write(frame(spark, [("a", "p", 1000, "back")]), path, options("upsert", **more))
        assert rows_of(path) == [("a", "p", 1111, "back"), ("b", "p", 101, "here")]
        assert HudiTable.for_path(path).validate_metadata().num_rows == 0
    finally:
        unregister_merger(Balance.strategy_id)


def test_moves_that_a_merger_refuses(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    more = moving("GLOBAL_SIMPLE", "COPY_ON_WRITE", hoodie__write__record__merge__strategy__id=Undying.strategy_id)
    register_merger(Undying())
    try:
        write(frame(spark, [("a", "p", 1, "old")]), path, options("insert", **more))
        with pytest.raises(UnsupportedTableError, match="'a' would move to the partition 'q', but the merger"):
            write(frame(spark, [("a", "q", 10, "new")]), path, options("upsert", **more))
        assert rows_of(path) == [("a", "p", 1, "old")]
    finally:
        unregister_merger(Undying.strategy_id)


def test_moves_with_dropped_partition_columns(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    dropped = {"hoodie__datasource__write__drop__partition__columns": True}
    more = moving("GLOBAL_SIMPLE", "COPY_ON_WRITE", **FILLING, **dropped)
    write(frame(spark, [("a", "p", 1, "kept")]), path, options("upsert", **more))
    moves = frame(spark, [("a", "q", 2, None)])  # type: ignore[list-item]
    with pytest.raises(UnsupportedTableError, match=r"files lack the partition columns.*=false"):
        write(moves, path, options("upsert", **more))
    write(moves, path, options("upsert", **{**more, MOVES["GLOBAL_SIMPLE"]: False}))
    assert rows_of(path) == [("a", "p", 2, "kept")]


@pytest.mark.slow
def test_moves_with_other_nested_fields(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    more = moving("GLOBAL_SIMPLE", "COPY_ON_WRITE", **FILLING)

    def given(part: str, ts: int, fields: str) -> DataFrame:
        return spark.sql(f"SELECT 'a' AS id, '{part}' AS part, {ts}L AS ts, 'v' AS v, {fields} AS s")

    write(given("p", 1, "named_struct('x', 1, 'y', 2)"), path, options("upsert", **more))
    with pytest.raises(UnsupportedTableError, match=r"has other fields, or in another order, than .*'s'"):
        write(given("q", 2, "named_struct('y', 3, 'x', 4)"), path, options("upsert", **more))
    write(given("q", 3, "named_struct('x', 5, 'y', 6)"), path, options("upsert", **more))
    stored = HudiTable.for_path(path).scan(columns=["part", "s"]).to_arrow().to_pylist()
    assert stored == [{"part": "q", "s": {"x": 5, "y": 6}}]


def test_without_a_record_index(spark: SparkSession, tmp_path: Path) -> None:
    path, more = str(tmp_path / "table"), {"hoodie__index__type": "RECORD_INDEX"}
    write(frame(spark, [("a", "p", 1, "old"), ("b", "p", 1, "old")]), path, options("insert", **more))
    write(frame(spark, [("a", "q", 2, "stays"), ("b", "p", 2, "new")]), path, options("upsert", **more))
    assert rows_of(path) == [("a", "p", 2, "stays"), ("b", "p", 2, "new")]
    more = {"hoodie__index__type": "GLOBAL_RECORD_LEVEL_INDEX", "hoodie__record__index__update__partition__path": True}
    write(frame(spark, [("a", "q", 3, "moves")]), path, options("upsert", **more))
    assert rows_of(path) == [("a", "q", 3, "moves"), ("b", "p", 2, "new")]
    more = {"hoodie__index__type": "RECORD_LEVEL_INDEX"}
    write(frame(spark, [("a", "q", 4, "again"), ("a", "p", 1, "another")]), path, options("upsert", **more))
    assert rows_of(path) == [("a", "p", 1, "another"), ("a", "q", 4, "again"), ("b", "p", 2, "new")]
