"""Timestamps of milliseconds and times of day, which Avro has and Spark has not."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi import HudiTable
from pyhudi.config import Options
from pyhudi.schema.converters.spark_arrow import as_spark_arrow
from pyhudi.schema.table_types import with_changed_children
from pyhudi.services.clustering.clustering_runner import run_pending_clusterings
from pyhudi.spark.services.spark_clustering import SparkClusteringRunner
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.instant import Action
from tests.cases import each_choice
from tests.rows import assert_same_rows
from tests.spark.read.hand_made import MOR
from tests.spark_arrow import to_arrow
from tests.tables import HandMadeTable
from tests.unit.services.test_bootstrap import options_for

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("at", pa.timestamp("ms", "UTC")),
        ("local", pa.timestamp("ms")),
        ("s", pa.struct([("at", pa.timestamp("ms", "UTC")), ("t", pa.time32("ms"))])),
        ("l", pa.list_(pa.field("element", pa.timestamp("ms")))),
        ("m", pa.map_(pa.string(), pa.time64("us"))),
        ("t", pa.time32("ms")),
        ("u", pa.time64("us")),
    ]
)
AT = dt.datetime(2024, 1, 2, 3, 4, 5, 678000)
TYPES = [pytest.param({}, id="copy on write"), pytest.param(MOR, id="merge on read")]
ARROW = {"pyhudi.read.engine": "arrow"}


@pytest.fixture(autouse=True)
def _active(spark: SparkSession) -> Iterator[None]:
    pyhudi.activate(spark)
    yield
    pyhudi.deactivate()


def row(key: str, day: int) -> dict[str, Any]:
    local = AT + dt.timedelta(day)
    at, time = local.replace(tzinfo=dt.UTC), dt.time(day, 2, 3, 4000)
    s = {"at": at, "t": time}
    m = [("a", dt.time(1, 2, 3, day))]
    more = {"at": at, "local": local, "s": s, "l": [local, None], "m": m, "t": time, "u": dt.time(0, 0, 0, day)}
    return {"id": key, "p": "a", **(more if day else dict.fromkeys(more))}


def numbers(day: int) -> tuple[int | None, ...]:
    """Return the numbers of a row of that day, as `rows_of` returns them."""
    if not day:
        return (None,) * 5
    at = (19724 + day) * 86_400_000 + 11_045_678
    return at, at, day * 3_600_000 + 123_004, day, 3_723_000_000 + day


def rows_of(spark: SparkSession, table: Path, **options: str) -> dict[str, tuple[int | None, ...]]:
    """Return timestamps and times of the rows by key; all values are those that are read without Spark."""
    frame = spark.read.format("hudi").options(**options).load(str(table))
    local = HudiTable.for_path(str(table)).scan().to_arrow()
    assert local.select(SCHEMA.names).schema.types == SCHEMA.types
    assert_same_rows(to_arrow(frame), pa.Table.from_batches(map(as_spark_arrow, local.to_batches())))
    found = frame.selectExpr("id", "unix_millis(at)", "unix_millis(s.at)", "t", "u", "m['a']").collect()
    return {key: tuple(values) for key, *values in found}


def written(path: Path, properties: dict[str, str]) -> HandMadeTable:
    table = HandMadeTable(path / "t", schema=SCHEMA, properties=properties)
    files = {("a", "f1"): [row("k0", 0), row("k1", 1), row("k2", 2)], ("a", "f2"): [row("n3", 3)]}
    table.write(10, files, action=Action.DELTA_COMMIT if properties else Action.COMMIT)
    return table


@pytest.mark.parametrize("data_format", ["avro", "parquet"])
def test_merge_on_read(spark: SparkSession, tmp_path: Path, data_format: str) -> None:
    table = written(tmp_path, MOR)
    path = table.root
    new = [row("k1", 4), row("k2", 0), row("k4", 5)]
    table.log(20, {("a", "f1"): new}, deletes={("a", "f1"): ["k0"]}, base=10, data_format=data_format)
    expected = {"k1": numbers(4), "k2": numbers(0), "k4": numbers(5), "n3": numbers(3)}
    assert rows_of(spark, path) == expected
    assert rows_of(spark, path) == expected  # from the log cache, if that can be
    assert rows_of(spark, path, **ARROW) == expected
    assert streamed(spark, path, tmp_path) == expected

    opened = HudiTable.for_path(str(path))
    opened.update({"u": "u + 1"}, where="id in ('k1', 'n3')")
    expected |= {
        key: (*values[:3], values[3] + 1, values[4]) for key, values in expected.items() if key in ("k1", "n3")
    }
    assert rows_of(spark, path) == expected
    opened.services.compact()
    assert rows_of(spark, path) == expected
    newest = max(path.glob("a/*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    assert types_in(newest) == SCHEMA.types


def streamed(spark: SparkSession, table: Path, folder: Path) -> dict[str, tuple[int | None, ...]]:
    """Return the rows of a stream as `rows_of` does."""
    rows = spark.readStream.format("hudi").load(str(table))
    rows = rows.selectExpr("id", "unix_millis(at)", "unix_millis(s.at)", "t", "u", "m['a']")
    writer = rows.toDF("id", *"abcde").writeStream.format("parquet").option("checkpointLocation", str(folder / "cp"))
    assert writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination(120)
    return {key: tuple(values) for key, *values in spark.read.parquet(str(folder / "out")).collect()}


def test_copy_on_write(spark: SparkSession, tmp_path: Path) -> None:
    path = written(tmp_path, {}).root
    expected = {"k0": numbers(0), "k1": numbers(1), "k2": numbers(2), "n3": numbers(3)}
    assert rows_of(spark, path) == expected
    assert rows_of(spark, path, **ARROW) == expected
    opened = HudiTable.for_path(str(path))
    opened.update({"at": "timestamp_millis(5)"}, where="id = 'k1'")
    expected["k1"] = (5, *expected["k1"][1:])
    assert rows_of(spark, path) == expected


def test_clustering(spark: SparkSession, tmp_path: Path) -> None:
    """Spark sorts rows by timestamps, log files merged."""
    table = written(tmp_path, MOR)
    path = str(table.root)
    table.log(20, {("a", "f1"): [row("k1", 4)]}, base=10)
    sorted_by_time = {"hoodie.clustering.plan.strategy.sort.columns": "s.at,t"}
    HudiTable.for_path(path).services.schedule_clustering(sorted_by_time)
    opts = Options.parse(sorted_by_time)
    result = run_pending_clusterings(TableMetaClient.open(path), opts, SparkClusteringRunner(spark, sorted_in_task=0))
    expected = {"k0": numbers(0), "k1": numbers(4), "k2": numbers(2), "n3": numbers(3)}
    assert rows_of(spark, table.root) == expected
    for name in result.stats["path"].to_pylist():
        assert types_in(table.root / name) == SCHEMA.types


@pytest.mark.parametrize("regex", [".*", "nothing"])
def test_bootstrap(spark: SparkSession, tmp_path: Path, regex: str) -> None:
    source, path = tmp_path / "source", tmp_path / "table"
    (source / "a").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([row("k0", 0), row("k1", 1)], SCHEMA), source / "a" / "1.parquet")
    options = {
        **options_for(source),
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "at",
        "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.BootstrapRegexModeSelector",
        "hoodie.bootstrap.mode.selector.regex": regex,
    }
    pyhudi.bootstrap_table(path, options, spark=spark)
    expected = {"k0": numbers(0), "k1": numbers(1)}
    assert rows_of(spark, path) == expected
    assert rows_of(spark, path, **ARROW) == expected


def types_in(file: Path) -> list[pa.DataType]:
    schema = pq.read_schema(file)
    return [schema.field(name).type for name in SCHEMA.names]


# --- files with other types than the table has -----------------------------------------------------------------------


def held_as(unit: str | None) -> pa.Schema:
    """The columns with timestamps of another unit; None: numbers of milliseconds."""

    def other(kind: pa.DataType) -> pa.DataType:
        if not pa.types.is_timestamp(kind):
            return with_changed_children(kind, lambda child: child.with_type(other(child.type)))
        return pa.int64() if unit is None else pa.timestamp(unit, kind.tz)

    return pa.schema([field.with_type(other(field.type)) for field in SCHEMA])


def stored(value: Any, unit: str | None) -> Any:
    """A value with its timestamps as numbers of milliseconds, or as these numbers of another unit."""
    if isinstance(value, dt.datetime):
        epoch = dt.datetime(1970, 1, 1, tzinfo=value.tzinfo)
        number = (value - epoch) // dt.timedelta(milliseconds=1)
        return number if unit is None else epoch + dt.timedelta(microseconds=number)
    if isinstance(value, dict):
        return {name: stored(inner, unit) for name, inner in value.items()}
    return [stored(inner, unit) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("properties", "unit"), each_choice(TYPES, ["us", None]))
def test_milliseconds_under_other_types(spark, tmp_path, properties, unit) -> None:
    """Releases before 1.1 wrote timestamp-millis of Avro sources as microseconds, without changing the numbers."""
    table = HandMadeTable(tmp_path / "t", schema=SCHEMA, properties=properties)
    raw = [stored(row(f"k{day}", day), unit) for day in range(4)]
    action = Action.DELTA_COMMIT if properties else Action.COMMIT
    table.write(10, {("a", "f1"): raw[:2], ("a", "f2"): raw[2:3]}, schema=held_as(unit), action=action)
    if properties:
        table.log(20, {("a", "f1"): raw[3:]}, base=10, schema=held_as(unit))
    table.write(30, {("a", "f4"): [row("k4", 4)]}, action=action)
    days = [0, 1, 2, 4, *([3] if properties else [])]
    expected = {f"k{day}": numbers(day) for day in days}
    engines = [{}, ARROW] if properties else [{}, {"pyhudi.read.engine": "spark"}, ARROW]
    for options in engines:
        assert rows_of(spark, table.root, **options) == expected
    frame = spark.read.format("hudi").load(str(table.root))
    found = frame.where(f"at = timestamp_millis({numbers(2)[0]})").select("id").collect()
    assert [key for (key,) in found] == ["k2"]
    opened = HudiTable.for_path(str(table.root))
    opened.update({"u": "u + 1"}, where="id = 'k1'")
    expected["k1"] = (*numbers(1)[:3], 2, numbers(1)[4])
    assert rows_of(spark, table.root) == expected
    if properties:
        opened.services.compact()
        assert rows_of(spark, table.root) == expected
