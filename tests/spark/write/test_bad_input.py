"""Bad input: a clear error that names value and cure, before anything is written."""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyhudi import errors
from pyhudi.spark.write.dataframe_writer import write
from tests.cases import each_choice
from tests.spark.model import frame, options, rows_of, tree

ROWS = [("a", "p", 1, "one"), ("b", "p", 1, "one")]


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Path:
    path = tmp_path / "table"
    write(frame(spark, ROWS), str(path), options("insert"))
    return path


@contextmanager
def unchanged(path: Path, kind: type[Exception], message: str) -> Iterator[None]:
    before = tree(path)
    with pytest.raises(kind, match=message):
        yield
    assert tree(path) == before


def upsert(df: DataFrame, path: Path, operation: str = "upsert", **more: object) -> None:
    write(df, str(path), options(operation, **more))


def test_columns_that_do_not_fit(spark: SparkSession, table: Path) -> None:
    rows = frame(spark, ROWS)
    with unchanged(table, errors.RecordKeyError, "'id'"):
        upsert(rows.drop("id"), table)
    with unchanged(table, errors.SchemaMismatchError, "'part'"):
        upsert(rows.drop("part"), table)
    with unchanged(table, errors.SchemaMismatchError, "'v' is missing.*hoodie.write.set.null.for.missing.columns"):
        upsert(rows.drop("v"), table)
    with unchanged(table, errors.SchemaMismatchError, "column 'ts' is int64 in the table and bool.*cast it to int64"):
        upsert(rows.selectExpr("id", "part", "true ts", "v"), table)
    drop = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}
    for operation in ("insert", "bulk_insert"):
        with unchanged(table, errors.SchemaMismatchError, "the column 'ts', the table's ordering column"):
            upsert(rows.drop("ts"), table, operation, **drop)
    with unchanged(table, errors.SchemaMismatchError, "'V'.*case"):
        upsert(rows.withColumnRenamed("v", "V"), table)
    with unchanged(table, errors.SchemaMismatchError, "'_pyhudi_row' is reserved"):
        upsert(rows.selectExpr("*", "1L _pyhudi_row"), table)
    with unchanged(table, errors.SchemaMismatchError, "'_PyHudi_position' is reserved"):
        upsert(rows.selectExpr("*", "1L _PyHudi_position"), table)


def test_an_ordering_column_that_is_mistyped(spark: SparkSession, tmp_path: Path) -> None:
    """As in Apache Hudi, upserts need it, whether keys come twice or not; inserts do not."""
    rows, more = frame(spark, ROWS), {"hoodie__datasource__write__precombine__field": "tss"}
    refused = "no column 'tss' for the ordering; the columns are: id, part, ts, v$"
    with pytest.raises(errors.SchemaMismatchError, match=refused):
        upsert(rows, tmp_path / "new", **more)
    assert not (tmp_path / "new").exists()
    upsert(rows, tmp_path / "new", "insert", **more)
    for operation, combine in (("upsert", "upsert"), ("insert", "insert"), ("bulk_insert", "insert")):
        with unchanged(tmp_path / "new", errors.SchemaMismatchError, refused):
            upsert(rows, tmp_path / "new", operation, **more, **{f"hoodie__combine__before__{combine}": "true"})
    upsert(rows.limit(1), tmp_path / "new", "delete", **more)
    assert len(rows_of(tmp_path / "new")) == 1


@pytest.mark.parametrize(
    ("operation", "bad"), each_choice(["upsert", "insert", "delete", "insert_overwrite"], [None, ""])
)
def test_null_and_empty_keys(spark: SparkSession, table: Path, bad: str | None, operation: str) -> None:
    rows = frame(spark, [*ROWS, (bad, "p", 1, "x")])  # type: ignore[list-item]
    with unchanged(table, errors.RecordKeyError, "record key field 'id' is null or empty"):
        upsert(rows, table, operation)


def test_a_null_key_in_a_bulk_insert_leaves_the_rows_as_they_were(spark: SparkSession, table: Path) -> None:
    # the input is read once, while it is written: what was written by then is rolled back
    data = {name for name in tree(table) if not name.startswith(".hoodie")}
    with pytest.raises(errors.RecordKeyError, match="record key field 'id' is null or empty") as raised:
        upsert(frame(spark, [*ROWS, (None, "p", 1, "x")]), table, "bulk_insert")  # type: ignore[list-item]
    assert "java" not in "".join(traceback.format_exception(raised.value)), "the trace of Spark would hide the message"
    assert {name for name in tree(table) if not name.startswith(".hoodie")} == data
    assert rows_of(table) == ROWS


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_a_first_write_that_fails_leaves_no_table(spark: SparkSession, tmp_path: Path, operation: str) -> None:
    # a task that outlives the failed job may create the folder of its marker again, which makes no table
    properties = tmp_path / "new" / ".hoodie" / "hoodie.properties"
    rows = frame(spark, [*ROWS, (None, "p", 1, "x")])  # type: ignore[list-item]
    with pytest.raises(errors.RecordKeyError):
        upsert(rows, tmp_path / "new", operation)
    assert not properties.exists()
    assert not list(tmp_path.rglob("*.parquet"))
    with pytest.raises(errors.ConfigError, match=re.escape("hoodie.table.name")):
        upsert(frame(spark, ROWS), tmp_path / "new", operation, hoodie__table__name=None)
    assert not properties.exists()


def test_options_that_contradict_the_table(spark: SparkSession, table: Path) -> None:
    rows = frame(spark, ROWS)
    conflict = errors.TableConfigConflictError
    with unchanged(table, conflict, "'other'.*'model'"):
        upsert(rows, table, hoodie__table__name="other")
    with unchanged(table, conflict, "'v'"):
        upsert(rows, table, hoodie__datasource__write__recordkey__field="v")
    with unchanged(table, conflict, "'v'"):
        upsert(rows, table, hoodie__datasource__write__precombine__field="v")
    with unchanged(table, errors.InvalidOptionError, "'snappier'"):
        upsert(rows, table, hoodie__parquet__compression__codec="snappier")
    with unchanged(table, errors.InvalidOptionError, "upsert_prepped.*use upsert"):
        upsert(rows, table, "upsert_prepped")
    with unchanged(table, errors.InvalidOptionError, "'merge'"):
        upsert(rows, table, "merge")
    with unchanged(table, errors.InvalidOptionError, "'replace'.*append"):
        write(rows, str(table), options("upsert"), "replace")
    with unchanged(table, errors.ConfigError, "append"):
        write(rows, str(table), options("delete"), "overwrite")
    with unchanged(table, errors.ConfigError, "delete.field is set without hoodie.payload.delete.marker"):
        upsert(rows, table, hoodie__payload__delete__field="v")
    # the id of a file group may begin with eight decimal digits, as that of a bucket
    with unchanged(table, errors.HudiError, "bucket"):
        upsert(rows, table, hoodie__index__type="BUCKET")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hoodie.parquet.outputtimestamptype", "TIMESTAMP_MILLIS", "microseconds.*leave the option out"),
        ("hoodie.parquet.outputtimestamptype", "INT96", "microseconds.*leave the option out"),
        ("hoodie.parquet.compression.codec", "lz4", "'lz4' is not supported.*lz4_raw"),
        ("pyhudi.parquet.compression.level", "99", "compression.level.*22 for zstd"),
        ("hoodie.index.bloom.fpp", "0", "between 0 and 1"),
        ("hoodie.bulkinsert.user.defined.partitioner.sort.columns", "ts,nothing", "no column 'nothing' for the sort"),
        ("hoodie.precommit.validators", "org.example.Mine", "cannot run"),
        ("hoodie.index.class", "org.example.Mine", "custom index classes"),
        ("parquet.crypto.factory.class", "org.example.Mine", "in clear text"),
        ("hoodie.write.schema", "{}", "select and cast"),
        ("hoodie.metadata.index.secondary.column", "v,ts", "one column"),
        ("hoodie.allow.operation.metadata.field", "true", "leave the option out"),
        ("hoodie.write.concurrency.mode", "NON_BLOCKING_CONCURRENCY_CONTROL", "OPTIMISTIC"),
    ],
)
def test_options_that_cannot_be_served(spark: SparkSession, table: Path, key: str, value: str, message: str) -> None:
    with unchanged(table, errors.HudiError, message):
        upsert(frame(spark, ROWS), table, "bulk_insert", **{key.replace(".", "__"): value})


@pytest.mark.parametrize(
    ("key", "inline"),
    [
        ("hoodie.compaction.strategy", {}),
        ("hoodie.clustering.plan.strategy.class", {"hoodie__clustering__schedule__inline": "true"}),
        ("hoodie.clustering.execution.strategy.class", {"hoodie__clustering__inline": "true"}),
        ("hoodie.partition.ttl.strategy.class", {"hoodie__partition__ttl__inline": "true"}),
    ],
)
def test_unknown_strategies_of_services(spark: SparkSession, tmp_path: Path, key: str, inline: dict[str, str]) -> None:
    """A write is refused if a service after its commit could not begin; services of other processes know more."""
    path, unknown = tmp_path / "table", {key.replace(".", "__"): "org.example.Mine"}
    of_new = {"hoodie__datasource__write__table__type": "MERGE_ON_READ"}
    with pytest.raises(errors.InvalidOptionError, match=rf"Mine.*{key}.*allowed: \w*Strategy"):
        upsert(frame(spark, ROWS), path, **of_new, **unknown, **inline)
    assert not path.exists()


def test_options_that_ask_for_what_is_not_done(spark: SparkSession, table: Path) -> None:
    quiet = {
        "hoodie__parquet__outputtimestamptype": "TIMESTAMP_MICROS",
        "hoodie__datasource__hive_sync__enable": "false",
        "hoodie__clustering__inline": False,
        "hoodie__write__num__retries__on__conflict__failures": 0,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.OptionWithoutEffectWarning)
        upsert(frame(spark, ROWS), table, **quiet)
    ignored = {
        "hoodie__clustering__async__enabled": "true",
        "hoodie__metadata__index__secondary__column": "v",
        "hoodie__parquet__write__config__injector__class": "org.example.Injector",
    }
    with pytest.warns(errors.OptionWithoutEffectWarning) as caught:
        upsert(frame(spark, ROWS), table, **ignored)
    told = " ".join(str(warning.message) for warning in caught)
    for key, value in ignored.items():
        assert f"{key.replace('__', '.')}={value} has no effect: " in told


def test_statistics_of_a_column_that_is_not_there(spark: SparkSession, table: Path) -> None:
    listed = {"hoodie__metadata__index__column__stats__column__list": "_hoodie_record_key,id,partt"}
    with pytest.warns(errors.OptionWithoutEffectWarning, match=r"column\.list: there is no column 'partt'.*'part'\?"):
        upsert(frame(spark, ROWS), table, **listed)


def test_indexes_that_are_not_there(spark: SparkSession, table: Path, tmp_path: Path) -> None:
    for path in (table, tmp_path / "new"):
        with pytest.raises(errors.UnsupportedTableError, match="INMEMORY: this index exists"):
            upsert(frame(spark, ROWS), path, hoodie__index__type="INMEMORY")
    assert not (tmp_path / "new").exists()


def test_duplicates_that_are_to_fail(spark: SparkSession, table: Path) -> None:
    with unchanged(table, errors.RecordKeyError, "keys of 2 records.*fail"):
        upsert(frame(spark, ROWS), table, "insert", hoodie__datasource__insert__dup__policy="fail")


def test_no_table_to_delete_from(spark: SparkSession, tmp_path: Path) -> None:
    for operation in ("delete", "delete_partition"):
        with pytest.raises(errors.NotAHudiTableError, match=operation):
            upsert(frame(spark, ROWS), tmp_path / "none", operation)
    assert not (tmp_path / "none").exists()


def test_tables_that_are_not_written(spark: SparkSession, table: Path) -> None:
    rows, properties = frame(spark, ROWS), table / ".hoodie" / "hoodie.properties"
    text = properties.read_text()
    for change, message in {
        ("hoodie.table.version=9", "hoodie.table.version=10"): "version 10",
        ("hoodie.record.merge.mode=EVENT_TIME_ORDERING", "hoodie.record.merge.mode=CUSTOM"): "no merger with that id",
    }.items():
        assert change[0] in text
        properties.write_text(text.replace(*change))
        with unchanged(table, errors.UnsupportedTableError, message):
            upsert(rows, table)
    properties.write_text("hoodie.table.name")
    with unchanged(table, errors.CorruptTableError, "hoodie.properties"):
        upsert(rows, table)
    with unchanged(table, errors.CorruptTableError, "hoodie.properties"):
        write(rows, str(table), options("upsert"), "overwrite")


def test_a_half_written_timeline_file(spark: SparkSession, table: Path) -> None:
    done = next((table / ".hoodie" / "timeline").glob("*.commit"))
    done.write_bytes(done.read_bytes()[:100])
    with unchanged(table, errors.CorruptInstantError, done.name):
        upsert(frame(spark, ROWS), table)
