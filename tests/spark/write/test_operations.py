"""Every operation, one after the other, against a dict; on every table version."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import ConfigError, SchemaMismatchError
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.table import partition_ttl
from tests.cases import seldom
from tests.spark.model import Steps, batch, frame, options, rows_of


@pytest.mark.parametrize("version", [seldom(6), seldom(8), 9])
def test_all_operations_one_after_the_other(spark: SparkSession, tmp_path: Path, version: int) -> None:
    more = {"hoodie__write__table__version": version}
    if version == 6:
        more["hoodie__datasource__write__payload__class"] = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    step = Steps(spark, tmp_path / "table", lambda operation, **extra: options(operation, **more, **extra))
    step("bulk_insert", batch(0, 60, 10, "bulk"))
    # older, equal and newer versions, a key twice in the batch, new keys, a new partition
    rows = [*batch(0, 10, 9, "old"), *batch(10, 20, 10, "tie"), *batch(20, 30, 11, "new"), *batch(55, 70, 12, "more")]
    rows += [("k021", "p0", 15, "twice, stronger"), ("k021", "p0", 14, "twice"), ("x", "fresh", 1, "first")]
    step("upsert", rows)
    step("insert", batch(100, 110, 1, "inserted"))
    step("delete", [*batch(0, 25, 0, ""), ("nobody", "p1", 0, ""), ("k001", "p2", 0, "")])
    rows = [("a", "p1", 1, "overwritten"), ("b", "other", 1, "overwritten")]
    step("insert_overwrite", rows, drop=("p1", "other"))
    gone = {"hoodie__datasource__write__partitions__to__delete": "*2,other"}
    step("delete_partition", [], drop=("p2", "other"), **gone)
    step("upsert", [("k030", "p0", 99, "after"), ("z", "p2", 1, "again")])
    step("insert_overwrite_table", batch(0, 5, 1, "anew"))


def test_counts_of_a_result(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write(frame(spark, batch(0, 9, 10, "")), path, options("insert"))
    rows = [*batch(0, 3, 9, "loses"), *batch(3, 6, 11, "wins"), *batch(20, 22, 1, "new")]
    result = write(frame(spark, rows), path, options("upsert"))
    assert (result.num_inserts, result.num_updates, result.num_deletes, result.num_rows) == (2, 3, 0, 11)
    result = write(frame(spark, batch(0, 4, 0, "")), path, options("delete"))
    assert (result.num_inserts, result.num_updates, result.num_deletes) == (0, 0, 4)
    assert result.created_table is False


def test_commit_time_ordering_takes_the_last_write(spark: SparkSession, tmp_path: Path) -> None:
    path, mode = str(tmp_path / "table"), {"hoodie__record__merge__mode": "COMMIT_TIME_ORDERING"}
    write(frame(spark, batch(0, 6, 10, "first")), path, options("upsert", **mode))
    write(frame(spark, batch(0, 3, 1, "second")), path, options("upsert", **mode))
    assert {row[3] for row in rows_of(path) if row[0] < "k003"} == {"second"}


def test_version_6_leaves_the_ordering_to_each_write(spark: SparkSession, tmp_path: Path) -> None:
    path, payload = str(tmp_path / "table"), "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    first = options("insert", hoodie__write__table__version=6)
    del first["hoodie.datasource.write.precombine.field"]
    write(frame(spark, batch(0, 2, 10, "first", 1)), path, first)
    rows = [("k000", "p0", 9, "older"), ("k001", "p0", 11, "newer"), ("k001", "p0", 10, "older")]
    write(frame(spark, rows), path, options("upsert", hoodie__datasource__write__payload__class=payload))
    assert rows_of(path) == [("k000", "p0", 10, "first"), ("k001", "p0", 11, "newer")]


def test_soft_deletes(spark: SparkSession, tmp_path: Path) -> None:
    path, schema = str(tmp_path / "table"), "id string, part string, ts long, v string, _hoodie_is_deleted boolean"
    rows = [
        ("a", "p", 10, "1", False),
        ("b", "p", 10, "1", None),
        ("c", "p", 10, "1", True),
        ("d", "p", 10, "1", False),
    ]
    write(spark.createDataFrame(rows, schema), path, options("upsert"))
    assert [row[0] for row in rows_of(path)] == ["a", "b", "d"]
    rows = [("a", "p", 9, "2", True), ("b", "p", 10, "2", True), ("d", "p", 11, "2", True), ("e", "p", 1, "2", True)]
    write(spark.createDataFrame(rows, schema), path, options("upsert"))
    assert [row[0] for row in rows_of(path)] == ["a"], "an older delete loses"


@pytest.mark.parametrize("version", [6, seldom(8), 9])
def test_deletes_by_a_marker(spark: SparkSession, tmp_path: Path, version: int) -> None:
    path = str(tmp_path / "table")
    plain = {
        "hoodie__write__table__version": version,
        "hoodie__datasource__write__payload__class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    }
    marker = {"hoodie__payload__delete__field": "v", "hoodie__payload__delete__marker": "D"}
    # a table whose properties say nothing of the marker, as those of version 6 and of release 1.0 never do
    write(frame(spark, [(k, "p", 10, "") for k in "abc"]), path, options("insert", **plain))
    rows = [("a", "p", 11, "D"), ("b", "p", 9, "D"), ("c", "p", 11, "d"), ("n", "p", 1, "D")]
    write(frame(spark, rows), path, options("upsert", **plain, **marker))
    assert rows_of(path) == [("b", "p", 10, ""), ("c", "p", 11, "d")]


def test_inserts_with_keys_that_are_there(spark: SparkSession, tmp_path: Path) -> None:
    def after(name: str, **more: object) -> list[tuple[str, int]]:
        path = str(tmp_path / name)
        write(frame(spark, [("a", "p", 5, "old"), ("b", "p", 5, "old")]), path, options("insert"))
        rows = [("a", "p", 9, "new"), ("c", "p", 1, "new"), ("c", "p", 2, "new")]
        write(frame(spark, rows), path, options("insert", **more))
        return [(row[0], row[2]) for row in rows_of(path)]

    assert after("kept") == [("a", 5), ("a", 9), ("b", 5), ("c", 1), ("c", 2)]
    assert after("combined", hoodie__combine__before__insert=True) == [("a", 5), ("a", 9), ("b", 5), ("c", 2)]
    assert after("merged", hoodie__merge__allow__duplicate__on__inserts=False)[:2] == [("a", 9), ("b", 5)]
    dropping = {"hoodie__datasource__write__insert__drop__duplicates": True}
    assert after("dropped", **dropping) == [("a", 5), ("b", 5), ("c", 2)]


@pytest.mark.parametrize(("operation", "index"), [("insert", "SIMPLE"), seldom(("bulk_insert", "BUCKET"))])
def test_inserts_are_merged_by_the_rules_of_the_table(
    spark: SparkSession, tmp_path: Path, operation: str, index: str
) -> None:
    path = str(tmp_path / "table")
    more = {"hoodie__index__type": index, "hoodie__merge__allow__duplicate__on__inserts": False}
    write(frame(spark, [("a", "p", 5, "old"), ("b", "p", 5, "old")]), path, options("insert", **more))
    rows = [("a", "p", 4, "older"), ("b", "p", 6, "newer"), ("c", "p", 1, "new")]
    write(frame(spark, rows), path, options(operation, **more))
    assert rows_of(path) == [("a", "p", 5, "old"), ("b", "p", 6, "newer"), ("c", "p", 1, "new")]


def test_small_files_are_filled_and_large_ones_left(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    first = write(frame(spark, batch(0, 4, 1, "", 1)), path, options("insert"))
    second = write(frame(spark, batch(4, 8, 1, "", 1)), path, options("insert"))
    assert second.stats["fileId"].to_pylist() == first.stats["fileId"].to_pylist()
    third = write(frame(spark, batch(8, 12, 1, "", 1)), path, options("insert", hoodie__parquet__small__file__limit=-1))
    assert third.stats["fileId"].to_pylist() != first.stats["fileId"].to_pylist()
    assert len(rows_of(path)) == 12


def test_new_records_are_split_over_files(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    rows = frame(spark, batch(0, 400, 1, "", 1))
    more = {"hoodie__copyonwrite__insert__auto__split": False, "hoodie__copyonwrite__insert__split__size": 100}
    result = write(rows, path, options("insert", **more))
    assert result.num_files == 4
    assert all(60 < n < 140 for n in result.stats["numInserts"].to_pylist())
    assert len(rows_of(path)) == 400


def test_empty_input_makes_an_empty_commit(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    nothing = frame(spark, [])
    write(frame(spark, batch(0, 3, 1, "")), path, options("upsert"))
    before = rows_of(path)
    for operation in ("upsert", "insert", "bulk_insert", "delete", "insert_overwrite"):
        result = write(nothing, path, options(operation))
        assert result.instant is not None
        assert result.num_files == 0
        assert rows_of(path) == before
    no_empty_commit = {"hoodie__allow__empty__commit": False}
    assert write(nothing, path, options("upsert", **no_empty_commit)).instant is None
    nowhere = {"hoodie__datasource__write__partitions__to__delete": "nowhere"}
    with pytest.warns(UserWarning, match="has no partition 'nowhere'; it has 'p0'"):
        assert write(nothing, path, options("delete_partition", **nowhere, **no_empty_commit)).instant is None
    # what takes rows away is not empty, though it writes no file
    gone = {"hoodie__datasource__write__partitions__to__delete": "p0"}
    assert write(nothing, path, options("delete_partition", **gone, **no_empty_commit)).instant is not None
    assert rows_of(path) == before[1:]
    write(nothing, path, options("insert_overwrite_table", **no_empty_commit))
    assert rows_of(path) == []


def test_named_partitions_are_dropped_without_columns(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write(frame(spark, [("a", "p1", 1, "x"), ("b", "p2", 1, "y")]), path, options("upsert"))
    nothing = spark.createDataFrame([], StructType())
    named = {
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "p1",
    }
    write(nothing, path, named)
    assert rows_of(path) == [("b", "p2", 1, "y")]
    for operation in ("delete_partition", "upsert"):
        with pytest.raises(SchemaMismatchError, match="no columns"):
            write(nothing, path, options(operation))


def test_partitions_expire(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "table")
    days = {"hoodie.partition.ttl.strategy.days.retain": "2"}
    write(frame(spark, [("a", "p1", 1, "x"), ("b", "p2", 1, "y")]), path, options("upsert"))
    services = HudiTable.for_path(path).services
    with pytest.raises(ConfigError, match="no partition would ever expire"):
        services.delete_expired_partitions()
    assert services.delete_expired_partitions(days).reason == "no partition has expired: KEEP_BY_TIME, 2 days"
    now = partition_ttl.now_ms()
    monkeypatch.setattr(partition_ttl, "now_ms", lambda: now + 3 * 24 * 3600 * 1000)
    before = HudiTable.for_path(path).latest_instant
    found = services.delete_expired_partitions(
        {**days, "hoodie.partition.ttl.strategy.partition.selected": "p2"}, dry_run=True
    )
    assert found.partitions == ("p2",)
    assert HudiTable.for_path(path).latest_instant == before
    # options of services after writes do not count, because none follows
    others = {"hoodie.index.type": "BUCKET", "hoodie.clustering.inline": "true"}
    first = {**days, **others, "hoodie.partition.ttl.strategy.max.delete.partitions": 1}
    done = services.delete_expired_partitions(first)
    assert (done.partitions, done.instant) == (("p1",), HudiTable.for_path(path).latest_instant)
    assert [row[0] for row in rows_of(path)] == ["b"]
    # after a write: what it has written itself is old by this clock, too
    inline = {**days, "hoodie.partition.ttl.inline": "true"}
    off = {**inline, "hoodie.table.services.enabled": "false"}
    write(frame(spark, [("c", "p3", 1, "z")]), path, {**options("upsert"), **off})
    assert [row[0] for row in rows_of(path)] == ["b", "c"]
    write(frame(spark, [("c", "p3", 1, "z")]), path, {**options("upsert"), **inline})
    assert rows_of(path) == []
    last = HudiTable.for_path(path).history().to_pylist()[0]
    assert (last["action"], last["operation"]) == ("replacecommit", "DELETE_PARTITION")
    assert HudiTable.for_path(path).validate_metadata().num_rows == 0
    # by its own clock it has not expired
    monkeypatch.undo()
    write(frame(spark, [("d", "p4", 1, "z")]), path, {**options("upsert"), **inline})
    assert [row[0] for row in rows_of(path)] == ["d"]
