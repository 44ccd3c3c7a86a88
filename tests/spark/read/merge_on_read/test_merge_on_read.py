"""Merge-on-read queries as Spark DataFrames: slices in every state, and what Spark skips."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import QueryError, UnsupportedTableError
from pyhudi.merge.mergers.merger_registry import unregister_merger
from pyhudi.spark.read.merge_on_read import deletion_vectors, merge_by_partition
from pyhudi.timeline.instant import Action
from tests.cases import each_choice, seldom
from tests.rows import assert_same_rows
from tests.spark.read.hand_made import EVENT_TIME, HIVE, MOR, SCHEMA, load, make, row, values
from tests.spark_arrow import to_arrow
from tests.tables import HandMadeTable, at

READ_OPTIMIZED = {"hoodie.datasource.query.type": "read_optimized"}
BEGIN = "hoodie.datasource.read.begin.instanttime"
INCREMENTAL = {"hoodie.datasource.query.type": "incremental"}
STYLES = [pytest.param({}, id="plain"), pytest.param(HIVE, id="hive")]
ENGINES = [pytest.param({}, id="spark"), pytest.param({"pyhudi.read.engine": "arrow"}, id="arrow")]


def check(spark: SparkSession, table: HandMadeTable, **options: str) -> pa.Table:
    """The rows on Spark are those of the local reader, also when they are read again (from the log cache, if that
    can be)."""
    found = to_arrow(load(spark, table, **options))
    assert_same_rows(to_arrow(load(spark, table, **options)), found)
    as_of = options.get("as.of.instant")
    begin = options.get(BEGIN)
    optimized = options.get("hoodie.datasource.query.type") == "read_optimized"
    local = HudiTable.for_path(str(table.root)).scan(as_of=as_of, begin=begin, read_optimized=optimized).to_arrow()
    assert_same_rows(found, local)
    assert found.column_names == local.column_names
    return found


@pytest.mark.parametrize(
    ("version", "data_format", "positions"),
    [
        (6, "avro", False),
        seldom((6, "parquet", False)),
        seldom((6, "avro", True)),
        seldom((6, "parquet", True)),
        seldom((8, "avro", False)),
        (8, "parquet", True),
        seldom((8, "avro", True)),
        seldom((8, "parquet", False)),
        (9, "avro", True),
        (9, "parquet", False),
        seldom((9, "avro", False)),
        seldom((9, "parquet", True)),
    ],
)
def test_updates_inserts_and_deletes(spark, tmp_path, version, data_format, positions):
    table = make(tmp_path, version)
    how = {"base": 10, "positions": positions and version >= 8, "data_format": data_format}
    table.log(20, {("a", "f1"): [row("k1", 1, "log"), row("k4", 1, "log")]}, deletes={("a", "f1"): ["k0"]}, **how)
    new = [] if positions else [row("new", 1, "log")]
    changed = {("a", "f1"): [row("k1", 2, "later"), *new], ("b", "f2"): [row("m0", 5, "log", "b")]}
    table.log(30, changed, deletes={("a", "f1"): ["k5"]}, **how)
    check(spark, table)
    changes = {"k1": "later", "k4": "log", "m0": "log"} | ({} if positions else {"new": "log"})
    assert values(load(spark, table).where("w != 'base'"), "id", "w") == sorted(changes.items())
    assert load(spark, table).count() == 10 + len(new)
    optimized = load(spark, table, **READ_OPTIMIZED)
    assert values(optimized, "w") == [("base",)] * 12
    assert check(spark, table, **{"as.of.instant": at(20)}).num_rows == 11
    begin = at(20)
    changes = load(spark, table, **INCREMENTAL, **{BEGIN: begin})
    assert values(changes, "id", "w") == sorted({"k1": "later", "m0": "log", **{r["id"]: "log" for r in new}}.items())


@pytest.mark.parametrize("positions", [True, False], ids=["positions", "keys"])
def test_event_time(spark, tmp_path, positions):
    table = make(tmp_path, properties=EVENT_TIME)
    how = {"base": 10, "positions": positions}
    rows = [row("k0", 9, "late"), row("k1", 10, "tie"), row("k2", 11, "newer"), row("k3", 30, "winner")]
    table.log(20, {("a", "f1"): rows}, **how)
    table.log(30, {("a", "f1"): [row("k3", 20, "late")]}, deletes={("a", "f1"): ["k4"]}, **how)
    check(spark, table)
    found = values(load(spark, table).where("w != 'base'"), "id", "w")
    assert found == [("k1", "tie"), ("k2", "newer"), ("k3", "winner")]
    assert "k4" not in {key for (key,) in values(load(spark, table), "id")}


@pytest.mark.parametrize("style", [HIVE, {}], ids=["hive", "plain"])
def test_folders_with_colons(spark, tmp_path, style):
    """Hadoop takes a colon for the end of a scheme, in folders that are mounted."""
    table = HandMadeTable(tmp_path / "t", 9, schema=SCHEMA, properties={**MOR, **style})
    names = {p: f"p={p}" if style else p for p in ("10:30", "11:45", "noon")}
    table.write(
        10,
        {(name, f"f{p[:2]}"): [row(f"{p}-{i}", i, p=p) for i in range(3)] for p, name in names.items()},
        action=Action.DELTA_COMMIT,
    )
    logs = {(name, f"f{p[:2]}"): [row(f"{p}-1", 9, "log", p)] for p, name in names.items()}
    table.log(20, logs, base=10, positions=True)
    check(spark, table)
    assert values(load(spark, table).where("p = '10:30'"), "id", "w") == [
        ("10:30-0", "base"),
        ("10:30-1", "log"),
        ("10:30-2", "base"),
    ]


def test_slices_of_logs_alone(spark, tmp_path):
    table = make(tmp_path)
    table.log(20, {("c", "f9"): [row("x", 1, "log", "c"), row("y", 1, "log", "c")]})
    table.log(30, {("c", "f9"): [row("x", 2, "later", "c")]}, deletes={("c", "f9"): ["y"]})
    check(spark, table)
    assert values(load(spark, table).where("p = 'c'"), "id", "w") == [("x", "later")]
    assert load(spark, table, **READ_OPTIMIZED).count() == 12


def test_a_rollback_in_the_log(spark, tmp_path):
    table = make(tmp_path, 6)
    table.log(20, {("a", "f1"): [row("k1", 1, "undone")]}, base=10)
    table.log(30, {("a", "f1"): [row("k2", 1, "log")]}, base=10, roll_back=20)
    check(spark, table)
    assert values(load(spark, table).where("w != 'base'"), "id", "w") == [("k2", "log")]


@pytest.mark.parametrize("positions", [True, False], ids=["positions", "keys"])
def test_partial_updates(spark, tmp_path, positions):
    table = make(tmp_path, 8)
    how = {"base": 10, "positions": positions}
    table.log(20, {("a", "f1"): [{"id": "k1", "w": "part"}, {"id": "k2", "w": "part"}]}, columns=["w"], **how)
    table.log(30, {("a", "f1"): [{"id": "k2", "v": 3}]}, columns=["v"], **how)
    check(spark, table)
    assert values(load(spark, table).where("w = 'part'"), "id", "v") == [("k1", 10), ("k2", 3)]


def test_columns_that_came_later(spark, tmp_path):
    table = make(tmp_path)
    wider = pa.schema([*SCHEMA, pa.field("x", pa.float64())])
    table.log(20, {("a", "f1"): [row("k1", 1, "log") | {"x": 1.5}]}, base=10, positions=True, schema=wider)
    table.log(30, {("a", "f1"): [row("k2", 1, "log")]}, base=10, positions=True, schema=wider)
    table.write(40, {("b", "f4"): [row("q", 1, "base", "b") | {"x": 2.5}]}, action=Action.DELTA_COMMIT, schema=wider)
    check(spark, table)
    assert values(load(spark, table).where("x is not null"), "id", "x") == [("k1", 1.5), ("q", 2.5)]
    assert "x" not in load(spark, table, **{"as.of.instant": at(10)}).columns


@pytest.mark.parametrize("name", ["_metadata", "_Metadata"])
def test_a_column_that_hides_the_row_numbers_of_spark(spark, tmp_path, name):
    table = make(tmp_path)
    wider = pa.schema([*SCHEMA, pa.field(name, pa.string())])
    table.log(20, {("a", "f1"): [row("k1", 1, "log") | {name: "own"}]}, base=10, positions=True, schema=wider)
    check(spark, table)
    assert values(load(spark, table).where(f"{name} = 'own'"), "id", "w") == [("k1", "log")]


TOTAL = "0c8dd8a2-0001-4000-8000-000000000001"


def total_merger() -> pyhudi.RecordMerger:
    """Adds up v. Its class is local, so that it is pickled by value, as that of a notebook is."""

    class Total(pyhudi.RecordMerger):
        strategy_id = TOTAL
        columns = ("v",)

        def merge(self, older: pyhudi.Records, newer: pyhudi.Records) -> pyhudi.Records:
            at_v = newer.rows.schema.get_field_index("v")
            total = pc.add(older.rows.column(at_v), newer.rows.column(at_v))
            return newer.with_rows(newer.rows.set_column(at_v, newer.rows.schema.field(at_v), total))

    return Total()


@pytest.fixture
def total() -> Iterator[None]:
    pyhudi.register_merger(total_merger())
    yield
    unregister_merger(TOTAL)


@pytest.mark.usefixtures("total")
@pytest.mark.parametrize("positions", [True, False], ids=["positions", "keys"])
def test_a_merger_of_the_user(spark, tmp_path, positions):
    custom = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": TOTAL}
    table = make(tmp_path, properties={**MOR, **custom})
    how = {"base": 10, "positions": positions}
    table.log(20, {("a", "f1"): [row("k1", 1, "log")]}, **how)
    table.log(30, {("a", "f1"): [row("k1", 2, "later"), row("k2", 5, "log")]}, **how)
    check(spark, table)
    assert values(load(spark, table).where("v != 10"), "id", "v", "w") == [("k1", 13, "later"), ("k2", 15, "log")]
    unregister_merger(TOTAL)
    with pytest.raises(UnsupportedTableError, match=TOTAL):
        load(spark, table)
    assert load(spark, table, **READ_OPTIMIZED).count() == 12


FILTERS = {
    "v": ([("v", "=", 1)], ["k1", "m0"]),
    "v and p": ([("v", "=", 1), ("p", "=", "a")], ["k1"]),
    "id": ([("id", "in", ["k1", "k2", "m1"])], ["k1", "k2", "m1"]),
    "key": ([("_hoodie_record_key", "=", "k1")], ["k1"]),
    "text": ("v = 1 and w = 'log'", ["k1", "m0"]),
    "text with p": ("v > 1 and p = 'b'", ["m1", "m2"]),
}


@pytest.mark.parametrize(("name", "style"), each_choice(list(FILTERS), STYLES))
def test_filters_and_columns_of_a_scan(spark, tmp_path, name, style):
    filter, expected = FILTERS[name]
    table = make(tmp_path, properties={**MOR, **style})
    prefix = "p=" if style else ""
    logs = {(f"{prefix}a", "f1"): [row("k1", 1, "log")], (f"{prefix}b", "f2"): [row("m0", 1, "log", "b")]}
    table.log(20, logs, base=10, positions=True)
    scan = HudiTable.for_path(str(table.root)).scan(filter, ["id"])
    frame = scan.to_spark(spark)
    assert frame.columns == ["id"]
    assert [key for (key,) in values(frame, "id")] == expected
    if not isinstance(filter, str):
        assert sorted(scan.to_arrow()["id"].to_pylist()) == expected
    narrow = HudiTable.for_path(str(table.root)).scan(columns=["w", "id"]).to_spark(spark)
    assert values(narrow.where("w = 'log'"), "w", "id") == [("log", "k1"), ("log", "m0")]


NUMBERS = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("i", pa.int32()), ("f", pa.float32()), ("d", pa.float64())]
)


def test_numbers_mean_the_same_in_base_files_and_in_logs(spark, tmp_path):
    """Spark compares the rows of one slice, our reader those of the other: each has the same values."""
    table = HandMadeTable(tmp_path / "t", schema=NUMBERS, properties=MOR)
    numbers = [(1, 0.1, -0.0), (2, 0.0, 0.0), (3, 16777216.0, 1.5), (None, None, None)]
    files = {
        (p, f"f{p}"): [{"id": f"{p}{n}", "p": p, "i": i, "f": f, "d": d} for n, (i, f, d) in enumerate(numbers)]
        for p in "ab"
    }
    table.write(10, files, action=Action.DELTA_COMMIT)
    table.log(20, {("b", "fb"): files["b", "fb"]}, base=10)
    meant = {
        ("i", "<", 1.5): "0",
        ("i", ">=", 1.5): "12",
        ("i", "=", 1.5): "",
        ("i", "!=", Decimal("1.5")): "012",
        ("i", "in", (1, 1.5)): "0",
        ("i", "not in", (1, 1.5)): "12",
        ("i", "in", (1.5,)): "",
        ("i", "not in", ()): "012",
        ("i", "<", 10**20): "012",
        ("i", "=", True): "0",
        ("f", "=", 0.1): "",
        ("f", ">", 0.1): "02",
        ("f", "=", 16777217): "2",
        ("f", "<", 10**20): "012",
        ("d", "in", (0.0, 7.0)): "01",
        ("d", "not in", (-0.0,)): "2",
    }
    for term, rows in meant.items():
        scan = HudiTable.for_path(str(table.root)).scan([term], ["id"])
        expected = [p + n for p in "ab" for n in rows]
        assert [key for (key,) in values(scan.to_spark(spark), "id")] == expected, term
        assert sorted(scan.to_arrow()["id"].to_pylist()) == expected, term


def test_what_is_not_a_number_is_the_greatest_one_everywhere(spark, tmp_path):
    """In base files, whose statistics leave it out, in base files with logs, in logs: as Spark compares numbers."""
    table = HandMadeTable(tmp_path / "t", schema=NUMBERS, properties=MOR)
    nan = float("nan")

    def rows(p: str, *numbers: float | None) -> list[dict[str, object]]:
        return [{"id": f"{p}{n}", "p": p, "i": n, "f": v, "d": v} for n, v in enumerate(numbers)]

    files = {(p, f"f{p}"): rows(p, 5.0, nan, None) for p in "abc"}
    table.write(10, files, action=Action.DELTA_COMMIT)
    table.log(20, {("b", "fb"): files["b", "fb"], ("c", "fc"): rows("c", 5.0)}, base=10)
    meant = {
        ("=", 5.0): "0",
        ("=", nan): "1",
        ("!=", 5.0): "1",
        ("!=", nan): "0",
        ("<", 6.0): "0",
        ("<", nan): "0",
        ("<=", nan): "01",
        (">", 6.0): "1",
        (">", nan): "",
        (">=", 5.0): "01",
        (">=", nan): "1",
        ("in", (nan, 7.0)): "1",
        ("in", (5.0, 7.0)): "0",
        ("not in", (5.0,)): "1",
        ("not in", (nan,)): "0",
    }
    for (op, value), found in meant.items():
        for name in "df":
            scan = HudiTable.for_path(str(table.root)).scan([(name, op, value)], ["id"])
            expected = [p + n for p in "abc" for n in found]
            assert sorted(scan.to_arrow()["id"].to_pylist()) == expected, (name, op, value)
            if name == "d" or op == ">":
                assert [key for (key,) in values(scan.to_spark(spark), "id")] == expected, (name, op, value)


def test_a_pyarrow_expression_is_not_for_spark(spark, tmp_path):
    table = make(tmp_path)
    table.log(20, {("a", "f1"): [row("k1", 1, "log")]}, base=10)
    with pytest.raises(QueryError, match="pyarrow expression, which Spark cannot evaluate"):
        HudiTable.for_path(str(table.root)).scan(pc.field("v") > 1).to_spark(spark)


@pytest.mark.parametrize(("style", "options"), each_choice(STYLES, ENGINES))
def test_partition_columns_that_only_paths_hold(spark, tmp_path, options, style):
    own = pa.schema([("id", pa.string()), ("v", pa.int64())])
    drop = {"hoodie.datasource.write.drop.partition.columns": "true", **MOR, **style}
    table = HandMadeTable(tmp_path / "t", schema=own, properties=drop)
    prefix = "p=" if style else ""
    files = {(f"{prefix}{n}", f"f{n}"): [{"id": n, "v": 1}, {"id": f"{n}2", "v": 1}] for n in "xyz"}
    table.write(10, files, action=Action.DELTA_COMMIT)
    table.log(20, {(f"{prefix}x", "fx"): [{"id": "x", "v": 2}]}, base=10, positions=True)
    frame = load(spark, table, **options)
    expected = [("x", "x", 2), ("x2", "x", 1), ("y", "y", 1), ("y2", "y", 1), ("z", "z", 1), ("z2", "z", 1)]
    assert values(frame, "id", "p", "v") == expected
    assert values(frame.where("p = 'x'"), "id") == [("x",), ("x2",)]


def test_virtual_keys(spark, tmp_path):
    table = make(tmp_path, meta_columns=False)
    table.log(20, {("a", "f1"): [row("k1", 1, "log"), row("new", 1, "log")]}, deletes={("a", "f1"): ["k2"]})
    check(spark, table)
    assert values(load(spark, table).where("w = 'log'"), "id") == [("k1",), ("new",)]


def test_orc_base_files(spark, tmp_path):
    table = make(tmp_path, extension="orc")
    table.log(20, {("a", "f1"): [row("k1", 1, "log")]}, base=10)
    check(spark, table)


def test_what_spark_skips(spark, tmp_path, capsys):
    """All base files are Spark's own scan, with pruned columns and pushed filters; hidden rows are joined away."""
    table = make(tmp_path)
    table.log(20, {("a", "f1"): [row("k1", 1, "log")]}, base=10, positions=True)
    frame = load(spark, table).where("v = 1").select("id")
    capsys.readouterr()
    frame.explain()
    text = capsys.readouterr().out
    assert len(re.findall(r"PushedFilters: \[[^\]]*EqualTo\(v,1\)", text)) == 2
    assert len(re.findall(r"ReadSchema: struct<id:string,v:bigint[>,]", text)) == 2
    assert re.search(r"BroadcastHashJoin .*LeftAnti", text)
    assert values(frame, "id") == [("k1",)]


@pytest.mark.parametrize("style", [HIVE, {}], ids=["hive", "plain"])
def test_rows_left_out_of_large_tables(spark, tmp_path, capsys, monkeypatch, style):
    """Above 64 GiB of base files the rows to leave out are broadcast as positions, not as bitmaps."""
    table = make(tmp_path, properties={**MOR, **style})
    a, b = ("p=a", "p=b") if style else ("a", "b")
    logs = {(a, "f1"): [row("k1", 1, "log"), row("k5", 1, "log")], (b, "f2"): [row("m0", 5, "log", "b")]}
    table.log(20, logs, deletes={(a, "f1"): ["k0"], (a, "f3"): ["n2"]}, base=10, positions=True)
    monkeypatch.setattr(deletion_vectors, "LARGEST_WITH_BITMAPS", 0)
    frame = load(spark, table)
    capsys.readouterr()
    frame.explain()
    assert re.search(r"BroadcastHashJoin .*_pyhudi_place.*LeftAnti", capsys.readouterr().out)
    assert check(spark, table).num_rows == 10
    assert values(frame.where("w = 'log'"), "id") == [("k1",), ("k5",), ("m0",)]


def test_files_of_one_name_in_two_partitions(spark, tmp_path):
    """Their rows cannot be told apart by name, so that slices are merged as a whole."""
    table = HandMadeTable(tmp_path / "t", schema=SCHEMA, properties=dict(MOR))
    rows = {(p, "f1"): [row(f"{p}{i}", 10, p=p) for i in range(3)] for p in "ab"}
    table.write(10, rows, action=Action.DELTA_COMMIT)
    table.log(20, {("a", "f1"): [row("a1", 1, "log")]}, deletes={("b", "f1"): ["b0"]}, base=10, positions=True)
    check(spark, table)
    assert values(load(spark, table).where("w = 'log'"), "id") == [("a1",)]


def test_options_of_format_hudi(spark, tmp_path):
    table = make(tmp_path)
    table.log(20, {("a", "f1"): [row("k1", 1, "log")]}, base=10, positions=True)
    pyhudi.activate(spark)
    try:
        reader = spark.read.format("hudi")
        assert values(reader.load(str(table.root)).where("v = 1"), "id") == [("k1",)]
        optimized = spark.read.format("hudi").options(**READ_OPTIMIZED).load(str(table.root))
        assert optimized.where("v = 1").count() == 0
        old = spark.read.format("hudi").option("as.of.instant", at(10)).load(str(table.root))
        assert old.where("v = 1").count() == 0
    finally:
        pyhudi.deactivate()


def test_a_missing_log_file_says_so(spark, tmp_path):
    table = make(tmp_path)
    table.log(20, {("a", "f1"): [row("k1", 1, "log")]}, base=10)
    frame = load(spark, table)
    for log in table.root.glob("a/.f1_*"):
        log.unlink()
    with pytest.raises(Exception, match="a cleaner has removed it since the query was planned"):
        frame.count()


@pytest.mark.parametrize("engine", ["auto", "arrow"])
def test_log_files_of_other_partitions_are_left_out(spark, tmp_path, monkeypatch, capsys, engine):
    """Each partition is a part of its own, if that pays, which Spark drops where a query asks for others."""
    monkeypatch.setattr(merge_by_partition, "WORTH_A_PART", 0)
    table = make(tmp_path)
    table.log(20, {("a", "f1"): [row("k1", 1, "log")], ("b", "f2"): [row("m0", 5, "log", "b")]}, base=10)
    check(spark, table, **{"pyhudi.read.engine": engine})
    frame = load(spark, table, **{"pyhudi.read.engine": engine, "pyhudi.read.log.cache.size": "0"})
    with_logs = HudiTable.for_path(str(table.root)).scan().to_arrow()
    for condition, keep, parts in (
        ("p = 'a'", pc.field("p") == "a", 1),
        ("p in ('b', 'zzz')", pc.field("p") == "b", 1),
        ("p > 'a' and v > 1", (pc.field("p") > "a") & (pc.field("v") > 1), 1),
        ("p = 'zzz'", pc.field("p") == "zzz", 0),
        ("v > 1", pc.field("v") > 1, 2),
    ):
        rows = frame.where(condition)
        assert values(rows, "id", "w") == sorted((r["id"], r["w"]) for r in with_logs.filter(keep).to_pylist())
        capsys.readouterr()
        rows.explain()
        # where Spark reads the base files, another one finds the rows that the logs hide
        others = 1 if engine == "auto" else 0
        without_logs = 1 if engine == "arrow" else 0
        assert capsys.readouterr().out.count("MapInArrow") == parts + others + without_logs, condition
