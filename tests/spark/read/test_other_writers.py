"""What files of other writers hold, and ours do not, on Spark: the same rows as our local reader gives."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi import HudiTable
from pyhudi.errors import ConfigError, HudiError
from pyhudi.spark.read.load_table import load_table
from pyhudi.spark.session_settings import session_setting
from pyhudi.timeline.instant import Action
from tests.spark_arrow import to_arrow
from tests.tables import HandMadeTable
from tests.unit.read.test_other_writers import FLAT, MOMENT, MOR, OLD, REQUIRED, moments, timed, whole

REPLACE = {"pyhudi.read.invalid.text": "replace"}


def same(spark: SparkSession, table: HandMadeTable, **options: str) -> list[dict]:
    """The rows that Spark gives, which are those of the local reader; without meta columns, sorted by key."""
    ours = to_arrow(load_table(spark, str(table.root), options)).sort_by("id")
    local = HudiTable.for_path(str(table.root), options).scan().to_arrow().sort_by("id")
    assert ours.to_pylist() == local.to_pylist()
    return ours.select([n for n in ours.column_names if not n.startswith("_hoodie")]).to_pylist()


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_decimals_become_the_same_text_by_all_readers(spark, tmp_path, ansi):
    """Spark's cast prints exponents without ANSI mode only."""

    def schema(kind: pa.DataType) -> pa.Schema:
        nested = [("s", pa.struct([("d", kind)])), ("m", pa.map_(pa.string(), pa.list_(pa.field("element", kind))))]
        return pa.schema([("id", pa.string()), ("p", pa.string()), ("d", kind), *nested])

    def row(key: str, value: Any) -> dict:
        return {"id": key, "p": "a", "d": value, "s": {"d": value}, "m": [("k", [value, None])]}

    texts = ["1E-10", "0E-10", "-0.0000010000", "123.5000000000"]
    table = HandMadeTable(tmp_path / "t", schema=schema(pa.decimal128(38, 10)))
    table.write(10, {("a", "f1"): [row(f"k{i}", Decimal(text)) for i, text in enumerate(texts)]})
    table.write(20, {("a", "f2"): [row("n", "x")]}, schema=schema(pa.string()))
    with session_setting(spark, "spark.sql.ansi.enabled", ansi):
        assert same(spark, table) == [*(row(f"k{i}", text) for i, text in enumerate(texts)), row("n", "x")]
        found = load_table(spark, str(table.root), {}).where("d = '1E-10' OR s.d = '0E-10'").collect()
        assert sorted(row.id for row in found) == ["k0", "k1"]


def test_floats_inside_of_columns_become_doubles(spark, tmp_path):
    def schema(kind: pa.DataType) -> pa.Schema:
        inner = pa.struct([("f", kind), ("n", pa.int32())])
        nested = [("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), kind))]
        return pa.schema([("id", pa.string()), ("p", pa.string()), ("f", kind), *nested])

    def row(key: str) -> dict:
        inner = {"f": 0.1, "n": 1}
        return {"id": key, "p": "a", "f": 0.1, "s": inner, "l": [inner, None], "m": [("k", 0.1), ("none", None)]}

    none = {"id": "none", "p": "a", "f": None, "s": None, "l": None, "m": None}
    table = HandMadeTable(tmp_path / "t", schema=schema(pa.float32()), properties=MOR)
    table.write(10, {("a", "f1"): [row("x"), none], ("a", "f2"): [row("y")]}, action=Action.DELTA_COMMIT)
    table.log(20, {("a", "f2"): [row("z")]}, schema=schema(pa.float64()))
    assert same(spark, table) == [none, row("x"), row("y"), row("z")]


def test_required_columns(spark, tmp_path):
    table = HandMadeTable(tmp_path / "t", schema=REQUIRED, properties=MOR)
    table.write(10, {("a", "f1"): [whole("x", 1)], ("a", "f2"): [whole("y", 1)]}, action=Action.DELTA_COMMIT)
    table.log(20, {("a", "f2"): [whole("z", 2)]})
    assert [row["v"] for row in same(spark, table)] == [1, 1, 2]


def test_timestamps_of_96_bits(spark, tmp_path):
    table = HandMadeTable(tmp_path / "t", schema=timed("us"), properties=MOR, int96=True)
    rows = [moments(key, MOMENT) for key in "xyz"]
    table.write(10, {("a", "f1"): rows[:1], ("a", "f2"): rows[1:2]}, action=Action.DELTA_COMMIT)
    table.log(20, {("a", "f2"): rows[2:]})
    assert [row["t"] for row in same(spark, table)] == [MOMENT] * 3
    assert OLD < MOMENT  # Spark refuses dates before its calendar's in such files


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_text_that_is_not_utf8_is_replaced_by_reads_and_writes(spark, tmp_path, kind):
    properties = {"hoodie.table.type": kind}
    table = HandMadeTable(tmp_path / "t", schema=pa.schema([*FLAT, ("w", pa.string())]), properties=properties)
    rows = {key: {**whole(key, 1), "w": "caf\udce9"} for key in "xyz"}
    mor = kind == "MERGE_ON_READ"
    action = Action.DELTA_COMMIT if mor else Action.COMMIT
    table.write(10, {("a", "f1"): [rows["x"]], ("a", "f2"): [rows["y"], rows["z"]]}, action=action)
    if mor:
        table.log(20, {("a", "f2"): [{k: rows["z"][k] for k in ("id", "p", "v", "w")}]})
    assert [row["w"] for row in same(spark, table, **REPLACE)] == ["caf\ufffd"] * 3
    with pytest.raises(ConfigError, match="leave one of them out"):
        load_table(spark, str(table.root), {**REPLACE, "pyhudi.read.engine": "spark"}).collect()
    new = spark.createDataFrame([("x", "a", 5, "new"), ("n", "a", 5, "new")], "id string, p string, v long, w string")
    HudiTable.for_path(str(table.root), REPLACE).upsert(new)
    if mor:
        HudiTable.for_path(str(table.root), REPLACE).services.compact()
    found = {row["id"]: row["w"] for row in same(spark, table, **REPLACE)}
    assert found == {"n": "new", "x": "new", "y": "caf\ufffd", "z": "caf\ufffd"}


def test_indexes_take_keys_and_text_that_are_not_utf8(spark, tmp_path):
    table = HandMadeTable(tmp_path / "t", schema=pa.schema([*FLAT, ("w", pa.string())]), properties=MOR)
    rows = [{**whole(f"{key}\udce9", 1), "w": f"Caf{key}\udce9"} for key in "xyz"]
    table.write(10, {("a", "f1"): rows[:1], ("a", "f2"): rows[1:2]}, action=Action.DELTA_COMMIT)
    table.log(20, {("a", "f2"): [{k: rows[2][k] for k in ("id", "p", "v", "w")}]})
    strict, tolerant = (HudiTable.for_path(str(table.root), options) for options in ({}, REPLACE))
    for name, column, more in (
        ("record_index", (), {}),
        ("lower", "w", {"using": "column_stats", "index_options": {"expr": "lower"}}),
    ):
        with pytest.raises(HudiError, match=f"not UTF-8.*{next(iter(REPLACE))}=replace"):
            strict.services.build_index(name, column, spark=spark, **more)
        tolerant.services.build_index(name, column, spark=spark, **more)
    for key in "xyz":
        assert tolerant.lookup([f"{key}\ufffd"])["w"].to_pylist() == [f"Caf{key}\ufffd"]
        condition = f"lower(w) = 'caf{key}\ufffd'"
        assert tolerant.scan(condition).to_spark(spark).count() == 1
