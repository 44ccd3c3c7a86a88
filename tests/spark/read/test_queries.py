"""Queries as Spark DataFrames: rows, and what Spark skips."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyhudi import HudiTable
from pyhudi.config import Options
from pyhudi.errors import QueryError
from pyhudi.read.query.query import Query
from pyhudi.spark.read.dataframe_reader import read
from pyhudi.spark.read.load_table import load_table
from pyhudi.storage import open_storage
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.timeline.instant import Action
from tests.cases import each_choice
from tests.concurrent_archival import archive_after_first_pin
from tests.tables import HandMadeTable, at
from tests.unit.storage.s3_server import running_s3_server

HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
PATH = {"pyhudi.read.partition.values": "path"}
FILE = {"pyhudi.read.partition.values": "file"}
STYLES = [pytest.param({}, id="plain"), pytest.param(HIVE, id="hive")]
ENGINES = [pytest.param({}, id="spark"), pytest.param({"pyhudi.read.engine": "arrow"}, id="arrow")]
YEARS = pa.schema([("id", pa.string()), ("year", pa.int32()), ("v", pa.int64()), ("wide", pa.string())])


def load(spark: SparkSession, table: HandMadeTable, **options: str) -> DataFrame:
    return load_table(spark, str(table.root), options)


def plan_text(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    frame.explain()
    return capsys.readouterr().out


def values(frame: DataFrame, *columns: str) -> list[tuple]:
    return sorted((tuple(row) for row in frame.select(*columns).collect()), key=str)


@pytest.fixture(scope="module")
def years(tmp_path_factory) -> HandMadeTable:
    table = HandMadeTable(tmp_path_factory.mktemp("hive") / "t", 9, "year", YEARS, HIVE)
    table.write(10, {(f"year={y}", f"f{y}"): _rows(y) for y in range(2000, 2010)})
    return table


@pytest.fixture(scope="module")
def plain_years(tmp_path_factory) -> HandMadeTable:
    table = HandMadeTable(tmp_path_factory.mktemp("plain") / "t", 9, "year", YEARS)
    table.write(10, {(f"{y}", f"f{y}"): _rows(y) for y in range(2000, 2010)})
    return table


def _rows(year: int) -> list[dict]:
    return [{"id": f"k{year}-{i}", "year": year, "v": i, "wide": "x" * 10} for i in range(3)]


def test_columns_come_as_the_original_shows_them(spark, years):
    frame = load(spark, years)
    assert frame.columns == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
        "id",
        "year",
        "v",
        "wide",
    ]
    assert dict(frame.dtypes)["year"] == "int"
    assert frame.count() == 30


def test_hive_style_partitions_are_pruned_by_spark(spark, years, capsys):
    frame = load(spark, years).where("year >= 2008 and v = 1").select("id")
    text = plan_text(frame, capsys)
    assert re.search(r"PartitionFilters: \[[^\]]*year#\d+ >= 2008", text)
    assert re.search(r"PushedFilters: \[[^\]]*EqualTo\(v,1\)", text)
    assert "ReadSchema: struct<id:string,v:bigint>" in text
    assert values(frame, "id") == [("k2008-1",), ("k2009-1",)]


@pytest.mark.parametrize(("fields", "folder"), [("year", "{y}"), ("year,id", "{y}/i-{y}")], ids=["one", "two"])
def test_other_partitions_are_pruned_by_spark(spark, tmp_path, capsys, fields, folder):
    table = HandMadeTable(tmp_path / "t", 9, fields, YEARS)
    rows = {y: [row | {"id": f"i-{y}"} for row in _rows(y)] for y in range(2000, 2010)}
    table.write(10, {(folder.format(y=y), f"f{y}"): rows[y] for y in rows})
    frame = load(spark, table).where("year = 2003").select("v", "year")
    text = plan_text(frame, capsys)
    assert re.search(r"PartitionFilters: \[[^\]]*year#\d+ = 2003", text)
    assert "ReadSchema: struct<v:bigint>" in text
    for year in range(2004, 2010):  # files that are not there cannot have been opened
        table.remove(10, folder.format(y=year), f"f{year}")
    assert values(frame, "v", "year") == [(i, 2003) for i in range(3)]


@pytest.mark.parametrize(("root", "style"), each_choice(["a b", "é%41+$1", "x=y", "[a]{b}", "-x/y-"], STYLES))
def test_partitions_below_odd_roots_are_pruned(spark, tmp_path, capsys, root, style):
    table = HandMadeTable(tmp_path / root, 9, "year", YEARS, style)
    prefix = "year=" if style else ""
    table.write(10, {(f"{prefix}{y}", f"f{y}"): _rows(y) for y in range(2000, 2003)})
    frame = load(spark, table).where("year = 2001").select("id", "year")
    assert re.search(r"PartitionFilters: \[[^\]]*year#\d+ = 2001", plan_text(frame, capsys))
    assert values(frame, "id", "year") == [(f"k2001-{i}", 2001) for i in range(3)]


def test_values_of_folders_change_nothing_but_the_work(spark, plain_years):
    folders, held = load(spark, plain_years), load(spark, plain_years, **FILE)
    assert folders.schema == held.schema
    assert values(folders, *held.columns) == values(held, *held.columns)


WIDER = [
    pytest.param(
        (pa.decimal128(10, 2), pa.decimal128(14, 4), Decimal("1.50"), ("1.5", "1.50", "1.5000")), id="decimal"
    ),
    pytest.param((pa.int32(), pa.int64(), 7, ("7",)), id="int"),
]


@pytest.mark.parametrize(
    ("wider", "style"), each_choice(WIDER, [pytest.param(HIVE, id="hive"), pytest.param({}, id="plain")])
)
def test_a_partition_column_with_a_wider_type(spark, tmp_path, wider, style):
    """Names of folders tell values of the table's type, also above files from before it was widened."""
    old, new, first, texts = wider
    schema = pa.schema([("id", pa.string()), ("p", old)])
    table = HandMadeTable(tmp_path / "t", 9, "p", schema, style)
    prefix = "p=" if style else ""
    for n, text in enumerate(texts):
        table.write(10 + n, {(prefix + text, f"f{n}"): [{"id": f"k{n}", "p": first}]})
    wider = pa.schema([("id", pa.string()), ("p", new)])
    last = Decimal("2.1234") if pa.types.is_decimal(new) else 2**40
    table.write(20, {(f"{prefix}{last}", "f9"): [{"id": "new", "p": last}]}, schema=wider)
    expected = sorted([*((f"k{n}", first) for n in range(len(texts))), ("new", last)])
    for more in ({}, PATH, FILE):
        assert values(load(spark, table, **more), "id", "p") == expected
        assert values(load(spark, table, **more).where(sf.col("p") == sf.lit(last)), "id") == [("new",)]
        assert len(values(load(spark, table, **more).where(sf.col("p") == first), "id")) == len(texts)


def test_other_partitions_are_skipped_by_statistics_of_files(spark, plain_years, capsys):
    frame = load(spark, plain_years, **FILE).where("year = 2003").select("id")
    text = plan_text(frame, capsys)
    assert "EqualTo(year,2003)" in text
    assert "ReadSchema: struct<id:string,year:int>" in text
    assert frame.count() == 3


def test_a_filter_given_to_the_scan_prunes_files(spark, plain_years):
    scan = HudiTable.for_path(str(plain_years.root)).scan([("year", ">", 2007), ("v", "=", 0)], ["id"])
    frame = scan.to_spark(spark)
    assert values(frame, "id") == [("k2008-0",), ("k2009-0",)]
    assert len(frame.inputFiles()) == 2


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ([("v", "in", [0, 2]), ("year", "=", 2000)], ["k2000-0", "k2000-2"]),
        ([("v", "not in", [0, 2]), ("year", "=", 2000)], ["k2000-1"]),
        ([[("id", "=", "k2001-1")], [("id", "=", "k2002-2")]], ["k2001-1", "k2002-2"]),
        ([("v", "!=", None), ("v", "<", 1), ("year", "<=", 2000)], ["k2000-0"]),
        ([("v", "=", None)], []),
        ("v = 1 and year between 2004 and 2005", ["k2004-1", "k2005-1"]),
    ],
)
def test_filters_mean_the_same_on_spark_and_locally(spark, years, filter, expected):
    scan = HudiTable.for_path(str(years.root)).scan(filter, ["id"])
    assert [row[0] for row in values(scan.to_spark(spark), "id")] == expected
    if not isinstance(filter, str):
        assert sorted(scan.to_arrow()["id"].to_pylist()) == expected


def test_what_is_not_a_number_is_found_by_any_query(spark, tmp_path):
    """It is the greatest of all numbers to Spark, which leaves out row groups and pages by their bounds."""
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    table = HudiTable.create(str(tmp_path / "t"), options)
    table.bulk_insert(spark.createDataFrame([("a", 1.0), ("b", float("nan"))], "id string, r double").coalesce(1))
    table.upsert(spark.createDataFrame([("c", 2.0)], "id string, r double"))  # the file is written again
    rows = table.scan().to_spark(spark)
    for query, expected in [("r > 5", 1), ("r >= 2", 2), ("r = double('nan')", 1), ("r < 5", 2), ("r != 1", 2)]:
        assert rows.where(query).count() == expected, query


def test_negative_zeros_are_found_by_any_query(spark, tmp_path):
    """They are 0.0 to Spark, which looks values up in the dictionaries of files bit by bit."""
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    table = HudiTable.create(str(tmp_path / "t"), options)
    kept = [(f"{i}", -0.0 if i % 2 else 1.0, (-0.0 if i % 2 else 1.0,)) for i in range(20)]
    table.bulk_insert(spark.createDataFrame(kept, "id string, r double, s struct<f: float>").coalesce(1))
    rows = table.scan().to_spark(spark)
    for query, expected in [("r = 0", 10), ("r in (0.0, 9.0)", 10), ("s.f = 0", 10), ("r = 1", 10), ("r = 2", 0)]:
        assert rows.where(query).count() == expected, query
    assert table.scan([("r", "=", 0.0)]).to_spark(spark).count() == table.scan([("r", "=", 0.0)]).count() == 10


def test_negative_zeros_in_filters(spark, tmp_path):
    """They are 0.0, which Spark's reader of Parquet does not find by -0.0."""
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    table = HudiTable.create(str(tmp_path / "t"), options)
    rows = [(f"{i}", float(i % 2), float(i % 2)) for i in range(20)]
    table.bulk_insert(spark.createDataFrame(rows, "id string, r double, f float").coalesce(1))
    for name in ("r", "f"):
        for op, value, expected in [("=", -0.0, 10), ("in", [-0.0, 9.0], 10), ("<=", -0.0, 10), (">", -0.0, 10)]:
            scan = table.scan([(name, op, value)])
            assert scan.to_spark(spark).count() == scan.count() == expected, (name, op)
    plain = str(tmp_path / "plain")
    table.scan().to_spark(spark).select("r").write.parquet(plain)
    stored, other = table.scan().to_spark(spark), spark.read.parquet(plain)
    assert stored.where("r = 0.0D").count() == 10
    assert stored.where("r = -0.0D").count() == other.where("r = -0.0D").count()  # in conditions, as Spark reads


def test_a_pyarrow_expression_is_not_for_spark(spark, years):
    with pytest.raises(QueryError, match="pyarrow expression, which Spark cannot evaluate"):
        HudiTable.for_path(str(years.root)).scan(pc.field("v") > 1).to_spark(spark)


def test_partition_folders_with_odd_names(spark, tmp_path):
    names = ["{a}", "x[1]", "*", "a?", "b\\c", "é +%41", "%41", "a=b", "a,b", "c:d", "'q'", "#h", "a b"]
    names += ["x:*", "c:\\e"]
    for style in ({}, HIVE):
        table = HandMadeTable(tmp_path / ("hive" if style else "plain"), properties=dict(style))
        folder = (lambda n: f"p={n}") if style else (lambda n: n)
        table.write(10, {(folder(n), f"f{i}"): [{"id": n, "p": n, "v": i}] for i, n in enumerate(names)})
        for options in ({}, PATH, FILE):
            assert values(load(spark, table, **options), "id", "p") == sorted(((n, n) for n in names), key=str)
            assert values(load(spark, table, **options).where("p = 'a=b'"), "id") == [("a=b",)]


def test_null_and_empty_partition_values_stay_apart(spark, tmp_path):
    table = HandMadeTable(tmp_path / "t", properties=HIVE)
    default = "p=__HIVE_DEFAULT_PARTITION__"
    unclear = [{"id": "1", "p": None, "v": 1}, {"id": "2", "p": "", "v": 2}]
    table.write(10, {(default, "f1"): unclear, ("p=x", "f2"): [{"id": "3", "p": "x", "v": 3}]})
    frame = load(spark, table)
    assert values(frame, "id", "p") == [("1", None), ("2", ""), ("3", "x")]
    assert values(frame.where("p is null"), "id") == [("1",)]
    assert values(frame.where("p = ''"), "id") == [("2",)]


def test_partition_values_of_other_types(spark, tmp_path):
    schema = pa.schema([("id", pa.string()), ("d", pa.date32()), ("b", pa.bool_()), ("t", pa.timestamp("us", "UTC"))])
    rows = [
        {"id": "1", "d": date(2024, 1, 2), "b": True, "t": datetime(2024, 1, 2, 3)},
        {"id": "2", "d": None, "b": False, "t": datetime(1500, 1, 2, 3)},
    ]
    table = HandMadeTable(tmp_path / "t", partition_fields="d,b", schema=schema, properties=HIVE)
    folders = ["d=2024-01-02/b=true", "d=__HIVE_DEFAULT_PARTITION__/b=false"]
    table.write(10, {(f, row["id"]): [row] for f, row in zip(folders, rows, strict=True)})
    frame = load(spark, table)
    assert dict(frame.dtypes) | {"d": "date", "b": "boolean", "t": "timestamp"} == dict(frame.dtypes)
    assert values(frame, "id", "d", "b") == [("1", date(2024, 1, 2), True), ("2", None, False)]
    assert values(frame.where("d is null"), "id") == [("2",)]
    assert values(frame.selectExpr("id", "year(t)"), "id", "year(t)") == [("1", 2024), ("2", 1500)]


@pytest.mark.parametrize("options", [{}, {"pyhudi.read.engine": "arrow"}], ids=["spark", "arrow"])
def test_older_files_lack_columns_and_hold_narrower_types(spark, tmp_path, options):
    old = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int32()), ("f", pa.float32())])
    nested = pa.struct([("a", pa.int64()), ("b", pa.string())])
    new = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("f", pa.float64()), ("s", nested)])
    table = HandMadeTable(tmp_path / "t", schema=old)
    table.write(10, {("a", "f1"): [{"id": "1", "p": "a", "v": 1, "f": 0.1}]})
    table.write(20, {("a", "f2"): [{"id": "2", "p": "a", "v": 2**40, "f": 0.2, "s": {"a": 1, "b": "x"}}]}, schema=new)
    frame = load(spark, table, **options)
    assert dict(frame.dtypes)["v"] == "bigint"
    assert values(frame, "id", "v", "f", "s.b") == [("1", 1, 0.1, None), ("2", 2**40, 0.2, "x")]
    assert values(frame.where("v < 5"), "id") == [("1",)]
    assert dict(load(spark, table, **{"as.of.instant": at(10), **options}).dtypes)["v"] == "int"


@pytest.mark.parametrize(("style", "options"), each_choice(STYLES, ENGINES))
def test_partition_columns_that_only_paths_hold(spark, tmp_path, options, style):
    own = pa.schema([("id", pa.string()), ("v", pa.int64())])
    drop = {"hoodie.datasource.write.drop.partition.columns": "true", **style}
    table = HandMadeTable(tmp_path / "t", schema=own, properties=drop)
    prefix = "p=" if style else ""
    table.write(10, {(f"{prefix}{n}", f"f{n}"): [{"id": n, "v": 1}] for n in "xy"})
    frame = load(spark, table, **options)
    assert values(frame, "id", "p") == [("x", "x"), ("y", "y")]
    assert values(frame.where("p = 'y'"), "id") == [("y",)]


def test_incremental_rows_and_their_conditions(spark, tmp_path):
    table = HandMadeTable(tmp_path / "t")
    table.write(10, {("a", "f1"): [{"id": "x", "p": "a", "v": 1}, {"id": "y", "p": "a", "v": 1}]}, done=12)
    rows = [{"id": "x", "p": "a", "v": 2}, {"id": "y", "p": "a", "v": 1, "_n": 10}]
    table.write(20, {("a", "f1"): rows, ("b", "f2"): [{"id": "z", "p": "b", "v": 9}]}, done=25)
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": at(12),
    }
    assert values(load(spark, table, **options), "id", "v") == [("x", 2), ("z", 9)]
    filters = {"hoodie.datasource.read.incr.filters": "v > 5"}
    assert values(load(spark, table, **options, **filters), "id") == [("z",)]
    assert load(spark, table, **{**options, "hoodie.datasource.read.begin.instanttime": at(25)}).count() == 0


def test_a_folder_of_the_table(spark, years):
    frame = load_table(spark, f"{years.root}/year=2001")
    assert values(frame, "id") == [(f"k2001-{i}",) for i in range(3)]


def test_many_files_are_listed_without_a_job(spark, tmp_path):
    table = HandMadeTable(tmp_path / "t")
    table.write(10, {("a", f"f{i}"): [{"id": str(i), "p": "a", "v": i}] for i in range(70)})
    keys = ("spark.sql.sources.parallelPartitionDiscovery.threshold", "spark.sql.sources.ignoreDataLocality")
    before = [spark.conf.get(key) for key in keys]
    spark.sparkContext.setJobGroup("listing", "")
    for options in ({}, FILE):
        frame = load(spark, table, **options)
    assert spark.sparkContext.statusTracker().getJobIdsForGroup("listing") == []
    assert frame.count() == 70
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup("listing")) > 0
    assert [spark.conf.get(key) for key in keys] == before


def test_orc_files(spark, tmp_path):
    table = HandMadeTable(tmp_path / "t", extension="orc")
    table.write(10, {("a", "f1"): [{"id": "1", "p": "a", "v": 1}]})
    assert values(load(spark, table), "id", "p", "v") == [("1", "a", 1)]


def test_a_table_that_spark_cannot_reach_is_read_by_executors(spark, tmp_path):
    """Local files through the storage protocol stand for an object store that Spark's Hadoop does not know."""
    table = HandMadeTable(tmp_path / "t")
    table.write(10, {("a", f"f{i}"): [{"id": str(i), "p": "a", "v": i}] for i in range(5)})
    settings = Options.parse({"pyhudi.read.engine": "arrow"})
    frame = read(spark, table.client(), filter=[("v", ">", 2)], columns=["id"], opts=settings)
    assert values(frame, "id") == [("3",), ("4",)]
    assert frame.rdd.getNumPartitions() < 5, "a task reads several small files"
    sql = read(spark, table.client(), filter="v > 2 or p = 'zzz'", columns=["id"], opts=settings)
    assert values(sql, "id") == [("3",), ("4",)]


def test_an_object_store_that_spark_does_not_know(spark, tmp_path):
    """This Spark has no S3 connector, as pip's has none."""
    table = HandMadeTable(tmp_path / "t")
    table.write(10, {("a", f"f{i}"): [{"id": str(i), "p": "a", "v": i}] for i in range(3)})
    with running_s3_server() as server:
        bucket = server.new_bucket()
        storage = open_storage(f"s3://{bucket}/t", server.options)
        for path in table.storage.list("", recursive=True)["path"].to_pylist():
            storage.write(path, table.storage.read(path))
        for uri in (f"s3://{bucket}/t", f"s3a://{bucket}/t"):
            frame = load_table(spark, uri, server.options)
            assert values(frame.where("v > 0"), "id", "p") == [("1", "a"), ("2", "a")]
            assert values(load_table(spark, f"{uri}/a", server.options), "v") == [(0,), (1,), (2,)]


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_place_of_a_scheme_that_spark_does_not_know(spark, tmp_path, monkeypatch, table_type):
    """Hadoop has no name for its file system there, and mounted folders hide that."""
    table = HandMadeTable(tmp_path / "t", properties={"hoodie.table.type": table_type})
    deltas = Action.DELTA_COMMIT if table_type == "MERGE_ON_READ" else Action.COMMIT
    table.write(10, {(p, f"f{p}"): [{"id": p, "p": p, "v": 1}] for p in "ab"}, action=deltas)
    if deltas is Action.DELTA_COMMIT:
        table.log(20, {("a", "fa"): [{"id": "a", "p": "a", "v": 2}]}, base=10)
    monkeypatch.setattr(LocalStorage, "uri", lambda _, path="": f"gs://nowhere/{path}")
    found = values(load(spark, table), "id", "v")
    assert found == [("a", 2 if deltas is Action.DELTA_COMMIT else 1), ("b", 1)]


def test_an_empty_table(spark, tmp_path):
    table = HandMadeTable(tmp_path / "t")
    assert load(spark, table).columns == []
    table.write(10, {("a", "f1"): [{"id": "1", "p": "a", "v": 1}]})
    frame = load(spark, table, **{"as.of.instant": at(5)})
    assert frame.count() == 0


def test_time_travel_by_argument(spark, years):
    assert read(spark, years.client(), Query(as_of=at(9))).count() == 0


@pytest.mark.parametrize("predicate", [None, "v > 0"])
def test_an_instant_that_is_archived_while_a_query_begins(spark, tmp_path, monkeypatch, predicate):
    """The timeline was listed before, and a file of it is read after."""
    table, pinned = archive_after_first_pin(tmp_path, monkeypatch)
    assert values(load_table(spark, str(table.root), predicate=predicate), "id", "v") == [("x", 2), ("y", 3)]
    assert len(pinned) == 2
