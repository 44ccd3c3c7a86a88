"""Values of partition columns and times in filters: the same rows whoever reads them."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import ConfigError, QueryError, SchemaMismatchError
from pyhudi.read.query.query import Query
from pyhudi.spark.read.dataframe_reader import read
from pyhudi.spark.session_settings import session_zone
from pyhudi.spark.streaming.source import load_stream
from pyhudi.spark.write.dataframe_writer import write
from tests.cases import each_choice, every_second
from tests.spark.model import options
from tests.spark_arrow import to_arrow
from tests.tables import HandMadeTable

HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}


def both(spark: SparkSession, table: HandMadeTable, condition: Any = None, **query: Any) -> list[tuple[Any, ...]]:
    """The rows (all but meta columns) that Spark and the local reader agree on."""
    columns = table.schema.names
    scan = HudiTable.for_path(str(table.root)).scan(condition, columns, **query)
    local = sorted((tuple(row.values()) for row in scan.to_arrow().to_pylist()), key=str)
    there = to_arrow(scan.to_spark(spark)).to_pylist()
    assert sorted((tuple(row.values()) for row in there), key=str) == local
    return local


@pytest.mark.parametrize("hive", [False, True])
def test_values_of_paths(spark: SparkSession, tmp_path: Path, hive: bool) -> None:
    """As Apache Hudi 0.15.0 (copy-on-write), 1.0.2 and 1.2.0 read what they wrote with `…update.partition.path=false`:
    id 1 came again with p=b, and stays in a. The jars give p=a in snapshots, changes and read-optimized queries."""
    table = HandMadeTable(tmp_path / "t", properties=HIVE if hive else {})
    a, b = ("p=a", "p=b") if hive else ("a", "b")
    table.write(10, {(a, "f1"): [{"id": "1", "p": "a", "v": 1}, {"id": "3", "p": "a", "v": 1}]})
    table.write(20, {(a, "f1"): [{"id": "1", "p": "b", "v": 2}, {"id": "3", "p": "a", "v": 1}]})
    assert both(spark, table) == [("1", "a", 2), ("3", "a", 1)]
    table.write(30, {(b, "f2"): [{"id": "2", "p": "b", "v": 1}]})
    one, two, three = ("1", "a", 2), ("2", "b", 1), ("3", "a", 1)
    for with_logs in (False, True):
        if with_logs:
            table.log(40, {(a, "f1"): [{"id": "1", "p": "b", "v": 3}]})
            one = ("1", "a", 3)
        assert both(spark, table) == [one, two, three]
        assert both(spark, table, [("p", "=", "a")]) == [one, three]
        assert both(spark, table, [("p", "=", "b")]) == [two]
        assert both(spark, table, [("id", "=", "1"), ("p", "!=", "b")]) == [one]
        assert both(spark, table, begin="earliest") == [one, two, three]


MOVED: dict[str, tuple[pa.DataType, dict[str, Any], bool]] = {
    "a colon": (pa.string(), {"10:30": "10:30", "11:30": "11:30"}, False),
    "an end of a line": (pa.string(), {"x\ny": "x\ny", "z": "z"}, False),
    "an end of a line, hive-style": (pa.string(), {"p=x\ny": "x\ny", "p=z": "z"}, True),
    "a percent sign": (pa.string(), {"p=5%41": "5%41", "p=z": "z"}, True),
    "a folder that Spark takes for its own": (pa.string(), {"_Temporary": "_Temporary", "z": "z"}, False),
    "a folder of Spark's streams": (pa.string(), {"_spark_metadata": "_spark_metadata", "z": "z"}, False),
    "numbers with fractions": (pa.float64(), {"1.5": 1.5, "2.5": 2.5}, False),
    "times": (
        pa.timestamp("us", "UTC"),
        {"0": dt.datetime(1970, 1, 1), "1": dt.datetime(1970, 1, 1, 0, 0, 0, 1)},
        False,
    ),
}


def test_stream_metadata_folders(spark: SparkSession, tmp_path: Path) -> None:
    """Spark lists none of its files, and no stream can see its commits."""
    (tmp_path / "_spark_metadata").mkdir()
    table = HandMadeTable(tmp_path / "_spark_metadata" / "t")
    table.write(10, {("a", "f1"): [{"id": "1", "p": "a", "v": 1}], ("b", "f2"): [{"id": "2", "p": "b", "v": 1}]})
    assert both(spark, table) == [("1", "a", 1), ("2", "b", 1)]
    with pytest.raises(ConfigError, match="lists no files in folders named _spark_metadata; move the table"):
        load_stream(spark, str(table.root), {})


@pytest.mark.parametrize("name", every_second(list(MOVED)))
def test_paths_that_spark_cannot_infer(spark: SparkSession, tmp_path: Path, name: str) -> None:
    kind, paths, hive = MOVED[name]
    schema = pa.schema([("id", pa.string()), ("p", kind), ("v", pa.int64())])
    table = HandMadeTable(tmp_path / "t", schema=schema, properties=HIVE if hive else {})
    (first, mine), (second, other) = paths.items()
    table.write(
        10, {(first, "f1"): [{"id": "1", "p": other, "v": 1}], (second, "f2"): [{"id": "2", "p": other, "v": 2}]}
    )
    for with_logs in (False, True):
        if with_logs:
            table.log(20, {(first, "f1"): [{"id": "1", "p": other, "v": 3}]})
        assert [row[0] for row in both(spark, table)] == ["1", "2"]
        assert [row[0] for row in both(spark, table, [("p", "=", mine)])] == ["1"]
        assert [row[0] for row in both(spark, table, [("p", "=", other)])] == ["2"]


def test_formatted_times(spark: SparkSession, tmp_path: Path) -> None:
    """`p:simple,ts:timestamp`: the path tells p alone, in whatever form; from the path, the number of ts, as 1.2.0."""
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])
    times = {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
        "hoodie.table.keygenerator.type": "CUSTOM",
    }
    for hive in (False, True):
        properties = {**times, **(HIVE if hive else {})}
        fields = "p:simple,ts:timestamp"
        path = "p={}/ts=20231114" if hive else "{}/20231114"
        table = HandMadeTable(
            tmp_path / str(hive), version=6, schema=schema, partition_fields=fields, properties=properties
        )
        files = {(path.format(p), f"f{p}"): [{"id": p, "p": "b", "ts": 1700000000000}] for p in "ab"}
        table.write(10, files)
        assert both(spark, table) == [("a", "a", 1700000000000), ("b", "b", 1700000000000)]
        assert both(spark, table, [("p", "=", "a"), ("ts", ">", 1600000000000)]) == [("a", "a", 1700000000000)]
        asked = {"hoodie.datasource.read.extract.partition.values.from.path": "true"}
        query = Query.from_options(asked, table.client().config)
        rows = read(spark, table.client(), query, columns=schema.names).collect()
        assert sorted(map(tuple, rows)) == [("a", "a", 20231114), ("b", "b", 20231114)]


@pytest.mark.parametrize(
    ("form", "table_type"),
    each_choice(["plain", "hive_style_partitioning", "partitionpath__urlencode"], ["MERGE_ON_READ", "COPY_ON_WRITE"]),
)
def test_line_ends(spark: SparkSession, tmp_path: Path, form: str, table_type: str) -> None:
    """As Apache Hudi 0.15.0, 1.0.2 and 1.2.0: written and read, in every form of the path."""
    path = str(tmp_path / "t")
    given = {} if form == "plain" else {f"hoodie__datasource__write__{form}": "true"}
    given["hoodie__datasource__write__table__type"] = table_type
    for n in (1, 2):
        rows = spark.createDataFrame(
            [("1", "a\nb", n, "x"), ("2", "c", n, "y")], "id string, part string, ts long, v string"
        )
        write(rows, path, options("upsert", **given))
    scan = HudiTable.for_path(path).scan([("part", "=", "a\nb")], ["id", "part", "ts"])
    assert scan.to_arrow().to_pylist() == [{"id": "1", "part": "a\nb", "ts": 2}]
    assert list(map(tuple, scan.to_spark(spark).collect())) == [("1", "a\nb", 2)]
    assert HudiTable.for_path(path).scan().count() == 2


def test_invalid_columns(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows = spark.createDataFrame([("1", "p", 1, "x")], "id string, part string, ts long, v string")
    bad = {
        "'w' has no type.*cast it": rows.selectExpr("*", "null as w"),
        "'w.x' has no type.*cast it": rows.selectExpr("*", "named_struct('x', null) as w"),
        "there are two columns 'v'": rows.selectExpr("*", "1 as v"),
        "'v' and 'V' differ only in case": rows.selectExpr("*", "1 as V"),
        "'w.x' and 'w.X' differ only in case": rows.selectExpr("*", "named_struct('x', 1, 'X', 2) as w"),
    }
    for message, frame in bad.items():
        with pytest.raises(SchemaMismatchError, match=message):
            write(frame, str(path), options("upsert"))
        assert not path.exists()
    write(rows, str(path), options("upsert"))
    with pytest.raises(SchemaMismatchError, match="'v' and 'V' differ only in case"):
        write(rows.selectExpr("*", "1 as V"), str(path), options("upsert"))


@pytest.fixture
def far_apart(spark: SparkSession) -> Iterator[SparkSession]:
    """A session in Los Angeles, whose driver is in Kolkata; tables are in UTC."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Asia/Kolkata"
    time.tzset()
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    os.environ.pop("TZ")
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


def test_session_time_zone(far_apart: SparkSession, tmp_path: Path) -> None:
    """Wherever rows are read: by Spark from base files, or merged with logs by tasks of ours."""
    kinds = [("t", pa.timestamp("us", "UTC")), ("l", pa.timestamp("us")), ("d", pa.date32())]
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), *kinds])
    midnight = dt.datetime(2024, 1, 1, 8, tzinfo=dt.UTC)  # of the session
    hours = {str(h + 2): dt.timedelta(hours=h) for h in range(-1, 2)}
    rows = [
        {
            "id": i,
            "p": p,
            "t": midnight + h,
            "l": dt.datetime(2024, 1, 1) + h,
            "d": (dt.datetime(2024, 1, 1) + h).date(),
        }
        for p in "ab"
        for i, h in ((f"{p}{i}", h) for i, h in hours.items())
    ]
    table = HandMadeTable(tmp_path / "t", schema=schema)
    table.write(10, {(p, f"f{p}"): [row for row in rows if row["p"] == p] for p in "ab"})
    table.log(20, {("b", "fb"): [row for row in rows if row["p"] == "b"]})
    new_year = dt.datetime(2024, 1, 1)
    found: dict[tuple[str, str, Any], str] = {
        ("t", "=", new_year): "2",
        ("t", ">", new_year): "3",
        ("t", ">=", new_year.date()): "23",
        ("t", "<", "2024-01-01"): "1",
        ("t", "=", "2024-01-01 00:00:00"): "2",
        ("t", "=", midnight): "2",
        ("t", "in", (new_year, midnight + dt.timedelta(hours=1))): "23",
        ("l", "=", new_year): "2",
        ("l", "<=", midnight): "12",
        ("l", ">=", new_year.date()): "23",
        ("d", ">=", new_year): "23",
        ("d", ">", new_year - dt.timedelta(hours=1)): "23",
        ("d", "=", midnight): "23",
        ("d", "<", midnight): "1",
        ("d", "=", "2024-01-01"): "23",
    }
    scan = HudiTable.for_path(str(table.root)).scan(columns=["id"])
    for term, ids in found.items():
        got = sorted(row[0] for row in scan.filter([term]).to_spark(far_apart).collect())
        assert got == [f"{p}{i}" for p in "ab" for i in ids], term
    for term in (("t", ">", 5), ("d", "=", "soon"), ("d", ">", "2024-01-01 00:00:01")):
        with pytest.raises(QueryError, match="cannot be compared"):
            scan.filter([term, ("p", "=", "nowhere")]).to_spark(far_apart)
    assert sorted(scan.filter([("t", "=", midnight.replace(tzinfo=None))]).to_arrow()["id"].to_pylist()) == ["a2", "b2"]


def test_zones_of_sessions(spark: SparkSession) -> None:
    offsets = ("GMT+8", "UTC-3", "-03:30", "+5:30", "+5", "+0545", "+05:45:30")
    short = ("Z", "UT", "EST", "IST", "JST", "BST", "ECT", "PST", "CNT")
    try:
        for name in ("UTC", "GMT", "Asia/Tokyo", *offsets, *short):
            spark.conf.set("spark.sql.session.timeZone", name)
            for noon in (dt.datetime(2024, 1, 1, 12), dt.datetime(2024, 7, 1, 12)):
                moment = spark.sql(f"SELECT unix_seconds(TIMESTAMP_LTZ'{noon}')").first()[0]
                assert int(noon.replace(tzinfo=session_zone(spark)).timestamp()) == moment, name
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize(
    ("value", "table_type"), each_choice(["c:\\new", "a:[b]", "{a:b,c}*?"], ["COPY_ON_WRITE", "MERGE_ON_READ"])
)
def test_colons_and_glob_characters(spark: SparkSession, tmp_path: Path, table_type: str, value: str) -> None:
    """A path with a colon that is taken for a glob fails in Hadoop, and with it every read of the table."""
    path = str(tmp_path / "t")
    schema = "id string, day string, part string, ts long, v string"
    given = options("upsert", hoodie__datasource__write__table__type=table_type)
    given["hoodie.datasource.write.partitionpath.field"] = "day,part"  # no colon may be in the first level
    for v in ("first", "second"):
        rows = spark.createDataFrame([("1", "monday", value, 1, v), ("2", "monday", "other", 1, v)], schema)
        write(rows, path, given)
    written = {"id": "1", "part": value, "v": "second"}
    scan = HudiTable.for_path(path).scan([("part", "=", value)], ["id", "part", "v"])
    assert scan.to_arrow().to_pylist() == [written]
    assert to_arrow(scan.to_spark(spark)).to_pylist() == [written]
    assert HudiTable.for_path(path).scan().to_spark(spark).count() == 2
