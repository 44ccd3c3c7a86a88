"""The simple bucket index: buckets as Spark computes them, and tables written with it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import ConfigError, RecordKeyError, UnsupportedTableError
from pyhudi.index.bucket_counts import BucketCounts
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.spark.write.plans.buckets.bucket_routing import with_bucket
from pyhudi.table.config.key_generator_type import KeyGenType
from tests.bucket_numbers import bucket_of as bucket_of_key
from tests.bucket_tables import bucket_index
from tests.cases import seldom
from tests.spark.model import Model, Row, frame, options, rows_of
from tests.spark.model import batch as records
from tests.spark.write.plans.buckets.bucket_writes import BUCKETS, batch, bucketed, check_files

_TEXTS = [
    "",
    "k0001",
    "polygenelubricants",
    "24 characters, not more.",
    "25 characters, no fewer.!",
    "an even longer text, as keys made of several fields or of random numbers are",
    "kéy中",
    "\U0001f600 beyond the plane \U0001f680",
    "12:30:00",
    "a,b",
    "a,b:c",
    "id:k1",
    "id:k1,name:x",
    "id:k1,name:",
    "id:__null__,name:__empty__",
    "id:a,b:c,name:x",
    "id:a,b,name:x,y",
    "id:2024-01-01 12:30,name:x",
    "id:an identifier of more than 24 characters,name:é",
]


@pytest.mark.filterwarnings("error:.*pandas UDF:UserWarning")  # which users would see with each write
@pytest.mark.parametrize(
    ("record_fields", "fields", "legacy_key_split"),
    [
        (*names, splits)
        for names, splits in product(
            [
                (("id",), ("id",)),
                (("id", "name"), ("id",)),
                (("id", "name"), ("name",)),
                (("id", "name"), ("id", "name")),
            ],
            [False, True],
        )
    ],
)
def test_bucket_numbers(
    spark: SparkSession, record_fields: tuple[str, ...], fields: tuple[str, ...], legacy_key_split: bool
) -> None:
    spec = KeySpec(KeyGenType.COMPLEX, record_fields, len(record_fields) > 1, ())
    bucketing = BucketIndex(fields, BucketCounts(1_000_003), legacy_key_split)
    rows = spark.createDataFrame([(text, "p") for text in _TEXTS], f"{RECORD_KEY} string, {PARTITION_PATH} string")
    found = {row[0]: row[2] for row in with_bucket(rows, spec, bucketing, "bucket").collect()}
    expected = {text: bucket_of_key(text, fields, 1_000_003, legacy_key_split=legacy_key_split) for text in _TEXTS}
    assert found == expected


@pytest.mark.parametrize(
    ("table_type", "version"), [("COPY_ON_WRITE", 9), seldom(("MERGE_ON_READ", 9)), ("MERGE_ON_READ", 6)]
)
def test_operations(spark: SparkSession, tmp_path: Path, table_type: str, version: int) -> None:
    path, model = str(tmp_path / "table"), Model()

    def step(operation: str, rows: list[Row], **extra: Any) -> None:
        result = write(frame(spark, rows), path, bucketed(operation, table_type, version, **extra), "append")
        assert result.instant is not None
        assert rows_of(path) == model.rows, operation
        check_files(path)

    rows = batch(0, 40, 10, "first")
    model.upsert(rows)
    step("upsert", rows)

    # older, equal and newer versions, a key twice in the batch, new keys
    rows = [*batch(0, 5, 9, "old"), *batch(5, 10, 10, "tie"), *batch(10, 20, 11, "new"), *batch(40, 45, 1, "fresh")]
    rows += [("k021", "p1", 15, "twice, stronger"), ("k021", "p1", 14, "twice")]
    model.upsert(rows)
    step("upsert", rows)

    gone = [*batch(0, 3, 0, ""), ("nobody", "p1", 0, ""), ("k002", "p1", 0, ""), ("k003", "elsewhere", 0, "")]
    model.delete(gone)
    step("delete", gone)

    rows = [*batch(100, 103, 1, "inserted"), ("x", "fresh", 1, "inserted")]
    model.upsert(rows)
    step("insert", rows)

    rows = batch(200, 220, 1, "bulk")
    model.upsert(rows)
    step("bulk_insert", rows)

    # keys that the table has are left out
    rows = batch(215, 225, 5, "dropped or new")
    model.upsert(rows[5:])
    step("insert", rows, hoodie__datasource__insert__dup__policy="drop")

    rows = [("a", "p1", 1, "overwritten"), ("b", "other", 1, "overwritten")]
    model.drop("p1", "other")
    model.upsert(rows)
    step("insert_overwrite", rows)

    rows = batch(0, 30, 50, "last")
    model.upsert(rows)
    step("upsert", rows)

    rows = batch(0, 3, 1, "alone")
    model.records.clear()
    model.upsert(rows)
    step("insert_overwrite_table", rows)


@pytest.mark.parametrize("policy", ["fail", seldom("drop")])
def test_inserts_evaluate_rows_once(spark: SparkSession, tmp_path: Path, policy: str) -> None:
    path = str(tmp_path / "table")
    given = bucketed("insert", "COPY_ON_WRITE", hoodie__datasource__insert__dup__policy=policy)
    write(frame(spark, records(0, 10, 1, "old")), path, given)
    evaluated = spark.sparkContext.accumulator(0)

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            evaluated.add(rows.num_rows)
            yield rows

    rows = frame(spark, records(5 if policy == "drop" else 10, 20, 2, "new"))
    write(rows.mapInArrow(count, rows.schema), path, given)
    assert evaluated.value == rows.count()
    assert rows_of(path) == sorted(records(0, 10, 1, "old") + records(10, 20, 2, "new"))


def test_other_settings(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write(frame(spark, batch(0, 30, 1, "a")), path, bucketed("upsert", "COPY_ON_WRITE"))
    rows = frame(spark, batch(0, 3, 2, "b"))
    for wrong in (
        {"hoodie__bucket__index__num__buckets": 2},
        {"hoodie__bucket__index__num__buckets": 1024},
        {"hoodie__bucket__index__hash__field": "v"},
    ):
        with pytest.raises(ConfigError, match="bucket"):
            write(rows, path, bucketed("upsert", "COPY_ON_WRITE", **wrong))
    with pytest.raises(UnsupportedTableError, match="bucket index"):
        write(rows, path, options("upsert"))
    assert HudiTable.for_path(path).history().num_rows == 1
    with pytest.raises(RecordKeyError, match="already"):
        write(rows, path, bucketed("insert", "COPY_ON_WRITE", hoodie__datasource__insert__dup__policy="fail"))
    other = str(tmp_path / "other")
    write(frame(spark, batch(0, 30, 1, "a")), other, options("upsert"))
    with pytest.raises(UnsupportedTableError, match="not written with the bucket index"):
        write(rows, other, bucketed("upsert", "COPY_ON_WRITE"))


@pytest.mark.parametrize("kind", [seldom("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_statements_that_keep_records_in_their_buckets(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """They need no options of the index: only new records have to be put into their buckets."""
    path = str(tmp_path / "table")
    write(frame(spark, batch(0, 30, 1, "a")), path, bucketed("upsert", kind))
    table = HudiTable.for_path(path)
    assert table.update({"v": "'b'"}, where="id < 'k010'").rows_updated == 10
    assert table.delete(where="id >= 'k020'").rows_deleted == 10
    with pytest.raises(UnsupportedTableError, match="bucket index"):
        table.update({"part": "'elsewhere'"}, where="id = 'k000'")
    write(frame(spark, batch(5, 25, 2, "c")), path, bucketed("upsert", kind))
    assert rows_of(path) == sorted(batch(0, 5, 1, "b") + batch(5, 25, 2, "c"))
    check_files(path)


@pytest.mark.parametrize("mode", ["inline", "schedule__inline"])
def test_clustering_after_writes(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """Rows cannot be moved to other buckets, so no such write is begun."""
    given = bucketed("upsert", "MERGE_ON_READ", **{f"hoodie__clustering__{mode}": True})
    with pytest.raises(ConfigError, match=f"{mode.replace('__', '.')}=true: the simple bucket index assigns each key"):
        write(frame(spark, batch(0, 4, 1, "x")), str(tmp_path / "table"), given)
    assert not (tmp_path / "table").exists()


def test_overwrites(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write(frame(spark, batch(0, 30, 1, "a")), path, options("upsert"))
    rows = batch(0, 9, 2, "b")
    write(frame(spark, rows), path, bucketed("upsert", "MERGE_ON_READ"), "overwrite")
    model = Model()
    model.upsert(rows)
    assert rows_of(path) == model.rows
    check_files(path)
    for rules in ("p0,3", "p1,2"):
        own = {"hoodie__bucket__index__partition__expressions": rules}
        write(frame(spark, rows), path, bucketed("upsert", "MERGE_ON_READ", **own), "overwrite")
        model = Model()
        model.upsert(rows)
        model.upsert(newer := batch(5, 12, 3, "c"))
        write(frame(spark, newer), path, bucketed("upsert", "MERGE_ON_READ"))
        assert rows_of(path) == model.rows, "the new table knows its own numbers"


RULES = {"hoodie__bucket__index__partition__expressions": "p0,3"}


@pytest.mark.parametrize("more", [seldom(pytest.param({}, id="one")), pytest.param(RULES, id="rules")])
def test_time_travel_to_other_bucket_counts(spark: SparkSession, tmp_path: Path, more: dict[str, str]) -> None:
    path = str(tmp_path / "table")
    rows = batch(0, 40, 1, "a")
    first = write(frame(spark, rows), path, bucketed("upsert", "MERGE_ON_READ", **more))
    now = {"hoodie__bucket__index__num__buckets": 7}
    write(frame(spark, batch(0, 9, 2, "b")), path, bucketed("upsert", "MERGE_ON_READ", **now), "overwrite")
    table = HudiTable.for_path(path, {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 7})
    for name, part, ts, value in rows:
        found = table.scan([("id", "=", name)], ["id", "part", "ts", "v"], as_of=first.instant).to_arrow()
        assert [tuple(row.values()) for row in found.to_pylist()] == [(name, part, ts, value)]
    assert table.scan([("id", "=", "k001")]).plan().tasks.num_rows < table.scan().plan().tasks.num_rows


def test_bucket_pruning(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write(frame(spark, batch(0, 80, 1, "a")), path, bucketed("upsert", "COPY_ON_WRITE"))
    table = HudiTable.for_path(path, bucket_index(BUCKETS))
    assert table.scan().plan().tasks.num_rows == 2 * BUCKETS
    for condition in ([("id", "=", "k007")], [("id", "in", ["k007", "k009"]), ("part", "=", "p1")]):
        found = table.scan(filter=condition)
        wanted = {bucket_of_key(key, ["id"], BUCKETS) for key in ("k007", "k009")[: 1 if len(condition) == 1 else 2]}
        assert {int(task[:8]) for task in found.plan().tasks["file_id"].to_pylist()} == wanted
        assert found.to_arrow().num_rows == len(condition)
    for condition in ([("id", ">", "k007")], [[("id", "=", "k007")], [("ts", "=", 1)]]):
        assert table.scan(filter=condition).plan().tasks.num_rows == 2 * BUCKETS
    wrong = HudiTable.for_path(path, {**bucket_index(BUCKETS), "hoodie.bucket.index.num.buckets": 512})
    with pytest.raises(ConfigError, match="bucket"):
        wrong.scan(filter=[("id", "=", "k007")]).to_arrow()


@pytest.mark.parametrize("kind", ["date", "timestamp"])
def test_keys_that_are_times(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Days are looked for in their buckets, in whatever form they are asked for; of times nothing is left out."""
    path = str(tmp_path / "table")
    days = [dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(n) for n in range(12)]
    df = spark.createDataFrame([(day, "p", 1, "a") for day in days], "id timestamp, part string, ts long, v string")
    df = df.withColumn("id", df["id"].cast(kind))
    write(df, path, bucketed("upsert", "COPY_ON_WRITE"))
    # statistics of the key would leave files out, too
    table = HudiTable.for_path(path, {**bucket_index(BUCKETS), "hoodie.enable.data.skipping": "false"})
    every = table.scan().plan().tasks.num_rows
    assert every > 1
    day = days[5]
    asked = [day.date(), "2024-01-06"] if kind == "date" else [day, "2024-01-06 00:00:00+00:00"]
    for value in [*asked, day.replace(tzinfo=None)]:
        found = table.scan([("id", "=", value)])
        assert found.to_arrow().num_rows == 1, value
        assert found.plan().tasks.num_rows == (1 if kind == "date" else every), value
    assert table.scan([("id", "=", day + dt.timedelta(hours=12))]).to_arrow().num_rows == 0
    assert table.lookup(asked[:1], by="id").num_rows == 1


def test_bucket_counts_of_partitions(spark: SparkSession, tmp_path: Path) -> None:
    path, model = str(tmp_path / "table"), Model()
    rules = {"hoodie__bucket__index__partition__expressions": "0$,2;^q,1"}
    for turn, more in enumerate((rules, {}, rules)):  # the table keeps them
        rows = [*batch(10 * turn, 10 * turn + 30, turn, f"turn {turn}"), ("x", "q", turn, ""), ("y", "q", turn, "")]
        model.upsert(rows)
        write(frame(spark, rows), path, bucketed("upsert", "MERGE_ON_READ", **more))
        assert rows_of(path) == model.rows
    slices = HudiTable.for_path(path).inspect.file_slices().to_pylist()
    assert {(row["partition"], int(row["file_id"][:8])) for row in slices} == {
        *(("p0", i) for i in range(2)),
        *(("p1", i) for i in range(BUCKETS)),
        ("q", 0),
    }
    found = HudiTable.for_path(path, bucket_index(BUCKETS)).scan(filter=[("id", "in", ["x", "k001", "k002"])])
    assert found.plan().tasks.num_rows < len(slices)
    assert found.to_arrow().num_rows == 3
    other = {"hoodie__bucket__index__partition__expressions": "p0,8"}
    with pytest.raises(ConfigError, match="leave the option out"):
        write(frame(spark, rows), path, bucketed("upsert", "MERGE_ON_READ", **other))
