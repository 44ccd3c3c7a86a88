"""Merge-on-read tables that are read again: one scan of Spark's over base files and cached merged log rows."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.config import Options
from pyhudi.errors import ConfigError
from pyhudi.spark.read.merge_on_read import merged_log_cache
from pyhudi.timeline.instant import Action
from pyhudi.transaction.locks.lock_holder import Holder
from pyhudi.transaction.locks.lock_provider import writer_name
from tests.cases import seldom
from tests.rows import assert_same_rows
from tests.spark.read.hand_made import EVENT_TIME, HIVE, MOR, SCHEMA, load, make, row, values
from tests.spark_arrow import to_arrow
from tests.tables import HandMadeTable, at

FOLDER = "pyhudi.read.log.cache.folder"


def plan_text(frame) -> str:
    return frame._jdf.queryExecution().executedPlan().toString()


def scans(frame) -> int:
    """Scans of rows with all columns of the table; that of the replaced rows has others."""
    return sum("FileScan" in line and "_hoodie_record_key" in line for line in plan_text(frame).splitlines())


def is_single(frame) -> bool:
    text = plan_text(frame)
    return scans(frame) == 1 and "Union" not in text and "Python" not in text and "MapInArrow" not in text


def check(spark, table: HandMadeTable, *, single: bool = True, **options: str) -> pa.Table:
    """The rows are those of the local reader, and the second time they come from one scan if ``single``."""
    local = HudiTable.for_path(str(table.root)).scan(as_of=options.get("as.of.instant")).to_arrow()
    first = load(spark, table, **options)
    assert not is_single(first)
    assert_same_rows(to_arrow(first), local)
    frame = load(spark, table, **options)
    assert is_single(frame) is single
    found = to_arrow(frame)
    assert_same_rows(found, local)
    assert found.column_names == local.column_names
    return found


@pytest.mark.parametrize(
    ("version", "positions", "properties"),
    [
        (9, True, MOR),
        seldom((9, False, {**MOR, **HIVE})),
        (6, False, {**EVENT_TIME, **HIVE}),
        seldom((8, True, EVENT_TIME)),
        seldom((9, False, EVENT_TIME)),
    ],
)
def test_updates_inserts_and_deletes(spark, tmp_path, version, positions, properties):
    table = make(tmp_path, version, properties)
    prefix = "p=" if HIVE.items() <= properties.items() else ""
    f1, f2 = (f"{prefix}a", "f1"), (f"{prefix}b", "f2")
    how = {"base": 10, "positions": positions}
    table.log(20, {f1: [row("k1", 11, "log"), row("k4", 12, "log")]}, deletes={f1: ["k0"]}, **how)
    new = [] if positions else [row("new", 1, "log"), row("k0", 3, "back")]
    later = [row("k1", 12, "later"), row("k4", 9, "late"), *new]
    table.log(30, {f1: later, f2: [row("m0", 10, "tie", "b")]}, deletes={f1: ["k5"]}, data_format="parquet", **how)
    found = check(spark, table)
    assert "later" in found["w"].to_pylist()
    check(spark, table, **{"as.of.instant": at(20)})
    frame = load(spark, table)
    assert values(frame.where("id = 'k1'"), "p", "w") == [("a", "later")]
    assert values(frame.where("p = 'b' and v >= 10"), "id") == [("m0",), ("m1",), ("m2",)]
    assert values(frame.where("id = 'n1'").where("p = 'a'"), "w") == [("base",)]
    assert frame.count() == found.num_rows
    read = plan_text(frame.where("p = 'b' and v > 10").select("id"))
    assert "PushedFilters: [IsNotNull(v), GreaterThan(v,10)]" in read
    assert "PartitionFilters: [isnotnull(p" in read


def test_partial_updates_and_files_of_other_types(spark, tmp_path):
    """Rows are merged of several versions, and a base file has narrower types, so it is a scan of its own."""
    table = make(tmp_path)
    table.log(20, {("a", "f1"): [row("k1", 1, "log")]}, base=10, columns=["id", "w"])
    assert "log" in check(spark, table)["w"].to_pylist()


def test_tables_without_partitions_and_slices_without_base_file(spark, tmp_path):
    table = HandMadeTable(tmp_path / "t", 9, partition_fields="", schema=SCHEMA, properties=dict(MOR))
    table.write(10, {("", "f1"): [row(f"k{i}", i) for i in range(200)]}, action=Action.DELTA_COMMIT)
    table.log(20, {("", "f1"): [row(f"k{i}", i, "log") for i in range(0, 200, 3)]}, base=10)
    table.log(30, {("", "f2"): [row("only", 1, "log")]})
    assert check(spark, table).num_rows == 201
    # a new snapshot merges only the slice that has changed
    cache = merged_log_cache.merged_log_cache(spark, table.client().storage, Options.parse({}))
    assert cache is not None
    before = len(cache)
    table.log(40, {("", "f2"): [row("more", 1, "log")]})
    assert check(spark, table).num_rows == 202
    assert len(cache) == before + 1


def test_logs_without_rows(spark, tmp_path):
    table = make(tmp_path)
    table.log(20, {}, deletes={("a", "f1"): ["k0", "k1"]}, base=10)
    assert not {"k0", "k1"} & set(check(spark, table)["id"].to_pylist())


def test_a_snapshot_that_is_loaded_again(spark, tmp_path):
    """The scan is that of the load before, its columns are not."""
    table = make(tmp_path)
    table.log(20, {("a", "f1"): [row("k1", 11, "log")]}, base=10)
    found = check(spark, table)
    one, other = load(spark, table), load(spark, table)
    assert is_single(other)
    assert_same_rows(to_arrow(other), found)
    later = one.join(other, (one.id == other.id) & (one.v > other.v))
    assert later.count() == 0
    assert one.join(other, one.id == other.id).where(one.w == "log").select(other.id).collect() == [("k1",)]
    assert other.schema == one.schema
    table.log(30, {("a", "f1"): [row("k1", 12, "new")]}, base=10)
    load(spark, table)
    assert values(load(spark, table).where("id = 'k1'"), "w") == [("new",)]
    assert values(other.where("id = 'k1'"), "w") == [("log",)]


def test_folders_of_the_user(spark, tmp_path):
    table = make(tmp_path / "t")
    table.log(20, {("a", "f1"): [row("k1", 11, "log")]}, base=10)
    check(spark, table, **{FOLDER: str(tmp_path / "cache")})
    assert list((tmp_path / "cache").rglob("*-rows.parquet"))
    table.log(30, {("a", "f1"): [row("k1", 12, "log")]}, base=10)
    with pytest.raises(ConfigError, match=r"pyhudi\.read\.log\.cache\.folder=.*env=prod.* another folder"):
        load(spark, table, **{FOLDER: str(tmp_path / "env=prod")})


@pytest.mark.parametrize(
    "options",
    [{"pyhudi.read.log.cache.size": "0"}, {"pyhudi.read.log.cache.max.log.bytes": "10"}],
    ids=["off", "large"],
)
def test_logs_that_are_not_cached(spark, tmp_path, options):
    table = make(tmp_path)
    table.log(20, {("a", "f1"): [row("k1", 11, "log")]}, base=10)
    check(spark, table, single=False, **options)


def test_files_of_the_cache_that_somebody_removes(spark, tmp_path):
    table = make(tmp_path / "t")
    table.log(20, {("a", "f1"): [row("k1", 11, "log")]}, base=10)
    options = {FOLDER: str(tmp_path / "cache")}
    found = check(spark, table, **options)
    shutil.rmtree(tmp_path / "cache")
    frame = load(spark, table, **options)
    assert is_single(frame)
    assert_same_rows(to_arrow(frame), found)


def test_folders_of_killed_processes_are_removed(tmp_path):
    code = "from pyhudi.transaction.locks.lock_provider import writer_name; print(writer_name())"
    dead = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    here = Holder.parse(dead)
    elsewhere = dead.replace(here.kernel, f"{here.kernel}1")
    owners = {"dead": dead, "mine": writer_name(), "container": elsewhere, "unknown": None}
    for name, owner in owners.items():
        (tmp_path / f"pyhudi-log-cache-{name}").mkdir()
        if owner is not None:
            (tmp_path / f"pyhudi-log-cache-{name}" / ".owner").write_text(owner)
    merged_log_cache.remove_abandoned(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"pyhudi-log-cache-{name}" for name in owners if name != "dead"
    }


@pytest.mark.slow
def test_nan_and_negative_zeros_in_cached_log_rows(spark, tmp_path):
    """Spark leaves out row groups by their bounds, which lack NaN, and by dictionaries, in which -0.0 is not 0.0."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }
    table = HudiTable.create(str(tmp_path / "t"), options)
    columns = "id int, x double, s struct<f:float>"
    table.upsert(spark.createDataFrame([(i, 1.0, (1.0,)) for i in range(4)], columns))
    table.upsert(spark.createDataFrame([(0, -0.0, (-0.0,)), (1, float("nan"), (float("nan"),))], columns))
    asked = {"x = 0": [0], "x > 5": [1], "isnan(x)": [1], "x <= 0": [0], "s.f = 0": [0], "s.f > 5": [1], "x < 0": []}
    for _ in range(3):
        frame = table.scan().to_spark(spark)
        found = {where: [row.id for row in frame.where(where).select("id").collect()] for where in asked}
        assert found == asked
    assert is_single(table.scan().to_spark(spark))
