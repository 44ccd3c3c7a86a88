"""Secondary indexes: built beside the table's data, kept by every write, and asked by queries."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import (
    ConfigError,
    FormatError,
    InvalidOptionError,
    MetadataTableWarning,
    OptionWithoutEffectWarning,
    UnsupportedTableError,
)
from pyhudi.spark.indexes import dependent_indexes
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.transaction import transaction
from tests.cases import seldom
from tests.index_contents import secondary_entries
from tests.spark.indexes.indexed_rows import VALUES, batch
from tests.spark.model import Model, Row, frame, options, rows_of

GROUPS = {"hoodie.metadata.record.index.min.filegroup.count": 3}


def indexed(operation: str, table_type: str, version: int = 9, **more: Any) -> dict[str, Any]:
    kind: dict[str, Any] = {
        "hoodie__datasource__write__table__type": table_type,
        "hoodie__write__table__version": version,
        "hoodie__index__type": "RECORD_INDEX",
        "hoodie__record__index__update__partition__path": True,
        "hoodie__compact__inline": False,
    }
    return options(operation, **{**kind, **more})


def check(path: str, model: Model) -> None:
    """The table has the model's rows, the index says where they are, and queries by it find them."""
    assert rows_of(path) == model.rows
    assert secondary_entries(path) == sorted(((row[3], row[0]) for row in model.rows), key=repr)
    table = HudiTable.for_path(path)
    for value in VALUES[:3]:
        scan = table.scan([("v", "=", value)], ["id"])
        assert sorted(scan.to_arrow()["id"].to_pylist()) == sorted(r[0] for r in model.rows if r[3] == value)
        assert "secondary_index_by_v" in str(scan.plan().skipped)


CASES = [seldom(("COPY_ON_WRITE", 9)), ("MERGE_ON_READ", 9), seldom(("MERGE_ON_READ", 8))]


@pytest.mark.parametrize(("table_type", "version"), CASES)
def test_the_index_goes_along_with_every_write(
    spark: SparkSession, tmp_path: Path, table_type: str, version: int
) -> None:
    path, model = str(tmp_path / "table"), Model()
    services = HudiTable.for_path

    def step(operation: str, rows: list[Row], **extra: Any) -> None:
        write(frame(spark, rows), path, indexed(operation, table_type, version, **extra), "append")
        if "by_v" in str(HudiTable.for_path(path).config.metadata_partitions):
            check(path, model)

    rows = batch(0, 40, 10)
    model.upsert(rows)
    step("bulk_insert", rows)
    with pytest.raises(ConfigError, match="requires the record index"):
        services(path).services.build_index("by_v", "v", spark=spark)
    built = services(path).services.build_index("record_index", options=GROUPS, spark=spark)
    assert built.partitions == ("record_index",)
    assert services(path).services.build_index("by_v", "v", dry_run=True).partitions == ("secondary_index_by_v",)
    assert services(path).services.build_index("by_v", ["v"], options=GROUPS, spark=spark).partitions == (
        "secondary_index_by_v",
    )
    check(path, model)
    # new values, old ones that win, rows that move, deletes, inserts
    rows = [*batch(0, 5, 9, 1), *batch(10, 20, 11, 1), *batch(60, 65, 1)]
    model.upsert(rows)
    step("upsert", rows)
    moved = ("k021", "p7", 12, "red")
    model.delete([("k021", "p1", 0, "")])
    model.upsert([moved])
    step("upsert", [moved])
    gone = [*batch(0, 3, 0), ("nobody", "p1", 0, "")]
    model.delete(gone)
    step("delete", gone)
    rows = batch(100, 105, 1)
    model.upsert(rows)
    step("insert", rows)
    if table_type == "MERGE_ON_READ":
        assert services(path).services.compact(spark=spark).instants
        check(path, model)
        rows = batch(30, 35, 20, 2)
        model.upsert(rows)
        step("upsert", rows)
    rows = [("k001", "p1", 30, "red"), ("new", "p1", 30, "bl\\ue")]
    model.drop("p1")
    model.upsert(rows)
    step("insert_overwrite", rows)
    model.drop("p7")
    HudiTable.for_path(path, indexed("upsert", table_type, version)).delete_partition(["p7"])
    check(path, model)
    # one that is built again under the same name knows nothing of the one before
    assert services(path).services.drop_index("by_v").partitions == ("secondary_index_by_v",)
    assert "by_v" not in str(services(path).config.metadata_partitions)
    rows = batch(0, 10, 40, 3)
    model.upsert(rows)
    step("upsert", rows)
    fewer = {"hoodie.metadata.record.index.min.filegroup.count": 2}
    services(path).services.build_index("by_v", "v", options=fewer, spark=spark)
    check(path, model)
    assert not services(path).validate_metadata().num_rows


def test_the_index_that_options_of_writes_ask_for(spark: SparkSession, tmp_path: Path) -> None:
    """It is built once a table has a record index. What cannot be indexed is refused before the write."""
    path, model = str(tmp_path / "table"), Model()
    asked = {"hoodie__metadata__index__secondary__column": "v", "hoodie__index__name": "by_v"}
    recorded = {"hoodie__metadata__record__index__enable": True}

    def step(rows: list[Row], **extra: Any) -> tuple[str, ...]:
        model.upsert(rows)
        return write(frame(spark, rows), path, indexed("upsert", "MERGE_ON_READ", **extra)).warnings

    with pytest.warns(OptionWithoutEffectWarning, match=r"column=v has no effect.*record.level.index.enable=true"):
        step(batch(0, 6, 1), **asked)
    step(batch(4, 8, 2, 1), **asked, **recorded)
    check(path, model)
    assert not step(batch(6, 12, 3, 2), **asked)
    check(path, model)
    assert not step(batch(0, 2, 3), hoodie__metadata__index__secondary__column="v"), "by_v is an index of that column"
    check(path, model)
    latest = HudiTable.for_path(path).latest_instant
    with pytest.raises(ConfigError, match="the column 'w' to index does not exist"):
        step([], hoodie__metadata__index__secondary__column="w")
    with pytest.raises(InvalidOptionError, match=r"'by_v' of option 'hoodie\.index\.name'.*column 'v'"):
        step([], **{**asked, "hoodie__metadata__index__secondary__column": "ts"})
    assert HudiTable.for_path(path).latest_instant == latest
    off = {"hoodie__metadata__index__secondary__column": "ts", "hoodie__metadata__index__secondary__enable": False}
    assert not step(batch(0, 2, 5), **off)
    check(path, model)


def test_what_cannot_be_indexed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write(frame(spark, batch(0, 4, 1)), path, indexed("upsert", "COPY_ON_WRITE"))
    services = HudiTable.for_path(path).services
    services.build_index("record_index", options=GROUPS, spark=spark)
    services.build_index("by_ts", "ts", options=GROUPS, spark=spark)
    assert secondary_entries(path, "by_ts") == [("1", f"k00{i}") for i in range(4)]
    assert HudiTable.for_path(path).lookup([1], ["id"], by="ts").num_rows == 4
    with pytest.raises(ConfigError, match="exists; drop it first"):
        services.build_index("by_ts", "v", spark=spark)
    assert services.build_index("by_ts", "v", if_not_exists=True, spark=spark).reason
    with pytest.raises(ConfigError, match="the column 'w' to index does not exist"):
        services.build_index("by_w", "w", spark=spark)
    with pytest.raises(ConfigError, match="record_index, secondary_index_by_ts"):
        services.drop_index("nothing")
    assert services.drop_index("nothing", if_exists=True).reason
    with pytest.raises(ConfigError, match=r"cannot compute year\(ts\) for a column of type int64"):
        services.build_index("by_year", "ts", using="column_stats", index_options={"expr": "year"})
    assert services.build_index("bloom_filters").partitions == ("bloom_filters",)
    assert services.drop_index("column_stats").partitions == ("column_stats", "partition_stats")
    assert services.build_index("partition_stats").partitions == ("column_stats", "partition_stats")
    with pytest.warns(MetadataTableWarning, match="secondary_index_by_ts cannot be used"):
        assert services.drop_index("record_index").partitions == ("record_index", "secondary_index_by_ts")
    with pytest.raises(ConfigError, match="build that first"):
        services.build_index("by_ts", "ts", spark=spark)
    write(frame(spark, batch(0, 4, 5)), path, indexed("upsert", "COPY_ON_WRITE"))
    services.build_index("record_index", options=GROUPS, spark=spark)
    services.build_index("by_ts", "ts", options=GROUPS, spark=spark)
    assert secondary_entries(path, "by_ts") == [("5", f"k00{i}") for i in range(4)]
    for file in Path(path).glob("p*/*.parquet"):
        data = file.read_bytes()
        footer = int.from_bytes(data[-8:-4], "little") + 8
        file.write_bytes(bytes(len(data) - footer) + data[-footer:])
    with pytest.raises(FormatError, match=r"cannot read .*\.parquet"):
        services.build_index("by_v", "v", options=GROUPS, spark=spark)
    old = str(tmp_path / "old")
    payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    more = {"hoodie__datasource__write__payload__class": payload}
    write(frame(spark, batch(0, 4, 1)), old, indexed("upsert", "COPY_ON_WRITE", 6, **more))
    with pytest.raises(UnsupportedTableError, match="version 6"):
        HudiTable.for_path(old).services.build_index("by_v", "v", spark=spark)


def test_indexes_that_come_and_go_while_a_write_is_under_way(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, model = str(tmp_path / "table"), Model()
    services = HudiTable.for_path
    delta = dependent_indexes.secondary_delta
    meanwhile: list[Any] = []

    def interrupted(*args: Any, **more: Any) -> Any:
        found = delta(*args, **more)
        if meanwhile:
            meanwhile.pop()()
        return found

    monkeypatch.setattr(dependent_indexes, "secondary_delta", interrupted)

    def step(rows: list[Row]) -> None:
        model.upsert(rows)
        write(frame(spark, rows), path, indexed("upsert", "MERGE_ON_READ"))
        assert not meanwhile
        check(path, model)

    def build() -> None:
        services(path).services.build_index("by_v", "v", options=GROUPS, spark=spark)

    def build_anew() -> None:
        services(path).services.drop_index("by_v")
        build()

    model.upsert(batch(0, 20, 1))
    write(frame(spark, batch(0, 20, 1)), path, indexed("upsert", "MERGE_ON_READ"))
    services(path).services.build_index("record_index", options=GROUPS, spark=spark)
    meanwhile.append(build)
    step(batch(10, 25, 2, 1))
    meanwhile.append(build_anew)
    step(batch(0, 12, 3, 2))
    assert not services(path).validate_metadata().num_rows


@pytest.mark.parametrize("told", [seldom(False), seldom(True)])
def test_what_a_dead_write_has_put_into_the_index_goes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    """``told``: the metadata table has the delta commit of the write already."""
    path, model = str(tmp_path / "table"), Model()
    rows = batch(0, 20, 1)
    model.upsert(rows)
    write(frame(spark, rows), path, indexed("upsert", "MERGE_ON_READ"))
    services = HudiTable.for_path(path).services
    services.build_index("record_index", options=GROUPS, spark=spark)
    services.build_index("by_v", "v", options=GROUPS, spark=spark)
    update_from_commit = transaction.update_from_commit

    def die(*args: Any, **more: Any) -> None:
        if told and not isinstance(args[0], transaction.Transaction):
            update_from_commit(*args, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(transaction, "update_from_commit", die)
        patch.setattr(transaction.Transaction, "abort", die)
        with pytest.raises(KeyboardInterrupt):
            write(frame(spark, batch(10, 30, 2, 1)), path, indexed("upsert", "MERGE_ON_READ"))
    check(path, model)
    rows = batch(5, 15, 3, 2)
    model.upsert(rows)
    write(frame(spark, rows), path, indexed("upsert", "MERGE_ON_READ"))
    check(path, model)
    assert not HudiTable.for_path(path).validate_metadata().num_rows


def test_a_write_that_an_index_was_built_with_is_rolled_back(spark: SparkSession, tmp_path: Path) -> None:
    path, model = str(tmp_path / "table"), Model()
    rows = [*batch(0, 20, 1), ("alone", "p7", 1, "before")]
    model.upsert(rows)
    write(frame(spark, rows), path, indexed("upsert", "MERGE_ON_READ"))
    services = HudiTable.for_path(path).services
    services.build_index("record_index", options=GROUPS, spark=spark)
    services.schedule_index("by_v", "v", options=GROUPS)
    write(frame(spark, [*batch(10, 30, 2, 1), ("alone", "p7", 2, "after")]), path, indexed("upsert", "MERGE_ON_READ"))
    assert services.run_index(spark=spark).partitions == ("secondary_index_by_v",)
    assert services.rollback()
    assert rows_of(path) == model.rows
    for value, found in (("before", ["alone"]), ("after", [])):
        assert HudiTable.for_path(path).lookup([value], ["id"], by="v")["id"].to_pylist() == found
    services.build_index("record_index", options=GROUPS, spark=spark)
    services.build_index("by_v", "v", options=GROUPS, spark=spark)
    check(path, model)


def test_indexes_of_times(spark: SparkSession, tmp_path: Path) -> None:
    """Days and times are found in whatever form they are asked for; a day equals its midnight only."""
    path = str(tmp_path / "table")
    at = [dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC) + dt.timedelta(n // 2) for n in range(12)]
    rows = [(f"k{n:03d}", "p", 1, "v", time, time.date()) for n, time in enumerate(at)]
    columns = "id string, part string, ts long, v string, t timestamp, d date"
    write(spark.createDataFrame(rows, columns), path, indexed("upsert", "COPY_ON_WRITE"))
    services = HudiTable.for_path(path).services
    for name, column in (("record_index", ()), ("by_t", "t"), ("by_d", "d")):
        services.build_index(name, column, options=GROUPS, spark=spark)
    changed = [("k004", "p", 2, "v", at[0], at[0].date()), ("k100", "p", 2, "v", None, None)]
    write(spark.createDataFrame(changed, columns), path, indexed("upsert", "COPY_ON_WRITE"))
    table = HudiTable.for_path(path)
    east = at[0].astimezone(dt.timezone(dt.timedelta(hours=9)))
    plain = at[0].replace(tzinfo=None)  # without a zone, a time is in that of the session: UTC here
    meant = {
        "t": (at[0], "2024-01-01 12:00:00+00:00", east, plain, pa.scalar(at[0], pa.timestamp("us", "UTC"))),
        "d": (at[0].date(), "2024-01-01", pa.scalar(at[0].date()), dt.datetime(2024, 1, 1)),
    }
    for column, values in meant.items():
        for value in values:
            scan = table.scan([(column, "=", value)], ["id"])
            assert sorted(scan.to_arrow()["id"].to_pylist()) == ["k000", "k001", "k004"], value
            assert f"secondary_index_by_{column}: 3 record keys" in scan.plan().skipped, value
            assert table.lookup([value], ["id"], by=column).num_rows == 3
    for column, value in (("d", at[0]), ("t", at[0].date())):
        assert not table.scan([(column, "=", value)], ["id"]).to_arrow().num_rows, column
    assert table.lookup([at[4], at[10]], ["id"], by="t")["id"].to_pylist().count("k004") == 0


def test_several_indexes_of_a_merge_on_read_table(spark: SparkSession, tmp_path: Path) -> None:
    """They are kept and not asked: Apache Hudi, which may have written, keeps one of them up to date."""
    path = str(tmp_path / "table")
    write(frame(spark, batch(0, 20, 1)), path, indexed("upsert", "MERGE_ON_READ"))
    services = HudiTable.for_path(path).services
    for name, column in (("record_index", ()), ("by_v", "v"), ("by_ts", "ts")):
        services.build_index(name, column, options=GROUPS, spark=spark)
    write(frame(spark, batch(5, 10, 2)), path, indexed("upsert", "MERGE_ON_READ"))
    scan = HudiTable.for_path(path).scan([("ts", "=", 2)], ["id"])
    assert sorted(scan.to_arrow()["id"].to_pylist()) == [f"k{n:03d}" for n in range(5, 10)]
    assert "secondary_index_by_ts: not used" in str(scan.plan().skipped)
    with pytest.warns(MetadataTableWarning, match="queries use secondary_index_by_ts from now on"):
        services.drop_index("by_v")
    assert "secondary_index_by_ts: 5 record keys" in scan.plan().skipped


def test_an_index_whose_files_are_gone(spark: SparkSession, tmp_path: Path) -> None:
    """A write takes it out of use, so that it can be created again. Apache Hudi cannot write such a table."""
    path = str(tmp_path / "table")
    write(frame(spark, batch(0, 20, 1)), path, indexed("upsert", "MERGE_ON_READ"))
    services = HudiTable.for_path(path).services
    for name, column in (("record_index", ()), ("by_v", "v")):
        services.build_index(name, column, options=GROUPS, spark=spark)
    shutil.rmtree(tmp_path / "table" / ".hoodie" / "metadata" / "secondary_index_by_v")
    write(frame(spark, batch(5, 10, 2)), path, indexed("upsert", "MERGE_ON_READ"))
    partitions = HudiTable.for_path(path).config.metadata_partitions
    assert "record_index" in partitions
    assert "secondary_index_by_v" not in partitions
    services.build_index("by_v", "v", options=GROUPS, spark=spark)
    model = Model()
    model.upsert([*batch(0, 20, 1), *batch(5, 10, 2)])
    check(path, model)


@pytest.mark.slow
def test_a_column_that_changes_its_type(spark: SparkSession, tmp_path: Path) -> None:
    """Its indexes would have entries of two types: they go, queries go on, and they can be built again."""
    path = str(tmp_path / "table")
    columns = "id string, part string, ts long, v string, n {}"

    def step(kind: str, *rows: tuple[Any, ...]) -> None:
        write(spark.createDataFrame(list(rows), columns.format(kind)), path, indexed("upsert", "COPY_ON_WRITE"))

    step("int", ("a", "p", 1, "v", 5), ("b", "p", 1, "v", 7))
    services = HudiTable.for_path(path).services
    services.build_index("record_index", options=GROUPS, spark=spark)
    day: dict[str, Any] = {"using": "column_stats", "index_options": {"expr": "from_unixtime", "format": "yyyy-MM-dd"}}

    def build() -> None:
        services.build_index("by_n", "n", options=GROUPS, spark=spark)
        services.build_index("day_n", "n", **day, spark=spark)

    def found(value: int) -> tuple[list[str], str]:
        scan = HudiTable.for_path(path).scan([("n", "=", value)], ["id"])
        return sorted(scan.to_arrow()["id"].to_pylist()), str(scan.plan().skipped)

    step("long", ("a", "p", 2, "v", 1 << 40))
    build()
    step("long", ("c", "p", 2, "v", 7))
    assert {"secondary_index_by_n", "expr_index_day_n"} <= set(HudiTable.for_path(path).config.metadata_partitions)
    assert secondary_entries(path, "by_n") == [("1099511627776", "a"), ("7", "b"), ("7", "c")]
    step("double", ("d", "p", 3, "v", 7.0))
    assert not [name for name in HudiTable.for_path(path).config.metadata_partitions if name.endswith("_n")]
    keys, skipped = found(7)
    assert keys == ["b", "c", "d"]
    assert "index_by_n" not in skipped
    with pytest.raises(UnsupportedTableError, match="double"):
        services.build_index("by_n", "n", options=GROUPS, spark=spark)


@pytest.mark.slow
def test_values_and_keys_that_are_too_long_for_an_index(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, model = str(tmp_path / "table"), Model()
    model.upsert(batch(0, 20, 1))
    write(frame(spark, batch(0, 20, 1)), path, indexed("upsert", "COPY_ON_WRITE"))
    services = HudiTable.for_path(path).services
    services.build_index("record_index", options=GROUPS, spark=spark)
    services.build_index("by_v", "v", options=GROUPS, spark=spark)
    services.build_index("by_part", "part", options=GROUPS, spark=spark)
    longest = "x" * (32767 - len("$long1"))
    for value in (longest, longest + "x"):
        model.upsert([("long1", "p0", 2, value)])
        write(frame(spark, [("long1", "p0", 2, value)]), path, indexed("upsert", "COPY_ON_WRITE"))
        assert rows_of(path) == model.rows
        found = HudiTable.for_path(path).lookup([value], ["id"], by="v")
        assert found["id"].to_pylist() == ["long1"]
        kept = "secondary_index_by_v" in HudiTable.for_path(path).config.metadata_partitions
        assert kept is (value == longest)
    assert "secondary_index_by_v is taken out of use: a value of 'v' and the key of its record" in caplog.text
    assert "secondary_index_by_part" in HudiTable.for_path(path).config.metadata_partitions
    assert HudiTable.for_path(path).lookup(["p1"], ["id"], by="part").num_rows == 10
    with pytest.raises(UnsupportedTableError, match="a value of 'v' and the key of its record have 32768 bytes"):
        services.build_index("by_v", "v", options=GROUPS, spark=spark)
    key = "k" * 32768
    model.upsert([(key, "p0", 2, "a")])
    write(frame(spark, [(key, "p0", 2, "a")]), path, indexed("upsert", "COPY_ON_WRITE"))
    assert "a record key has 32768 bytes, too many for the record index" in caplog.text
    assert not {"record_index", "secondary_index_by_part"} & set(HudiTable.for_path(path).config.metadata_partitions)
    assert rows_of(path) == model.rows
    with pytest.raises(UnsupportedTableError, match="a record key has 32768 bytes"):
        services.build_index("record_index", options=GROUPS, spark=spark)
