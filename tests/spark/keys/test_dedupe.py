"""Merging of the rows of one batch, against a plain model and against what Apache Hudi 1.2.0 did."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyhudi import RecordMerger, Records, choose, register_merger, unregister_merger
from pyhudi.config.enums import MergeMode, PartialUpdateMode
from pyhudi.errors import SchemaMismatchError, UnsupportedTableError
from pyhudi.spark.keys.deduplication import dedupe, mark_deletes
from pyhudi.spark.lookup.batch_summary import summarize
from pyhudi.table.config.merge_settings import DELETE_FIELD, DELETE_MARKER, MergeSettings
from tests.properties import examples

EVENT, COMMIT = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING
SCHEMA = (
    "_hoodie_record_key string, _hoodie_partition_path string, o1 int, o2 string, v string, w int, "
    "_hoodie_is_deleted boolean"
)
Row = tuple[str, str, int | None, str | None, str | None, int | None, bool | None]


def merging(mode: MergeMode, *ordering: str, **more: Any) -> MergeSettings:
    return MergeSettings(mode, "", ordering, dedupe_mode=mode, **more)


def model(rows: list[Row], mode: MergeMode, fields: int, *, by_key: bool) -> set[Row]:
    best: dict[Any, Row] = {}
    for row in rows:
        key = row[0] if by_key else row[:2]
        # null: the number 0, and below every text
        strength = (row[2] or 0, (row[3] is not None, row[3] or ""))[:fields] if mode is EVENT else ()
        old = best.get(key)
        if old is not None and mode is EVENT:
            beaten = (old[2] or 0, (old[3] is not None, old[3] or ""))[:fields]
            if beaten > strength:
                continue
        best[key] = row
    return set(best.values())


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "d"]),
        st.sampled_from(["p", "q"]),
        st.sampled_from([None, -1, 0, 1]),
        st.sampled_from([None, "", "x", "é"]),
        st.integers(0, 10**9).map(str),
        st.none(),
        st.sampled_from([None, True, False]),
    ),
    max_size=400,
)


def frame(spark: SparkSession, rows: list[Any], schema: str = SCHEMA) -> DataFrame:
    return spark.createDataFrame(rows, schema)


def collected(df: DataFrame, like: DataFrame) -> list[tuple[Any, ...]]:
    assert df.columns == like.columns
    return [tuple(row) for row in df.collect()]


@settings(max_examples=examples(4), deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=ROWS)
def test_equals_the_model(spark: SparkSession, rows: list[Row]) -> None:
    df = frame(spark, rows).repartitionByRange(3, F.monotonically_increasing_id()).persist()
    placed = [tuple(row) for row in df.collect()]
    for mode, ordering, by_key in [
        (EVENT, ("o1",), False),
        (EVENT, ("o1", "o2"), True),
        (COMMIT, ("o1",), False),
    ]:
        found = collected(dedupe(df, merging(mode, *ordering), global_keys=by_key), df)
        expected = model(placed, mode, len(ordering), by_key=by_key)
        assert len(found) == len(expected)
        assert set(found) == expected
    keys = [row[:2] for row in placed]
    batch = summarize(df, (), global_keys=False)
    assert batch.rows == len(rows)
    assert batch.has_duplicates == (len(set(keys)) < len(keys))
    assert batch.partitions == tuple(sorted({row[1] for row in rows}))
    if rows:
        assert batch.ranges["_hoodie_record_key"] == (min(keys)[0], max(keys)[0])
    df.unpersist()


def test_deletes_take_part_as_in_the_original(spark: SparkSession) -> None:
    rows = [
        ("a", 5, "i", False), ("a", 6, "d", True), ("b", 6, "d", True), ("b", 5, "i", False), ("c", 6, "i", None),
        ("c", 5, "d", True), ("e", 5, "i", False), ("e", 5, "d", True), ("f", 5, "d", True), ("f", 5, "i", False),
    ]  # fmt: skip
    df = frame(
        spark,
        [(k, "", ts, v, gone) for k, ts, v, gone in rows],
        "_hoodie_record_key string, _hoodie_partition_path string, ts int, v string, _hoodie_is_deleted boolean",
    )
    settings_ = merging(EVENT, "ts")
    found = dedupe(mark_deletes(df, settings_), settings_).where("not _pyhudi_delete")
    assert {(row["_hoodie_record_key"], row["v"]) for row in found.collect()} == {("c", "i"), ("f", "i")}


def test_partial_updates_as_in_the_original(spark: SparkSession) -> None:
    rows = [
        ("a", 5, "1", None), ("a", 7, None, 2), ("b", 9, None, 1), ("b", 3, "z", None), ("c", 1, "q", 1),
        ("c", 1, None, None),
    ]  # fmt: skip
    df = frame(
        spark,
        [(k, "", *more) for k, *more in rows],
        "_hoodie_record_key string, _hoodie_partition_path string, ts int, v string, x int",
    )
    ignore = PartialUpdateMode.IGNORE_DEFAULTS
    for mode, b in [(COMMIT, ("b", 3, "z", 1)), (EVENT, ("b", 9, "z", 1))]:
        found = collected(dedupe(df, merging(mode, "ts", dedupe_partial_mode=ignore)), df)
        assert {(row[0], *row[2:]) for row in found} == {("a", 7, "1", 2), b, ("c", 1, "q", 1)}
    fill = merging(COMMIT, dedupe_partial_mode=PartialUpdateMode.FILL_UNAVAILABLE)
    toasted = frame(
        spark,
        [("a", "", "big", 1), ("a", "", "__debezium_unavailable_value", None)],
        "_hoodie_record_key string, _hoodie_partition_path string, v string, x int",
    )
    assert collected(dedupe(toasted, fill), toasted) == [("a", "", "big", None)]


@pytest.mark.parametrize("kind", ["double", "float"])
def test_floating_point_orders_as_in_the_original(spark: SparkSession, kind: str) -> None:
    """As Java compares them: -0.0 is less than 0.0, and NaN greater than all."""
    given = {"x": (0.0, -0.0), "y": (-0.0, 0.0), "n": (float("nan"), float("inf")), "t": (-0.0, -0.0)}
    batch = [(key, "", value, f"{key}{n}") for key, values in given.items() for n, value in enumerate(values)]
    schema = f"_hoodie_record_key string, _hoodie_partition_path string, o {kind}, v string"
    rows = dedupe(spark.createDataFrame(batch, schema).coalesce(1), merging(EVENT, "o")).collect()
    assert {row.v for row in rows} == {"x0", "y1", "n0", "t1"}


def test_delete_marks(spark: SparkSession) -> None:
    df = frame(spark, [("d", None), ("D", None), (None, None), ("u", True)], "op string, _hoodie_is_deleted boolean")
    marker = merging(COMMIT, properties={DELETE_FIELD: "op", DELETE_MARKER: "d"})
    assert [row[2] for row in mark_deletes(df, marker).collect()] == [True, False, False, True]
    assert [row[2] for row in mark_deletes(df, merging(COMMIT)).collect()] == [False, False, False, True]
    assert [row[2] for row in mark_deletes(df, marker, every_row=True).collect()] == [True] * 4


def test_refusals(spark: SparkSession) -> None:
    df = frame(spark, [], SCHEMA)
    with pytest.raises(SchemaMismatchError, match="no column 'ts' for the ordering; the columns are: "):
        dedupe(df, merging(EVENT, "ts"))
    with pytest.raises(UnsupportedTableError, match=r"org\.x\.P.*register_merger"):
        dedupe(df, merging(MergeMode.CUSTOM, payload_class="org.x.P"))


def test_a_registered_merger_merges_on_the_workers(spark: SparkSession) -> None:
    class Longest(RecordMerger):
        """Keeps the longer text. Workers can only know this class by what travels to them."""

        strategy_id = "longest"
        columns = ("v",)

        def merge(self, older: Records, newer: Records) -> Records:
            longer = pc.greater_equal(
                pc.fill_null(pc.utf8_length(newer.rows.column("v")), 0),
                pc.fill_null(pc.utf8_length(older.rows.column("v")), 0),
            )
            return choose(older, newer, longer)

    register_merger(Longest())
    rows = [(key, "", text) for key in ("a", "b", "c") for text in ("1", "333", "22")]
    df = frame(spark, rows, "_hoodie_record_key string, _hoodie_partition_path string, v string").repartition(3)
    try:
        found = collected(dedupe(df, MergeSettings(MergeMode.CUSTOM, "longest", dedupe_mode=MergeMode.CUSTOM)), df)
    finally:
        unregister_merger("longest")
    assert sorted(found) == [(key, "", "333") for key in ("a", "b", "c")]
