"""Save modes, new tables, schema evolution, kinds of tables and files, what commits say."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import ConfigError, NonRetryableConflictError, QueryError, SchemaMismatchError, TableExistsError
from pyhudi.spark.read.load_table import load_table
from pyhudi.spark.read.table_lineage import snapshot_ids
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.storage import open_storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.transaction.transaction import Transaction
from tests.cases import seldom
from tests.dynamodb_server import dynamodb_server
from tests.spark.model import frame, options, rows_of
from tests.tables import HandMadeTable

ROWS = [("a", "p", 1, "one"), ("b", "p", 1, "one"), ("c", "q", 1, "one")]


def commits(path: str) -> list[dict[str, object]]:
    """Operation, extra metadata and replaced groups of the completed writes, oldest first."""
    active = TableMetaClient.open(path).active_timeline()
    found = [active.commit_metadata(i) for i in active.timeline.writes().completed()]
    return [{"operation": m.operation, "extra": dict(m.extra), "stats": m.stats, "replaced": m.replaced} for m in found]


# --- save modes ------------------------------------------------------------------------------------------------------


def test_ignore_and_errorifexists(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    assert write(frame(spark, ROWS), path, options("insert"), "ignore").created_table
    result = write(frame(spark, ROWS), path, options("insert"), "ignore")
    assert (result.instant, result.num_files) == (None, 0)
    for mode in ("errorifexists", "error", "default"):
        with pytest.raises(TableExistsError, match="append"):
            write(frame(spark, ROWS), path, options("insert"), mode)
    assert len(rows_of(path)) == 3
    assert write(frame(spark, ROWS), str(tmp_path / "other"), options("insert"), "errorifexists").num_inserts == 3


@pytest.mark.parametrize(("old", "new"), [seldom((9, 9)), seldom((8, 9)), (6, 9), seldom((9, 6))])
def test_overwrite_creates_a_table(spark: SparkSession, tmp_path: Path, old: int, new: int) -> None:
    path = str(tmp_path / "table")
    write(frame(spark, ROWS), path, options("insert", hoodie__write__table__version=old))
    write(frame(spark, [("d", "gone", 1, "one")]), path, options("upsert"))
    reading = HudiTable.for_path(path).scan().to_spark(spark)
    other = spark.createDataFrame([(1, "x", "q"), (2, "y", "q")], "n int, v string, part string")
    more = {
        "hoodie__datasource__write__recordkey__field": "n",
        "hoodie__datasource__write__precombine__field": None,
        "hoodie__write__table__version": new,
        "hoodie__table__name": "another",
    }
    result = write(other, path, options("insert" if new == 9 else "bulk_insert", **more), "overwrite")
    assert result.created_table
    assert rows_of(path, ("n", "v", "part")) == [(1, "x", "q"), (2, "y", "q")]
    table = HudiTable.for_path(path)
    assert (table.config.version, table.config.record_keys, table.config.name) == (new, ("n",), "another")
    assert table.history().num_rows == 1
    assert sorted(row.id for row in reading.collect()) == ["a", "b", "c", "d"], "who was reading reads on"
    assert write(other, path, options("upsert", **more)).num_updates == 2


def test_overwrite_by_other_partitions(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write(frame(spark, ROWS), path, options("insert"))
    write(frame(spark, ROWS), path, options("insert", hoodie__datasource__write__partitionpath__field="v"), "overwrite")
    marks = {p.parent.name for p in Path(path).rglob(".hoodie_partition_metadata") if ".hoodie" not in p.parts}
    assert marks == {p.parent.name for p in Path(path).rglob("*.parquet")} == {"one"}


def test_overwrite_keeps_history(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    first = write(frame(spark, ROWS), path, options("insert"))
    for value in ("two", "three"):
        write(frame(spark, [("e", "r", 1, value)]), path, options("insert"), "overwrite")
    assert rows_of(path) == [("e", "r", 1, "three")]
    table = HudiTable.for_path(path)
    assert table.history()["operation"].to_pylist() == ["INSERT"] * 3
    assert table.scan(as_of=first.instant).count() == 3
    assert table.validate_metadata().num_rows == 0
    changed = table.scan(begin=table.completion_of(str(first.instant))).to_arrow()
    assert changed["v"].to_pylist() == ["three"]


def test_overwrite_with_own_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write(frame(spark, ROWS), path, options("insert"))
    own = HudiTable.for_path(path).scan().to_spark(spark).where("id <> 'b'")
    write(own, path, options("bulk_insert"), "overwrite")
    assert [row[0] for row in rows_of(path)] == ["a", "c"]


def test_insert_overwrite_table(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write(frame(spark, ROWS), path, options("insert"))
    write(frame(spark, ROWS[:1]), path, options("insert_overwrite_table"), "overwrite")
    assert len(rows_of(path)) == 1
    assert HudiTable.for_path(path).history().num_rows == 2


# --- bulk insert -----------------------------------------------------------------------------------------------------


def test_sort_modes(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 300, 1, 4).selectExpr(
        "cast((id * 37) % 300 as string) id", "concat('p', id % 3) part", "id ts", "'v' v"
    )
    expected = {
        "NONE": (12, False),
        "GLOBAL_SORT": (3, True),
        "PARTITION_SORT": (12, True),
        "PARTITION_PATH_REPARTITION": (3, False),
        "PARTITION_PATH_REPARTITION_AND_SORT": (3, False),
    }
    for mode, (files, by_key) in expected.items():
        path = str(tmp_path / mode)
        result = write(rows, path, options("bulk_insert", hoodie__bulkinsert__sort__mode=mode))
        assert len(rows_of(path)) == 300
        assert files == result.num_files or (mode == "GLOBAL_SORT" and result.num_files <= 6), mode
        if by_key:
            for name in result.stats["path"].to_pylist():
                keys = pq.read_table(Path(path) / name, partitioning=None)["id"].to_pylist()
                assert keys == sorted(keys), mode
    path = str(tmp_path / "limited")
    more = {"hoodie__bulkinsert__sort__mode": "PARTITION_SORT", "hoodie__bulkinsert__shuffle__parallelism": 2}
    assert write(rows, path, options("bulk_insert", **more)).num_files == 6
    path = str(tmp_path / "columns")
    more = {"hoodie__bulkinsert__user__defined__partitioner__sort__columns": "ts"}
    result = write(rows, path, options("bulk_insert", **more))
    for name in result.stats["path"].to_pylist():
        times = pq.read_table(Path(path) / name, partitioning=None)["ts"].to_pylist()
        assert times == sorted(times)


def test_combine_before_insert(spark: SparkSession, tmp_path: Path) -> None:
    rows = [("a", "p", 1, "weak"), ("a", "p", 2, "strong")]
    path = str(tmp_path / "table")
    write(frame(spark, rows), path, options("bulk_insert", hoodie__combine__before__insert=True))
    assert rows_of(path) == [("a", "p", 2, "strong")]


# --- kinds of tables -------------------------------------------------------------------------------------------------


def test_generated_keys(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    more = {"hoodie__datasource__write__recordkey__field": None, "hoodie__datasource__write__precombine__field": None}
    for operation in ("bulk_insert", "insert"):
        write(frame(spark, ROWS), path, options(operation, **more))
    keys = rows_of(path, ("_hoodie_record_key", "_hoodie_commit_time"))
    assert len(keys) == len(set(keys)) == 6
    assert all(key.startswith(time) for key, time in keys)


@pytest.mark.parametrize(
    ("encoding", "value", "key"),
    # a value may begin as a key with names does
    [
        seldom(("false", "a", "id:a")),
        ("true", "a", "a"),
        seldom(("false", "id:a", "id:id:a")),
        seldom(("true", "id:a", "id:a")),
    ],
)
def test_complex_keys_of_one_field(spark: SparkSession, tmp_path: Path, encoding: str, value: str, key: str) -> None:
    path = str(tmp_path / "table")
    option = "hoodie__write__complex__keygen__new__encoding"
    more = {
        "hoodie__write__table__version": 8,
        "hoodie__datasource__write__keygenerator__class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    }
    write(frame(spark, [(value, "p", 1, "one")]), path, options("insert", **more, **{option: encoding}))
    assert rows_of(path, ("_hoodie_record_key",)) == [(key,)]
    # whatever a later writer says, or does not say, the record must be found again
    for ts, later in enumerate(({}, {option: "true"}, {option: "false"}), 2):
        write(frame(spark, [(value, "p", ts, "again")]), path, options("upsert", **more, **later))
        assert rows_of(path, ("_hoodie_record_key", "ts")) == [(key, ts)]


@pytest.mark.parametrize("table_type", [seldom("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_complex_keys_without_names_in_version_9(spark: SparkSession, tmp_path: Path, table_type: str) -> None:
    """Flink's writer leaves out the name of the field in some cases."""
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
    properties = {
        "hoodie.table.name": "model",
        "hoodie.table.type": table_type,
        "hoodie.table.keygenerator.type": "COMPLEX",
        "hoodie.table.ordering.fields": "ts",
    }
    made = HandMadeTable(tmp_path / "table", partition_fields="part", schema=schema, properties=properties)
    files = {("p", "f0-0"): [{"id": "a", "part": "p", "ts": 1, "v": "one"}]}
    (made.log if table_type == "MERGE_ON_READ" else made.write)(1, files)
    write(frame(spark, [("a", "p", 2, "two")]), str(made.root), options("upsert"))
    assert rows_of(str(made.root), ("_hoodie_record_key", "ts")) == [("a", 2)]


def test_without_partitions(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    plain = options("upsert", hoodie__datasource__write__partitionpath__field="")
    write(frame(spark, ROWS), path, plain)
    write(frame(spark, [("b", "elsewhere", 2, "two")]), path, plain)
    assert [row[3] for row in rows_of(path)] == ["one", "two", "one"]
    assert (Path(path) / ".hoodie_partition_metadata").exists()


def test_virtual_keys(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    more = {"hoodie__populate__meta__fields": False}
    write(frame(spark, ROWS), path, options("bulk_insert", **more))
    write(frame(spark, [("b", "p", 2, "two"), ("n", "p", 2, "two")]), path, options("upsert", **more))
    write(frame(spark, [("a", "p", 2, "")]), path, options("delete", **more))
    assert rows_of(path) == [("b", "p", 2, "two"), ("c", "q", 1, "one"), ("n", "p", 2, "two")]


def test_dropped_partition_columns(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    more = {"hoodie__datasource__write__drop__partition__columns": True}
    write(frame(spark, ROWS), path, options("insert", **more))
    write(frame(spark, [("b", "p", 2, "two")]), path, options("upsert", **more))
    assert rows_of(path) == [("a", "p", 1, "one"), ("b", "p", 2, "two"), ("c", "q", 1, "one")]
    for file in Path(path).rglob("*.parquet"):
        assert "part" not in pq.read_schema(file).names
    schema = commits(path)[-1]["extra"]["schema"]  # type: ignore[index]
    assert [field["name"] for field in json.loads(schema)["fields"]] == ["id", "ts", "v"]


@pytest.mark.parametrize("cast", ["date(part)", "unix_micros(part)"])
def test_dropped_partition_columns_of_timestamps(spark: SparkSession, tmp_path: Path, cast: str) -> None:
    """Refused before anything is written; what the message says makes a table that can be written again."""
    path = str(tmp_path / "table")
    more = {"hoodie__datasource__write__drop__partition__columns": True}
    rows = frame(spark, ROWS).withColumn("part", F.expr("timestamp'2024-01-02 03:04:05'"))
    with pytest.raises(SchemaMismatchError, match=r"'part' is timestamp.*cast it to a date, or to a number"):
        write(rows, path, options("insert", **more))
    assert not Path(path).exists()
    for _ in range(2):
        write(rows.withColumn("part", F.expr(cast)), path, options("upsert", **more))
    assert HudiTable.for_path(path).scan().to_spark(spark).select("id", "part").distinct().count() == len(ROWS)


def test_merge_on_read(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    more = {"hoodie__datasource__write__table__type": "MERGE_ON_READ"}
    write(frame(spark, ROWS), path, options("bulk_insert", **more))
    write(frame(spark, [("d", "p", 1, "one")]), path, options("insert", **more))
    assert [row[0] for row in rows_of(path)] == ["a", "b", "c", "d"]
    actions = HudiTable.for_path(path).history()["action"].to_pylist()
    assert actions == ["deltacommit", "deltacommit"]


# --- schema ----------------------------------------------------------------------------------------------------------


def test_schema_evolution(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write(spark.createDataFrame([("a", 1, 1), ("b", 1, 1)], "id string, ts int, n int"), path, _flat("insert"))
    # a wider type and a new column, by a merge
    rows = spark.createDataFrame([("b", 2, 2**40, "x"), ("c", 2, 2, "y")], "id string, ts int, n long, extra string")
    write(rows, path, _flat("upsert"))
    expected = [("a", 1, 1, None), ("b", 2, 2**40, "x"), ("c", 2, 2, "y")]
    assert rows_of(path, ("id", "ts", "n", "extra")) == expected
    # a narrower type is widened, a missing column filled with null when told to
    rows = spark.createDataFrame([("d", 3, 4)], "id string, ts int, n int")
    write(rows, path, _flat("insert", hoodie__write__set__null__for__missing__columns=True))
    assert rows_of(path, ("id", "ts", "n", "extra")) == [*expected, ("d", 3, 4, None)]
    write(rows.select("id"), path, _flat("delete"))
    assert rows_of(path, ("id", "ts", "n", "extra")) == expected
    names = [f["name"] for f in json.loads(commits(path)[-1]["extra"]["schema"])["fields"]]  # type: ignore[index]
    assert names == ["id", "ts", "n", "extra"]


def _flat(operation: str, **more: object) -> dict[str, object]:
    return options(operation, hoodie__datasource__write__partitionpath__field="", **more)


def test_all_types(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    columns = """id, true b, cast(id as int) i, id l, cast(1.5 as float) f, cast(2.5 as double) d,
        cast('12.34' as decimal(9, 2)) m, cast('1e20' as decimal(38, 3)) w, date'2024-02-29' dt,
        timestamp'2024-02-29 12:34:56.789012' t, timestamp_ntz'2024-02-29 12:34:56.789012' n, cast('xyz' as binary) y,
        array(1, 2) a, array(named_struct('x', id, 'z', array('q'))) s, map('k', named_struct('u', id)) p,
        named_struct('a', named_struct('b', id)) c, cast(null as string) nothing"""
    rows = spark.range(3).selectExpr(*[c.strip() for c in _split(columns)])
    first = {"hoodie.table.name": "types", "hoodie.datasource.write.recordkey.field": "id"}
    write(rows, path, {**first, "hoodie.datasource.write.operation": "insert"})
    write(rows.where("id > 0"), path, {**first, "hoodie.datasource.write.operation": "upsert"})
    found = HudiTable.for_path(path).scan().to_spark(spark).select(*rows.columns)
    assert found.dtypes == rows.dtypes
    assert sorted(found.collect(), key=lambda row: row["id"]) == rows.collect()


@pytest.mark.parametrize("codec", ["ZLIB", seldom("NONE")])
def test_orc_files(spark: SparkSession, tmp_path: Path, codec: str) -> None:
    path = str(tmp_path / "table")
    more = {
        "hoodie.table.name": "orc",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.table.base.file.format": "ORC",
        "hoodie.orc.compression.codec": codec,
    }
    rows = spark.range(3).selectExpr(
        "id",
        "timestamp'2024-07-01 12:34:56.789012' t",
        "timestamp_ntz'2024-07-01 12:34:56.789012' n",
        "named_struct('t', timestamp'1960-01-01 00:00:00') s",
        "'x' v",
    )
    write(rows, path, {**more, "hoodie.datasource.write.operation": "insert"})
    write(rows.where("id > 0").withColumn("v", F.lit("y")), path, more)
    expected = [(*row[:4], "y" if row[0] else "x") for row in rows.collect()]
    # Spark itself takes the times of ORC files in the zone of its JVM, and local times for plain numbers
    scan = HudiTable.for_path(path).scan()
    found = scan.to_spark(spark).select(*rows.columns)
    assert found.dtypes == rows.dtypes
    assert sorted(tuple(row) for row in found.collect()) == sorted(expected)
    assert scan.count() == 3
    with pytest.raises(QueryError, match="ORC"):
        HudiTable.for_path(path, {"pyhudi.read.engine": "spark"}).scan().to_spark(spark)


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return parts


# --- what commits say ------------------------------------------------------------------------------------------------


def test_commit_metadata(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write(frame(spark, ROWS), path, {**options("insert"), "_job": "nightly", "other": "no"})
    write(frame(spark, ROWS), path, options("upsert", hoodie__datasource__write__commitmeta__key__prefix="my."))
    write(frame(spark, ROWS[:1]), path, options("insert_overwrite"))
    first, second, third = commits(path)
    assert first["operation"] == "INSERT"
    extra = first["extra"]
    assert isinstance(extra, dict)
    assert extra.keys() == {"schema", "_job"}
    assert extra["_job"] == "nightly"
    assert second["extra"].keys() == {"schema"}  # type: ignore[attr-defined]
    replaced = third["replaced"].to_pylist()  # type: ignore[attr-defined]
    assert [row["partition"] for row in replaced] == ["p"]
    stats = second["stats"].to_pylist()  # type: ignore[attr-defined]
    for row in stats:
        assert row["numUpdateWrites"] in (1, 2)
        assert row["fileSizeInBytes"] == (Path(path) / row["path"]).stat().st_size
        assert row["prevCommit"] < row["path"].rsplit("_", 1)[1]
        assert row["runtimeStats"]["totalUpsertTime"] >= 0


# --- writers of one process ------------------------------------------------------------------------------------------


def test_concurrent_upserts(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")

    def upsert(number: int) -> bool:
        rows = [("a", "p", number, "one"), (f"own{number}", "p", 1, "one")]
        return write(frame(spark, rows), path, options("upsert")).created_table

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(upsert, range(3))) == [False, False, True]
    assert [row[0] for row in rows_of(path)] == ["a", "own0", "own1", "own2"]
    assert [commit["operation"] for commit in commits(path)] == ["UPSERT"] * 3


def test_dynamodb_locks(spark: SparkSession, tmp_path: Path) -> None:
    """Writers to different partitions, and all commit."""
    path = str(tmp_path / "table")
    with dynamodb_server() as server:
        lock = {
            "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
            "hoodie.cleaner.policy.failed.writes": "LAZY",
            "hoodie.write.lock.provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
            "hoodie.write.lock.dynamodb.table": "locks",
            "hoodie.write.lock.dynamodb.endpoint_url": server.endpoint,
            "hoodie.aws.access.key": "x",
            "hoodie.aws.secret.key": "y",
        }

        def upsert(part: str) -> None:
            write(frame(spark, [(f"{part}1", part, 1, "one")]), path, options("upsert") | lock)

        upsert("p")
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(upsert, "qr"))
        deadline = time.monotonic() + 30  # Locks are released when the clock skew has passed.
        while items := server.client.scan(TableName="locks")["Items"]:
            assert time.monotonic() < deadline, items
            time.sleep(0.02)
        assert server.requests.count("delete_item") >= 3
    assert [row[0] for row in rows_of(path)] == ["p1", "q1", "r1"]


def test_the_lock_is_checked_before_a_table_is_created(spark: SparkSession, tmp_path: Path) -> None:
    path, several = tmp_path / "table", {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    lock = several | {"hoodie.write.lock.zookeeper.url": "zookeeper"}
    with pytest.raises(ConfigError, match=r"hoodie\.write\.lock\.zookeeper\.base_path"):
        write(frame(spark, ROWS), str(path), options("upsert") | lock)
    assert not path.exists()


def test_conflict_retries(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "table")
    write(frame(spark, ROWS), path, options("insert"))
    several = options("upsert", hoodie__write__concurrency__mode="optimistic_concurrency_control")
    original, others = Transaction.to_inflight, [("a", "p", 2, "other")]

    def overtaken(self: Transaction, metadata: CommitMetadata | None = None) -> None:
        if others:
            write(frame(spark, [others.pop()]), path, several)
        original(self, metadata)

    monkeypatch.setattr(Transaction, "to_inflight", overtaken)
    retrying = {**several, "hoodie.write.num.retries.on.conflict.failures": "1"}
    result = write(frame(spark, [("a", "p", 3, "mine")]), path, retrying)
    assert (result.retries, result.num_updates) == (1, 1)
    assert [row for row in rows_of(path) if row[0] == "a"] == [("a", "p", 3, "mine")]
    # what was read from the table before the conflict would undo the other writer's commit
    others.append(("b", "p", 2, "other"))
    own = load_table(spark, path).select("id", "part", (F.col("ts") + 1).alias("ts"), F.lit("mine").alias("v"))
    with pytest.raises(NonRetryableConflictError, match="load the table again"):
        write(own, path, {**retrying, "hoodie.datasource.write.operation": "insert_overwrite_table"})
    assert [row for row in rows_of(path) if row[0] == "b"] == [("b", "p", 2, "other")]


@pytest.mark.parametrize("kind", [seldom("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_lineage(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / "a table")
    write(frame(spark, ROWS), path, options("insert", hoodie__datasource__write__table__type=kind))
    write(frame(spark, ROWS[:1]), path, options("upsert"))
    other = str(tmp_path / "a table 2")
    frame(spark, ROWS).write.parquet(other)
    table, loaded, elsewhere = HudiTable.for_path(path), load_table(spark, path), spark.read.parquet(other)
    loaded.createOrReplaceTempView("seen")
    kept = table.scan("part = 'p'").to_spark(spark).groupBy("id").count().cache()
    frames = [
        loaded.where("id > 'a'").withColumn("ts", F.col("ts") + 1),
        elsewhere.join(kept, "id").select("id"),
        spark.sql("SELECT 1 AS id, (SELECT max(ts) FROM seen) AS ts"),
        load_table(
            spark,
            path,
            {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "0"},
        ),
        spark.read.option("recursiveFileLookup", True).option("pathGlobFilter", "*.parquet").parquet(path),
    ]
    storage = open_storage(path)
    found = [snapshot_ids(one, storage) for one in frames]
    assert all(found)
    assert len(found[0] | found[1] | found[2]) == 1
    write(frame(spark, ROWS[:1]), path, options("upsert"))
    assert found[0].isdisjoint(snapshot_ids(load_table(spark, path), storage))
    for one in (elsewhere, frame(spark, ROWS), spark.range(1), frame(spark, ROWS).join(elsewhere, "id")):
        assert not snapshot_ids(one, storage)
    # rows that went through an RDD, which reads the files of the old snapshot
    through_rdd = spark.createDataFrame(loaded.select("id").rdd.map(tuple), "id string")
    assert snapshot_ids(through_rdd, storage)
    kept.unpersist()
    spark.catalog.dropTempView("seen")
