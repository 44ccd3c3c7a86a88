"""Writes with an index over the whole table: a key is one record, whatever partition its rows name."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import RecordKeyError, UnsupportedTableError
from pyhudi.spark.write.dataframe_writer import write
from tests.cases import each_choice
from tests.spark.model import frame, options, rows_of

TWICE = [("a", "p", 1, "older"), ("a", "q", 2, "newer"), ("b", "p", 1, "")]


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
def test_a_key_in_two_partitions_of_the_first_batch(spark: SparkSession, tmp_path: Path, operation: str) -> None:
    path = str(tmp_path / "table")
    more = {"hoodie__index__type": "GLOBAL_SIMPLE", "hoodie__combine__before__insert": True}
    write(frame(spark, TWICE), path, options(operation, **more))
    assert rows_of(path) == [("a", "q", 2, "newer"), ("b", "p", 1, "")]
    # without such an index the partition is part of the key
    write(frame(spark, TWICE), path, options(operation, hoodie__combine__before__insert=True), "overwrite")
    assert len(rows_of(path)) == 3


@pytest.mark.parametrize(("index", "hive_style"), each_choice(["simple", "bloom"], [False, True]))
def test_a_record_that_stays_in_its_partition(
    spark: SparkSession, tmp_path: Path, index: str, hive_style: bool
) -> None:
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


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_stored_ordering_values_that_incoming_types_cannot_hold(
    spark: SparkSession, tmp_path: Path, index: str
) -> None:
    path, more = str(tmp_path / "table"), {"hoodie__index__type": index}
    large = 2**31 + 5  # -2147483643 as an int
    write(frame(spark, [("a", "p", large, "newer"), ("b", "p", 1, "old")]), path, options("insert", **more))
    rows = frame(spark, [("a", "q", 7, "older"), ("b", "q", 7, "new")], "id string, part string, ts int, v string")
    write(rows, path, options("upsert", **more))
    assert rows_of(path) == [("a", "p", large, "newer"), ("b", "q", 7, "new")]


def test_inserts_of_keys_in_other_partitions(spark: SparkSession, tmp_path: Path) -> None:
    path, more = str(tmp_path / "table"), {"hoodie__index__type": "GLOBAL_SIMPLE"}
    write(frame(spark, [("a", "p", 1, "old")]), path, options("insert", **more))
    rows = frame(spark, [("a", "q", 2, "again"), ("b", "q", 2, "new")])
    with pytest.raises(RecordKeyError, match="keys of 1 records"):
        write(rows, path, options("insert", hoodie__datasource__insert__dup__policy="fail", **more))
    write(rows, path, options("insert", hoodie__datasource__write__insert__drop__duplicates=True, **more))
    assert rows_of(path) == [("a", "p", 1, "old"), ("b", "q", 2, "new")]


@pytest.mark.parametrize(
    ("index", "option"),
    [
        ("GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path"),
        ("RECORD_INDEX", "hoodie.record.index.update.partition.path"),
    ],
)
def test_records_that_move_are_not_filled(spark: SparkSession, tmp_path: Path, index: str, option: str) -> None:
    """Columns that a partial update leaves out would be lost."""
    path = str(tmp_path / "table")
    more = {
        "hoodie__index__type": index,
        "hoodie__metadata__record__index__enable": index == "RECORD_INDEX",
        "hoodie__datasource__write__payload__class": "org.apache.hudi.common.model.PartialUpdateAvroPayload",
        option.replace(".", "__"): True,
    }
    write(frame(spark, [("a", "p", 1, "kept"), ("b", "p", 1, "kept")]), path, options("upsert", **more))
    rows = [("a", "p", 2, None), ("c", "q", 2, "new")]
    write(frame(spark, rows), path, options("upsert", **more))  # type: ignore[arg-type]
    before = rows_of(path)
    assert before == [("a", "p", 2, "kept"), ("b", "p", 1, "kept"), ("c", "q", 2, "new")]
    moving = frame(spark, [("b", "q", 2, None)])  # type: ignore[list-item]
    with pytest.raises(UnsupportedTableError, match=rf"'b' is in the partition 'p'.*IGNORE_DEFAULTS.*{option}=false"):
        write(moving, path, options("upsert", **more))
    assert rows_of(path) == before
    write(moving, path, options("upsert", **{**more, option.replace(".", "__"): False}))
    assert rows_of(path)[1] == ("b", "p", 2, "kept")


def test_record_indexes_without_a_record_index(spark: SparkSession, tmp_path: Path) -> None:
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
