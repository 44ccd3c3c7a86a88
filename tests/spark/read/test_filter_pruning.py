"""Filters of loaded DataFrames and of SQL leave out files by the table's indexes, and no rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi import HudiTable
from pyhudi.read.filters.column_text import condition_text
from pyhudi.spark.write.dataframe_writer import write
from tests.cases import seldom
from tests.spark.model import frame, options

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())])


@pytest.fixture(scope="module")
def path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of four files in two partitions; keys k000 … k039, ten in each file; ts are their numbers."""
    found = str(tmp_path_factory.mktemp("pruned") / "t")
    for begin in range(0, 40, 10):
        rows = [(f"k{n:03d}", f"p{n // 20}", n, f" v {n}") for n in range(begin, begin + 10)]
        given = {**options("bulk_insert"), "hoodie.metadata.index.column.stats.enable": "true"}
        write(frame(spark, rows).coalesce(1), found, given)
    return found


def files_and_rows(found: DataFrame) -> tuple[int, int]:
    """The files that a query opens, by the numbers of its scans, and the rows that it returns."""
    rows = len(found.collect())
    plan = found._jdf.queryExecution().executedPlan()
    text, total = plan.toString(), 0
    assert "Scan" in text or "LocalTable" in text
    for scan in _scans(plan):
        total += int(scan.metrics().apply("numFiles").value())
    return total, rows


def _scans(plan: Any) -> Iterator[Any]:
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        plan = plan.executedPlan()
    if plan.getClass().getSimpleName().endswith("QueryStageExec"):
        plan = plan.plan()
    if plan.getClass().getSimpleName() == "FileSourceScanExec":
        yield plan
    children = plan.children()
    for n in range(children.size()):
        yield from _scans(children.apply(n))


@pytest.fixture
def active(spark: SparkSession) -> Iterator[SparkSession]:
    pyhudi.activate(spark)
    yield spark
    pyhudi.deactivate()


def test_literal_functions(active: SparkSession, tmp_path: Path) -> None:
    """``current_user`` is no text literal."""
    user = active.sql("SELECT current_user()").collect()[0][0]
    path = str(tmp_path / "t")
    for name in (user, "other"):
        write(frame(active, [(name, "p", 1, "x")]).coalesce(1), path, options("bulk_insert"))
    loaded = active.read.format("hudi").load(path)
    assert [row["id"] for row in loaded.where(sf.expr("id = current_user")).collect()] == [user]
    assert [row["id"] for row in loaded.where(sf.col("current_user") == sf.col("id")).collect()] == [user]
    assert files_and_rows(loaded.where(sf.col("id") == "other")) == (1, 1)


Where = Callable[[DataFrame], DataFrame]
CASES: list[tuple[Where, int | None, int]] = [
    (lambda df: df.where("id = 'k005'"), 1, 1),
    (lambda df: df.filter("ts BETWEEN 8 AND 12").where("v <> ''"), 2, 5),
    (lambda df: df.where("ts >= 20 AND length(v) > 0").where(sf.col("ts") < 25), 1, 5),
    (lambda df: df.where(sf.col("id") == "k021"), 1, 1),
    (lambda df: df.where((sf.col("ts") > 8) & (sf.col("ts") <= 10)), 2, 2),
    (lambda df: df.where((sf.col("ts") < 1) | (sf.col("ts") == 39)), 2, 2),
    (lambda df: df.where(condition="ts = 3"), 1, 1),
    (lambda df: df.where(df.ts == 3), 1, 1),
    (lambda df: df.select("id", "ts").drop("ts").where("id = 'k005'"), 1, 1),
    (lambda df: df.select(["id", "ts"]).where("ts < 9").select("*").where("id = 'k005'"), 1, 1),
    # nothing is known of these
    (lambda df: df.select(sf.col("v").alias("id")).where("id = ' v 5'"), 4, 1),
    (lambda df: df.select("id", sf.lit(1).alias("ts")).where("ts = 1"), 4, 40),
    (lambda df: df.where(sf.col("v") == " v 7"), None, 1),
    (lambda df: df.where(sf.col("id").isin("k001", "k030")), 4, 2),
    (lambda df: df.where(sf.upper("id") == "K005"), 4, 1),
    (lambda df: df.where("upper(id) = 'K005' OR ts = 39"), 4, 2),
    # columns of the DataFrame before
    (lambda df: df.where("ts = 3").select(df.v).where(df.ts == 3), 1, 1),
    (lambda df: df.where("ts = 3").join(df.where("ts = 4").select("part"), "part"), 2, 1),
    (lambda df: df.where("ts = 77"), 0, 0),
]


@pytest.mark.parametrize(("where", "files", "rows"), CASES)
def test_loaded_frames(active: SparkSession, path: str, where: Where, files: int | None, rows: int) -> None:
    if files is None:  # only where Columns print texts with quotes
        files = 1 if "'" in str(sf.col("v") == " v")[len("Column<'") : -len("'>")] else 4
    found = where(active.read.format("hudi").load(path))
    assert files_and_rows(found) == (files, rows)


@pytest.mark.slow
def test_many_alternatives(path: str) -> None:
    """Spark would overflow its stack by a chain of so many."""
    alternatives = [[("v", ">", f" v {n:04d}"), ("ts", "=", n)] for n in range(3, 2000)]
    found = HudiTable.for_path(path).scan(filter=alternatives).to_spark()
    assert sorted(row.ts for row in found.select("ts").collect()) == list(range(3, 40))


def test_snapshot_of_the_load(active: SparkSession, tmp_path: Path) -> None:
    where = str(tmp_path / "t")
    write(frame(active, [("a", "p", 1, "x")]), where, options("upsert"))
    loaded = active.read.format("hudi").load(where)
    # its metadata table is compacted, so that it cannot tell of the first snapshot any more
    later = {**options("upsert"), "hoodie.metadata.compact.max.delta.commits": "1"}
    write(frame(active, [("a", "p", 2, "y"), ("b", "p", 2, "y")]), where, later)
    assert [row["v"] for row in loaded.where("id >= 'a'").collect()] == ["x"]
    assert [row["v"] for row in loaded.where("id = 'a'").collect()] == ["x"]
    with pytest.raises(Exception, match="nowhere"):
        loaded.where("nowhere = 1")


@pytest.mark.parametrize(
    ("condition", "files", "rows"),
    [
        ("WHERE id = 'k005'", 1, 1),
        ("AS a WHERE a.ts IN (3, 33)", 2, 2),
        ("WHERE ts < 10 OR ts > 38", 2, 11),
        ("AS a JOIN hudi_pruned AS b ON a.id = b.id WHERE a.ts = 3 AND b.ts < 10", 2, 1),
        ("AS a LEFT JOIN hudi_pruned AS b ON a.ts = b.ts + 30 WHERE a.ts >= 30", 5, 10),
        ("WHERE ts IN (SELECT max(ts) FROM hudi_pruned WHERE ts < 10)", 5, 1),
        ("WHERE upper(id) = 'K005'", 4, 1),
    ],
)
def test_sql(active: SparkSession, path: str, condition: str, files: int, rows: int) -> None:
    active.sql(f"CREATE TABLE IF NOT EXISTS hudi_pruned USING hudi LOCATION '{path}'")
    try:
        text = f"SELECT {'a.' if 'AS a' in condition else ''}* FROM hudi_pruned {condition}"
        found = active.sql(text)
        other = active.sql("SELECT * FROM hudi_pruned WHERE ts = 17")  # of the same place in a query
        assert files_and_rows(found) == (files, rows)
        assert [row["ts"] for row in other.collect()] == [17]
    finally:
        active.sql("DROP TABLE hudi_pruned")


@pytest.mark.parametrize(
    ("query", "files", "rows"),
    [
        ("hudi_pruned a JOIN hudi_dim d ON a.id = d.k WHERE d.name = 'x'", 3, 2),  # of two files, and that of hudi_dim
        seldom(("hudi_dim d, hudi_pruned a WHERE d.n = a.ts AND d.n < 10", 2, 1)),
        ("hudi_pruned a WHERE ts IN (SELECT n FROM hudi_dim WHERE name = 'y')", 2, 1),
        seldom(
            ("hudi_pruned a WHERE ts IN (SELECT n FROM hudi_dim WHERE id = 'k005')", None, 1)
        ),  # the id is that of a
        ("hudi_pruned a LEFT JOIN hudi_dim d ON a.id = d.k", 5, 40),
        ("hudi_pruned a JOIN hudi_dim d ON a.ts = d.m", 5, 3),  # other types
        seldom(("hudi_pruned a JOIN hudi_dim d ON a.id = d.k JOIN hudi_pruned b ON a.id = b.id", None, 3)),
    ],
)
def test_joins_with_small_tables(active: SparkSession, path: str, query: str, files: int | None, rows: int) -> None:
    least = "pyhudi.sql.join.pruning.min.bytes"
    active.sql(f"CREATE TABLE hudi_pruned USING hudi LOCATION '{path}'")
    active.sql(
        "CREATE TABLE hudi_dim (k STRING, n BIGINT, m INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'k')"
    )
    try:
        active.sql(
            "INSERT INTO hudi_dim VALUES ('k005', 5, 5, 'x'), ('k025', 25, 25, 'x'), ('k039', 39, 39, 'y')"
        ).count()
        text = f"SELECT a.* FROM {query}"
        expected = sorted(active.sql(text).collect())
        active.conf.set(least, "0")
        found = active.sql(text)
        assert files is None or files_and_rows(found)[0] == files
        assert sorted(found.collect()) == expected
        assert len(expected) == rows
        if files == 3:
            assert "(2 paths)" in active.sql(f"EXPLAIN {text}").collect()[0][0]
    finally:
        active.conf.unset(least)
        active.sql("DROP TABLE hudi_pruned")
        active.sql("DROP TABLE hudi_dim PURGE")


def test_views(active: SparkSession, path: str) -> None:
    active.sql(f"CREATE TABLE hudi_seen USING hudi LOCATION '{path}'")
    try:
        active.sql("CREATE OR REPLACE TEMP VIEW low AS SELECT * FROM hudi_seen WHERE ts < 10")
        found = active.sql("SELECT low.ts FROM low JOIN hudi_seen AS s ON low.ts = s.ts - 30 WHERE s.ts > 35")
        assert sorted(row[0] for row in found.collect()) == [6, 7, 8, 9]
        assert active.sql("SELECT * FROM low").count() == 10
    finally:
        active.sql("DROP TABLE hudi_seen")
        active.catalog.dropTempView("low")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: sf.col("ts") == 5, "`ts` = 5"),
        (lambda: sf.col("id") >= "abc", "`id` >= 'abc'"),
        (
            lambda: (sf.col("ts") > -1) & ((sf.col("id") == "a") | (sf.col("id") == "b")),
            "((`ts` > -1) AND (((`id` = 'a') OR (`id` = 'b'))))",
        ),
        # what could be something else than it looks like
        (lambda: sf.col("id") == "5", None),
        (lambda: sf.col("id") == 5, None),
        (lambda: sf.col("id") == "v", None),
        (lambda: sf.col("id") == "V", None),
        (lambda: sf.col("id") == " abc", None),
        (lambda: sf.col("id") == "abc ", None),
        (lambda: sf.col("id") == "a b", None),
        (lambda: sf.col("id") == "x) OR (ts = 5", None),
        (lambda: sf.col("id") == "x)) OR ((ts = 5", None),
        (lambda: sf.col("id") == "null", None),
        (lambda: sf.col("id") == sf.lit(None), None),
        (lambda: sf.col("ts") == 5.0, None),
        (lambda: sf.col("nowhere") == 5, None),
        (lambda: ~(sf.col("ts") == 5), None),
    ],
)
@pytest.mark.usefixtures("spark")
def test_column_texts(make: Callable[[], Any], expected: str | None) -> None:
    if str(sf.col("id") == "a") == "Column<'=(id, 'a')'>":  # texts have quotes in newer releases
        expected = QUOTED.get(str(make()), expected)
    assert condition_text(make(), SCHEMA, is_name) == expected


QUOTED = {
    f"Column<'=(id, '{text}')'>": f"`id` = '{text}'"
    for text in ("5", "v", "V", " abc", "abc ", "a b", "x) OR (ts = 5", "x)) OR ((ts = 5", "null")
}


def is_name(word: str) -> bool:
    return word == "current_date"


class Printed:
    """What prints as a Column."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return f"Column<'{self.text}'>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("=(ts, 5)", "`ts` = 5"),
        ("<=>(id, 'abc')", "`id` <=> 'abc'"),
        (
            "and(>(ts, -1), or(=(id, 'a, b'), =(id, 'c)')))",
            "((`ts` > -1) AND (((`id` = 'a, b') OR (`id` = 'c)'))))",
        ),
        ("=(id, abc)", "`id` = 'abc'"),
        ("=(id, current_date)", None),
        ("=(ts, 'abc')", None),
        ("=(ts, v)", None),
        ("=(id, 'it's')", None),
        ("=(id, 'a\\')", None),
        ("=(id, '${x}')", None),
        ("=(ts, 5.0)", None),
        ("=(upper(id), 'K')", None),
        ("!(=(ts, 5))", None),
        ("and(=(ts, 5), isnull(id))", None),
        ("and(=(ts, 5), =(ts, 6)", None),
        ("and(=(ts, 5), =(ts, 6)))", None),
        ("in(id, 'a', 'b')", None),
    ],
)
def test_column_texts_of_newer_releases(text: str, expected: str | None) -> None:
    assert condition_text(Printed(text), SCHEMA, is_name) == expected


def test_columns_named_like_literals() -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("5", pa.int64()), ("'a'", pa.string())])
    assert condition_text(Printed("=(ts, 5)"), schema, is_name) is None
    assert condition_text(Printed("=(id, 'a')"), schema, is_name) is None
    assert condition_text(Printed("=(id, 'b')"), schema, is_name) == "`id` = 'b'"


def test_deep_conditions() -> None:
    text = "(ts = 0)"
    for number in range(2000):
        text = f"({text} OR (ts = {number}))"
    assert condition_text(Printed(text), SCHEMA, lambda _: False) is None
