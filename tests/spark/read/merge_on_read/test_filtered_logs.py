"""Filters of merge-on-read queries on Spark: the rows that meet them, and what is left out by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi import HudiTable
from pyhudi.spark.read.load_table import load_table
from pyhudi.spark.write.dataframe_writer import write
from tests.cases import seldom
from tests.properties import FACTOR
from tests.spark.model import frame, options

COLUMNS = ("id", "part", "ts", "v")
INDEXES = {"plain": {}, "record index": {"hoodie.metadata.record.index.enable": "true"}}
BLOCKS = {"plain": "avro", "record index": "parquet"}
CONDITIONS = [
    "id = 'k005'",
    "id IN ('k003', 'k013', 'k033', 'new1', 'nowhere')",
    "id > 'k012' AND id <= 'k022'",
    "id = 'k005' AND v = 'log'",
    "ts BETWEEN 8 AND 12",
    "ts = 99 AND part = 'p0'",
    "v = 'log' OR id = 'k039'",
    "length(v) > 3 AND id < 'k010'",
    "v IS NULL AND ts < 20",
]


@pytest.fixture(scope="module", params=[seldom(name) if name == "record index" else name for name in INDEXES])
def path(request: Any, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three file groups of keys k000 … k039 with logs of updates, late rows, deletes and a new key; ``ts`` orders."""
    found = str(tmp_path_factory.mktemp("logs") / "t")
    more: dict[str, Any] = {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.compact.inline": "false",
        "hoodie.logfile.data.block.format": BLOCKS[request.param],
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.parquet.small.file.limit": "0",
        **INDEXES[request.param],
    }
    for begin in (0, 15, 30):
        rows = [(f"k{n:03d}", f"p{n // 30}", n, None if n % 5 == 0 else "base") for n in range(begin, begin + 15)]
        write(frame(spark, [r for r in rows if r[0] < "k040"]).coalesce(1), found, {**options("bulk_insert"), **more})
    updates = [("k005", "p0", 50, "log"), ("k009", "p0", 1, "late"), ("k013", "p0", 99, "log"), ("k031", "p1", 40, "x")]
    write(frame(spark, updates), found, {**options("upsert"), **more})
    write(frame(spark, [("k003", "p0", 60, "gone"), ("k033", "p1", 60, "gone")]), found, {**options("delete"), **more})
    write(frame(spark, [("k005", "p0", 51, "again"), ("k016", "p0", 99, None)]), found, {**options("upsert"), **more})
    return found


@pytest.fixture
def active(spark: SparkSession) -> Iterator[SparkSession]:
    pyhudi.activate(spark)
    yield spark
    pyhudi.deactivate()


def rows_of(found: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in found.select(*COLUMNS).collect()), key=str)


def test_rows_of_conditions(active: SparkSession, path: str) -> None:
    """Whatever way a condition comes in, the rows are those of the whole table that meet it."""
    everything = rows_of(load_table(active, path))
    assert len(everything) == 38
    every = active.createDataFrame(everything, "id string, part string, ts long, v string")
    ways: list[Callable[[str], DataFrame]] = [
        lambda condition: active.read.format("hudi").load(path).where(condition),
        lambda condition: active.sql(f"SELECT * FROM hudi_filtered WHERE {condition}"),
        lambda condition: HudiTable.for_path(path).scan(condition).to_spark(active),
    ]
    active.sql(f"CREATE TABLE hudi_filtered USING hudi LOCATION '{path}'")
    try:
        for number, condition in enumerate(CONDITIONS):
            expected = rows_of(every.where(condition))
            for way in ways if FACTOR >= 1 else (ways[number % 3], ways[(number + 1) % 3]):  # they take turns
                assert rows_of(way(condition)) == expected, condition
    finally:
        active.sql("DROP TABLE hudi_filtered")


Where = Callable[[DataFrame], DataFrame]
FRAMES: dict[str, tuple[Where, list[tuple[Any, ...]]]] = {
    "columns of before": (lambda df: df.where("id = 'k005'").select(df.v, df["ts"]), [("again", 51)]),
    "a Column": (lambda df: df.where((df.ts == 99) & (df.ts > 50)).select("id"), [("k013",), ("k016",)]),
    "a Column of a key": (lambda df: df.filter(df.id == "k013").select(df.v), [("log",)]),
    "several": (
        lambda df: df.where("ts > 50").where(sf.length(df.id) == 4).where("id < 'k015'").select("id"),
        [("k005",), ("k013",)],
    ),
    "of some columns": (lambda df: df.select("id", "v").where("id = 'k005'").drop("id").select(df.v), [("again",)]),
    "joined": (
        lambda df: (
            df.where("id = 'k005'").alias("a").join(df.where("id = 'k013'").alias("b"), "part").select("a.v", "b.v")
        ),
        [("again", "log")],
    ),
    "nothing": (lambda df: df.where("id = 'k003'").select("v"), []),
    "not cached": (
        lambda df: df.where("id = 'k005'").unionByName(df.where("id = 'k013'")).select("v"),
        [("again",), ("log",)],
    ),
}


@pytest.mark.parametrize("name", list(FRAMES))
def test_columns_of_frames(active: SparkSession, path: str, name: str) -> None:
    where, expected = FRAMES[name]
    assert sorted(tuple(row) for row in where(active.read.format("hudi").load(path)).collect()) == expected


def plan_of(found: DataFrame) -> str:
    return str(found._jdf.queryExecution().optimizedPlan().toString())


def test_skipped_slices(active: SparkSession, path: str) -> None:
    """By a key one job looks into one slice; the frame that was loaded is not read at all."""
    found = plan_of(active.read.format("hudi").load(path).where("id = 'k005'"))
    assert "Union" not in found
    assert "Relation" not in found.replace("LocalRelation", "")
    assert found.count("MapInArrow") == 1
    plan = HudiTable.for_path(path).scan("id = 'k005'").plan()
    assert plan.tasks.num_rows < 3  # of log files with deletes alone there are no statistics
    assert plan.key_rows.keys == ("k005",)


def test_cached_frames(active: SparkSession, path: str) -> None:
    loaded = active.read.format("hudi").load(path).cache()
    try:
        assert "InMemoryRelation" in str(loaded.where("id = 'k005'")._jdf.queryExecution().withCachedData().toString())
    finally:
        loaded.unpersist()


@pytest.mark.parametrize("engine", ["auto", "arrow", "spark"])
def test_engines(active: SparkSession, path: str, engine: str) -> None:
    found = active.read.format("hudi").option("pyhudi.read.engine", engine).load(path)
    assert [row["v"] for row in found.where("id = 'k005'").collect()] == ["again"]


def test_snapshot_of_the_load(active: SparkSession, tmp_path: Path) -> None:
    where = str(tmp_path / "t")
    more = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
    for ts, v in ((1, "a"), (2, "b")):
        write(frame(active, [("k", "p", ts, v)]), where, {**options("upsert"), **more})
    loaded = active.read.format("hudi").load(where)
    write(frame(active, [("k", "p", 3, "c")]), where, {**options("upsert"), **more})
    assert [row["v"] for row in loaded.where("id = 'k'").collect()] == ["b"]
