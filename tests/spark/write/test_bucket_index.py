"""The simple bucket index: buckets as Spark computes them, and tables written with it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import ConfigError, ConflictError, RecordKeyError, UnsupportedTableError
from pyhudi.index.bucket_counts import BucketCounts
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.index.consistent_hashing import FIRST_INSTANT, FOLDER, HashingMetadata, consistent_hashes, load_metadata
from pyhudi.keygen import KeySpec
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.spark.write.plans.bucket_column import with_bucket
from pyhudi.spark.write.plans.bucket_plan import BucketPlan
from pyhudi.storage import open_storage
from pyhudi.table.config.key_generator_type import KeyGenType
from tests.bucket_numbers import bucket_of as bucket_of_key
from tests.cases import seldom
from tests.spark.model import Model, Row, by_event_time, frame, options, rows_of
from tests.spark.model import batch as records

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
def test_spark_computes_the_bucket_of_a_key(
    spark: SparkSession, record_fields: tuple[str, ...], fields: tuple[str, ...], legacy_key_split: bool
) -> None:
    spec = KeySpec(KeyGenType.COMPLEX, record_fields, len(record_fields) > 1, ())
    bucketing = BucketIndex(fields, BucketCounts(1_000_003), legacy_key_split)
    rows = spark.createDataFrame([(text, "p") for text in _TEXTS], f"{RECORD_KEY} string, {PARTITION_PATH} string")
    found = {row[0]: row[2] for row in with_bucket(rows, spec, bucketing, "bucket").collect()}
    expected = {text: bucket_of_key(text, fields, 1_000_003, legacy_key_split=legacy_key_split) for text in _TEXTS}
    assert found == expected


BUCKETS = 4
batch = partial(records, partitions=2)


def bucketed(operation: str, table_type: str, version: int = 9, **more: Any) -> dict[str, Any]:
    """Options of a write with the bucket index to a table that goes by event time."""
    index = {"hoodie__index__type": "BUCKET", "hoodie__bucket__index__num__buckets": BUCKETS}
    return by_event_time(operation, table_type, version, **{**index, **more})


def check_files(path: str) -> None:
    """Every bucket of a partition has one file group, with the keys that belong there."""
    slices = HudiTable.for_path(path).inspect.file_slices().to_pylist()
    groups = [(row["partition"], row["file_id"]) for row in slices]
    assert len({(partition, file_id[:8]) for partition, file_id in groups}) == len(groups)
    assert all(re.fullmatch(r"0000000[0-3]-.{27}-0", file_id) for _, file_id in groups)
    for row in HudiTable.for_path(path).scan(columns=[RECORD_KEY, "_hoodie_file_name"]).to_arrow().to_pylist():
        assert int(row["_hoodie_file_name"][:8]) == bucket_of_key(row[RECORD_KEY], ["id"], BUCKETS)


@pytest.mark.parametrize(
    ("table_type", "version"), [("COPY_ON_WRITE", 9), seldom(("MERGE_ON_READ", 9)), ("MERGE_ON_READ", 6)]
)
def test_all_operations_one_after_the_other(spark: SparkSession, tmp_path: Path, table_type: str, version: int) -> None:
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


@pytest.mark.parametrize("policy", ["fail", "drop"])
def test_rows_are_evaluated_once_where_known_keys_are_not_inserted(
    spark: SparkSession, tmp_path: Path, policy: str
) -> None:
    path = str(tmp_path / "table")
    given = bucketed("insert", "COPY_ON_WRITE", hoodie__datasource__insert__dup__policy=policy)
    write(frame(spark, records(0, 10, 1, "old")), path, given)
    evaluated = spark.sparkContext.accumulator(0)

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            evaluated.add(batch.num_rows)
            yield batch

    rows = frame(spark, records(5 if policy == "drop" else 10, 20, 2, "new"))
    write(rows.mapInArrow(count, rows.schema), path, given)
    assert evaluated.value == rows.count()
    assert rows_of(path) == sorted(records(0, 10, 1, "old") + records(10, 20, 2, "new"))


def test_settings_that_are_not_those_of_the_table_are_refused(spark: SparkSession, tmp_path: Path) -> None:
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


def test_a_table_with_buckets_takes_the_place_of_another(spark: SparkSession, tmp_path: Path) -> None:
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


def test_reads_leave_out_buckets(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write(frame(spark, batch(0, 80, 1, "a")), path, bucketed("upsert", "COPY_ON_WRITE"))
    settings = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": BUCKETS}
    table = HudiTable.for_path(path, settings)
    assert table.scan().plan().tasks.num_rows == 2 * BUCKETS
    for condition in ([("id", "=", "k007")], [("id", "in", ["k007", "k009"]), ("part", "=", "p1")]):
        found = table.scan(filter=condition)
        wanted = {bucket_of_key(key, ["id"], BUCKETS) for key in ("k007", "k009")[: 1 if len(condition) == 1 else 2]}
        assert {int(task[:8]) for task in found.plan().tasks["file_id"].to_pylist()} == wanted
        assert found.to_arrow().num_rows == len(condition)
    for condition in ([("id", ">", "k007")], [[("id", "=", "k007")], [("ts", "=", 1)]]):
        assert table.scan(filter=condition).plan().tasks.num_rows == 2 * BUCKETS
    wrong = HudiTable.for_path(path, {**settings, "hoodie.bucket.index.num.buckets": 512})
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
    settings = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": BUCKETS}
    # statistics of the key would leave files out, too
    table = HudiTable.for_path(path, {**settings, "hoodie.enable.data.skipping": "false"})
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


def test_consistent_hashing(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, model = str(tmp_path / "table"), Model()
    engine = {"hoodie__index__bucket__engine": "CONSISTENT_HASHING"}

    def step(operation: str, rows: list[Row], **more: Any) -> None:
        write(frame(spark, rows), path, bucketed(operation, "MERGE_ON_READ", **{**engine, **more}))
        assert rows_of(path) == model.rows, operation
        slices = HudiTable.for_path(path).inspect.file_slices().to_pylist()
        for row in slices:
            known = HashingMetadata.first(row["partition"], BUCKETS)
            assert row["file_id"] in known.file_ids()
            file = tmp_path / "table" / FOLDER / row["partition"] / f"{FIRST_INSTANT}.hashing_meta"
            assert file.read_bytes() == known.encode()

    rows = batch(0, 40, 10, "first")
    model.upsert(rows)
    step("upsert", rows)
    # the number of buckets counts for new partitions only, and here there is none
    rows = [*batch(0, 20, 11, "new"), *batch(40, 45, 1, "fresh"), ("k021", "p1", 9, "old")]
    model.upsert(rows)
    step("upsert", rows, hoodie__bucket__index__num__buckets=7)
    gone = [*batch(0, 3, 0, ""), ("nobody", "p1", 0, "")]
    model.delete(gone)
    step("delete", gone)
    rows = [("x", "other", 1, "bulk"), ("y", "p1", 1, "bulk")]
    model.upsert(rows)
    step("bulk_insert", rows)
    with pytest.raises(UnsupportedTableError, match="insert_overwrite is not supported with consistent hashing"):
        step("insert_overwrite", rows)
    with pytest.raises(UnsupportedTableError, match="delete_partition is not supported with consistent hashing"):
        step("delete_partition", rows)
    with pytest.raises(UnsupportedTableError, match="delete_partition is not supported with consistent hashing"):
        write(frame(spark, rows), path, options("delete_partition"))
    with pytest.raises(UnsupportedTableError, match="the save mode overwrite is not supported with consistent hashing"):
        write(frame(spark, rows), path, bucketed("upsert", "MERGE_ON_READ", **engine), "overwrite")
    assert rows_of(path) == model.rows
    with monkeypatch.context() as patch:  # Apache Hudi deletes partitions all the same
        patch.setattr("pyhudi.spark.write.delete_partition.check_not_consistent", lambda *_: None)
        write(frame(spark, rows[:1]), path, options("delete_partition"))
    model.drop("other")
    model.upsert(rows[1:])
    step("upsert", rows[1:])
    with pytest.raises(UnsupportedTableError, match="was replaced"):
        step("upsert", rows)
    assert rows_of(path) == model.rows
    with pytest.raises(UnsupportedTableError, match="bucket index"):
        write(frame(spark, rows), path, bucketed("upsert", "MERGE_ON_READ"))
    with pytest.raises(ConfigError, match="requires a merge-on-read table"):
        write(frame(spark, rows), str(tmp_path / "copies"), bucketed("upsert", "COPY_ON_WRITE", **engine))


def test_buckets_are_split_and_merged(spark: SparkSession, tmp_path: Path) -> None:
    path, model = str(tmp_path / "table"), Model()
    engine = {"hoodie__index__bucket__engine": "CONSISTENT_HASHING", "hoodie__bucket__index__num__buckets": 2}
    given = bucketed("upsert", "MERGE_ON_READ", **engine)

    def step(operation: str, rows: list[Row]) -> None:
        write(frame(spark, rows), path, bucketed(operation, "MERGE_ON_READ", **engine))
        assert rows_of(path) == model.rows, operation

    def resized(**rules: object) -> set[int]:
        """The numbers of buckets of partitions after a clustering; every row is where writes will look for it."""
        asked = {f"hoodie.bucket.index.{name.replace('_', '.')}": value for name, value in rules.items()}
        table = HudiTable.for_path(path)
        result = table.services.cluster({**given, **asked})
        assert result, result
        assert rows_of(path) == model.rows
        (instant,) = result.instants
        known = load_metadata(open_storage(path), ["p0", "p1"], ())
        assert {found.instant for found in known.values()} == {instant}
        found = table.scan(columns=[RECORD_KEY, PARTITION_PATH, "_hoodie_file_name"]).to_arrow()
        for partition, metadata in known.items():
            mine = found.filter(pc.equal(found[PARTITION_PATH], partition))
            ids = metadata.file_ids()
            buckets = metadata.buckets_of(consistent_hashes(mine[RECORD_KEY].combine_chunks(), ["id"]))
            files = mine["_hoodie_file_name"].to_pylist()
            assert all(file.startswith(ids[bucket]) for bucket, file in zip(buckets, files, strict=True))
        assert table.validate_metadata().num_rows == 0
        return {len(metadata.ends) for metadata in known.values()}

    rows = batch(0, 40, 10, "first")
    model.upsert(rows)
    step("upsert", rows)
    rows = batch(0, 20, 11, "logs")
    model.upsert(rows)
    step("upsert", rows)
    services = HudiTable.for_path(path).services
    tiny = {"hoodie.bucket.index.split.threshold": 1e-9, "hoodie.bucket.index.max.num.buckets": 4}
    plan = services.schedule_clustering({**given, **tiny})
    assert plan.outputs == (2, 2, 2, 2)
    with pytest.raises(ConflictError, match="clustering"):
        step("upsert", rows)
    assert rows_of(path) == model.rows
    assert services.run_clustering(options=given).instants == (plan.instant,)
    assert rows_of(path) == model.rows
    rows = [*batch(10, 60, 12, "after"), ("z", "p1", 1, "fresh")]
    model.upsert(rows)
    step("upsert", rows)
    assert resized() == {2}  # small ones, more than it began with
    assert services.cluster(given).reason.startswith("there are no file groups to cluster")
    assert resized(min_num_buckets=1) == {1}
    step("upsert", rows)
    assert resized(split_threshold=1e-9, max_num_buckets=2) == {2}
    gone = batch(0, 30, 0, "")
    model.delete(gone)
    step("delete", gone)
    # as if the process had died before it could say that the clustering is done
    marks = list((tmp_path / "table" / FOLDER).rglob("*.commit"))
    assert len(marks) == 8
    for mark in marks:
        mark.unlink()
    rows = batch(20, 50, 13, "last")
    model.upsert(rows)
    step("upsert", rows)
    assert len(list((tmp_path / "table" / FOLDER).rglob("*.commit"))) == 2
    # what is undone, the buckets included, is as if it had never been
    to = HudiTable.for_path(path).latest_instant
    assert to is not None
    assert resized(split_threshold=1e-9, max_num_buckets=4) == {4}
    HudiTable.for_path(path).services.restore(to)
    assert rows_of(path) == model.rows
    rows = batch(0, 60, 14, "restored")
    model.upsert(rows)
    step("upsert", rows)
    assert resized(split_threshold=1e-9, max_num_buckets=4) == {4}


def test_numbers_of_buckets_that_differ_between_partitions(spark: SparkSession, tmp_path: Path) -> None:
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
    settings = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": BUCKETS}
    found = HudiTable.for_path(path, settings).scan(filter=[("id", "in", ["x", "k001", "k002"])])
    assert found.plan().tasks.num_rows < len(slices)
    assert found.to_arrow().num_rows == 3
    other = {"hoodie__bucket__index__partition__expressions": "p0,8"}
    with pytest.raises(ConfigError, match="leave the option out"):
        write(frame(spark, rows), path, bucketed("upsert", "MERGE_ON_READ", **other))


NON_BLOCKING = {
    "hoodie__index__type": "BUCKET",
    "hoodie__bucket__index__num__buckets": 1,
    "hoodie__write__concurrency__mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie__compact__inline": False,
}


@pytest.mark.parametrize("version", [9, seldom(8)])
def test_non_blocking_writers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Writers append log files to the same file groups, also if both create them, while another compacts."""
    path = str(tmp_path / "table")

    def upsert(*rows: Row, operation: str = "upsert") -> None:
        write(frame(spark, rows), path, by_event_time(operation, "MERGE_ON_READ", version, **NON_BLOCKING))

    def upsert_with(meanwhile: Callable[[], object], *rows: Row, operation: str = "upsert") -> None:
        """Write while another writer is at work, and commits first."""
        real = BucketPlan.write

        def write_after_another(plan: BucketPlan, instant: str) -> pa.Table:
            monkeypatch.setattr(BucketPlan, "write", real)
            meanwhile()
            return real(plan, instant)

        monkeypatch.setattr(BucketPlan, "write", write_after_another)
        upsert(*rows, operation=operation)

    upsert(("a", "p", 1, "first"), operation="insert")
    upsert_with(
        lambda: upsert(("a", "p", 5, "theirs"), ("b", "p", 2, "theirs"), ("c", "q", 1, "theirs")),
        *(("a", "p", 4, "ours"), ("b", "p", 3, "ours"), ("c", "q", 2, "ours")),
    )
    assert rows_of(path) == [("a", "p", 5, "theirs"), ("b", "p", 3, "ours"), ("c", "q", 2, "ours")]
    table = HudiTable.for_path(path)
    slices = table.inspect.file_slices().select(["partition", "file_id", "base_path"]).to_pylist()
    assert slices == [
        {"partition": name, "file_id": "00000000-0000-0000-0000-000000000000-0", "base_path": None} for name in "pq"
    ]
    # what completes after a compaction was planned is not part of it
    upsert_with(table.services.compact, ("a", "p", 6, "later"), ("b", "p", 1, "late"), ("d", "p", 1, "new"))
    expected = [("a", "p", 6, "later"), ("b", "p", 3, "ours"), ("c", "q", 2, "ours"), ("d", "p", 1, "new")]
    assert rows_of(path) == expected
    plans: list[str] = []
    upsert_with(lambda: plans.append(str(table.services.schedule_compaction().instant)), ("c", "q", 3, "x"))
    table.services.run_compaction(plans[0])
    expected[2] = ("c", "q", 3, "x")
    assert rows_of(path) == expected
    table.services.compact()
    upsert_with(lambda: upsert(("d", "p", 2, "x")), ("a", "p", 9, "x"), operation="delete")
    assert rows_of(path) == [*expected[1:3], ("d", "p", 2, "x")]
    assert table.validate_metadata().num_rows == 0
    # base files may not be written meanwhile
    with pytest.raises(ConflictError, match="concurrently changed file group '00000000-0000"):
        upsert_with(lambda: upsert(("e", "r", 1, "theirs")), ("f", "r", 1, "ours"), operation="bulk_insert")
    assert [row[0] for row in rows_of(path)] == ["b", "c", "d", "e"]


@pytest.mark.parametrize(
    "other",
    [
        {"hoodie__datasource__write__table__type": "COPY_ON_WRITE"},
        {"hoodie__write__table__version": 6},
        {"hoodie__index__type": "SIMPLE"},
        {"hoodie__index__bucket__engine": "CONSISTENT_HASHING"},
    ],
)
def test_tables_that_non_blocking_writers_cannot_write(
    spark: SparkSession, tmp_path: Path, other: dict[str, object]
) -> None:
    given = {"hoodie__datasource__write__table__type": "MERGE_ON_READ", **NON_BLOCKING, **other}
    with pytest.raises(
        ConfigError, match="requires a merge-on-read table of version 8 or later with the simple bucket"
    ):
        write(frame(spark, [("a", "p", 1, "x")]), str(tmp_path / "table"), options("upsert", **given))
    assert not (tmp_path / "table").exists()


def test_what_non_blocking_writers_cannot_do(spark: SparkSession, tmp_path: Path) -> None:
    """The ids of their file groups come again, and would be those of replaced ones; indexes of keys have no order."""
    path = str(tmp_path / "table")

    def run(*rows: Row, operation: str = "upsert", **more: object) -> None:
        given = {**NON_BLOCKING, **more}
        write(frame(spark, rows), path, by_event_time(operation, "MERGE_ON_READ", 9, **given))

    run(("a", "p", 1, "x"), ("b", "q", 1, "x"))
    for operation in ("insert_overwrite", "insert_overwrite_table", "delete_partition"):
        with pytest.raises(UnsupportedTableError, match="replaces file groups"):
            run(("a", "p", 2, "y"), operation=operation)
    with pytest.raises(UnsupportedTableError, match="the index record_index cannot tell"):
        run(("a", "p", 2, "y"), hoodie__metadata__record__index__enable="true")
    one = {"hoodie__write__concurrency__mode": "SINGLE_WRITER"}
    run(("a", "p", 2, "y"), operation="delete_partition", **one)
    with pytest.raises(UnsupportedTableError, match="was replaced, as by delete_partition"):
        run(("a", "p", 3, "z"))
    assert rows_of(path) == [("b", "q", 1, "x")]
    run(("a", "p", 3, "z"), **one)
    assert rows_of(path) == [("a", "p", 3, "z"), ("b", "q", 1, "x")]
