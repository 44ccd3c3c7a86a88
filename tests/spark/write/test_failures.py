"""Writes that fail or die in the middle leave nothing that is seen, and the next writer clears up behind them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import ConflictError, StorageError, TransactionError
from pyhudi.spark.read.load_table import load_table
from pyhudi.spark.write import write_execution
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.transaction.transaction import Transaction
from tests.cases import seldom
from tests.spark.model import frame, options, rows_of, tree

ROWS = [(f"k{i:02d}", f"p{i % 2}", 1, "one") for i in range(20)]


def failing(spark: SparkSession) -> DataFrame:
    """Rows of which one makes Spark fail when it is evaluated, late."""
    rows = spark.range(0, 4000, 1, 2).selectExpr("concat('n', id) id", "concat('p', id % 2) part", "id ts")
    bad = F.when(F.col("ts") == 3999, F.raise_error(F.lit("the source broke"))).otherwise(F.lit("v"))
    return rows.withColumn("v", bad.cast("string"))


def data_files(path: Path) -> set[str]:
    return {name for name in tree(path) if name.endswith(".parquet")}


def test_a_source_that_breaks(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    write(frame(spark, ROWS), str(path), options("insert"))
    before = data_files(path)
    for operation in ("bulk_insert", "upsert", "insert_overwrite_table"):
        for mode in ("append", "overwrite"):
            with pytest.raises(Exception, match="the source broke"):
                write(failing(spark), str(path), options(operation), mode)
            assert data_files(path) == before, (operation, mode)
            assert rows_of(path) == sorted(ROWS)
    assert not (path / ".hoodie" / ".temp").exists() or not list((path / ".hoodie" / ".temp").rglob("*.marker*"))
    assert HudiTable.for_path(str(path)).history()["state"].to_pylist().count("INFLIGHT") == 0


def test_damaged_files_are_not_skipped(spark: SparkSession, tmp_path: Path) -> None:
    """A session that ignores corrupt and missing files does not do so in tables: their rows would be lost."""
    path, more = tmp_path / "table", {"hoodie__index__type": "GLOBAL_SIMPLE"}
    write(frame(spark, ROWS), str(path), options("insert", **more))
    damaged = next(path / name for name in sorted(data_files(path)) if name.startswith("p1"))
    content = damaged.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    damaged.write_bytes(content[:4] + bytes(len(content) - 4 - footer) + content[-footer:])
    before = data_files(path)
    for setting in ("ignoreCorruptFiles", "ignoreMissingFiles"):
        spark.conf.set(f"spark.sql.files.{setting}", "true")
    planned = load_table(spark, str(path))
    try:
        with pytest.raises(Exception, match=r"(?i)failed to read|can not read|could not read"):
            planned.collect()
        with pytest.raises(Exception, match=r"(?i)failed to read|can not read|could not read"):
            write(frame(spark, [("k01", "p1", 2, "two")]), str(path), options("upsert", **more))
        with pytest.raises(Exception, match=r"(?i)failed to read|can not read|could not read"):
            HudiTable.for_path(str(path)).update({"v": "'two'"}, "ts = 1")
        assert data_files(path) == before
        damaged.unlink()
        with pytest.raises(Exception, match=damaged.name):
            planned.collect()
    finally:
        for setting in ("ignoreCorruptFiles", "ignoreMissingFiles"):
            spark.conf.unset(f"spark.sql.files.{setting}")
    damaged.write_bytes(content)
    assert rows_of(path) == sorted(ROWS)


@pytest.mark.parametrize("version", [6, seldom(8), 9])
def test_the_next_writer_rolls_a_dead_one_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    path = tmp_path / "table"
    write(frame(spark, ROWS), str(path), options("insert", hoodie__write__table__version=version))
    before = data_files(path)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for operation in ("upsert", "bulk_insert"):
        with monkeypatch.context() as patch:
            # killed after all data files are written, before the commit, without a chance to clear up
            patch.setattr(Transaction, "commit", die)
            patch.setattr(Transaction, "abort", die)
            with pytest.raises(KeyboardInterrupt):
                write(frame(spark, [("k00", "p0", 9, "lost"), ("x", "p9", 1, "lost")]), str(path), options(operation))
        assert data_files(path) > before
        assert rows_of(path) == sorted(ROWS), "files of an unfinished write are not seen"

        write(frame(spark, ROWS[:1]), str(path), options("upsert"))
        assert rows_of(path) == sorted(ROWS)
        history = HudiTable.for_path(str(path)).history().to_pylist()
        assert [row["action"] for row in history].count("rollback") >= 1
        assert all(row["state"] == "COMPLETED" for row in history)
        left = data_files(path) - before
        assert not [name for name in left if "p9" in name]
        before = data_files(path)


def test_a_writer_that_commits_in_between_makes_the_plan_anew(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "table")
    write(frame(spark, ROWS), path, options("insert"))
    begin = Transaction.begin.__func__  # type: ignore[attr-defined]
    done = []

    def begin_late(cls: type[Transaction], *args: object, **more: object) -> Transaction:
        if not done:
            done.append(True)
            write(frame(spark, [("k00", "p0", 5, "between"), ("new", "p0", 5, "between")]), path, options("upsert"))
        return begin(cls, *args, **more)  # type: ignore[no-any-return]

    monkeypatch.setattr(Transaction, "begin", classmethod(begin_late))
    rows = [("k00", "p0", 3, "older"), ("k01", "p1", 3, "mine"), ("new", "p0", 9, "mine")]
    result = write(frame(spark, rows), path, options("upsert"))
    assert (result.num_inserts, result.num_updates) == (0, 2)
    found = {row[0]: row[3] for row in rows_of(path)}
    assert (found["k00"], found["k01"], found["new"]) == ("between", "mine", "mine")
    assert len(found) == 21


@pytest.mark.parametrize(("version", "index"), [(6, "BUCKET"), seldom((6, "SIMPLE")), seldom((9, "BUCKET"))])
def test_a_compaction_that_completes_in_between_makes_the_plan_anew(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, index: str
) -> None:
    """The instants are the same as before; in version 6 log files would go to the slice that has been compacted."""
    path = str(tmp_path / "table")
    mor = {"hoodie__datasource__write__table__type": "MERGE_ON_READ", "hoodie__write__table__version": version}
    extra = {"hoodie__index__type": index, "hoodie__bucket__index__num__buckets": 1, "hoodie__compact__inline": False}
    write(frame(spark, ROWS), path, options("insert", **mor, **extra))
    upsert = options("upsert", **extra)
    write(frame(spark, [("k00", "p0", 2, "two"), ("k01", "p1", 2, "two")]), path, upsert)
    services = HudiTable.for_path(path).services
    planned = services.schedule_compaction().instant
    assert planned is not None
    begin = Transaction.begin.__func__  # type: ignore[attr-defined]
    done: list[str] = []

    def begin_late(cls: type[Transaction], *args: object, **more: object) -> Transaction:
        if not done:
            done.extend(services.run_compaction().instants)
        return begin(cls, *args, **more)  # type: ignore[no-any-return]

    monkeypatch.setattr(Transaction, "begin", classmethod(begin_late))
    write(frame(spark, [("k00", "p0", 3, "three"), ("k03", "p1", 3, "three")]), path, upsert)
    assert done == [planned]
    found = {row[0]: row[3] for row in rows_of(Path(path))}
    assert [found[key] for key in ("k00", "k01", "k02", "k03")] == ["three", "two", "one", "three"]


def test_a_table_in_which_somebody_else_writes_stays(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, others = str(tmp_path / "table"), []

    def meanwhile(*_: object) -> None:
        # another writer, that takes nobody for dead, has begun on the table which the first one has made
        never = {**options("insert"), "hoodie.clean.failed.writes.policy": "NEVER"}
        others.append(Transaction.begin(TableMetaClient.open(path), "commit", "INSERT", Options.parse(never)))
        raise StorageError("the disk is full")

    monkeypatch.setattr(Transaction, "to_inflight", meanwhile)
    with pytest.raises(StorageError, match="full"):
        write(frame(spark, ROWS), path, options("bulk_insert"))
    timeline = TableMetaClient.open(path).active_timeline().timeline
    assert timeline.pending().writes().last.requested == others[0].instant


@pytest.mark.parametrize(
    ("version", "index"), [seldom((6, "SIMPLE")), seldom((8, "SIMPLE")), (9, "SIMPLE"), (6, "BUCKET")]
)
def test_the_next_writer_rolls_back_what_a_dead_one_logged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, index: str
) -> None:
    path = tmp_path / "table"
    mor = {"hoodie__datasource__write__table__type": "MERGE_ON_READ", "hoodie__write__table__version": version}
    upsert = options("upsert", hoodie__index__type=index, hoodie__bucket__index__num__buckets=1)
    write(frame(spark, ROWS), str(path), {**upsert, **options("insert", **mor)})

    def logs() -> list[str]:
        files = [name for name in tree(path) if not name.startswith(".hoodie")]
        return sorted(name.rpartition("/")[2] for name in files if re.search(r"\.log\.[^.]*$", name))

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for ts, markers in ((2, True), (3, False)):
        before = logs()
        with monkeypatch.context() as patch:
            patch.setattr(Transaction, "commit", die)
            patch.setattr(Transaction, "abort", die)
            with pytest.raises(KeyboardInterrupt):
                write(frame(spark, [("k00", "p0", 9, "lost"), ("x", "p9", 1, "lost")]), str(path), upsert)
        assert len(logs()) == len(before) + 1
        assert "lost" not in {row[3] for row in rows_of(path)}
        if not markers:
            shutil.rmtree(path / ".hoodie" / ".temp")

        write(frame(spark, [("k01", "p1", ts, "two")]), str(path), upsert)
        assert rows_of(path) == sorted([*(row for row in ROWS if row[0] != "k01"), ("k01", "p1", ts, "two")])
        history = HudiTable.for_path(str(path)).history().to_pylist()
        assert all(row["state"] == "COMPLETED" for row in history)
        # what was written, and in version 6 the voided file with the command that voids it
        everywhere = index == "BUCKET" and not markers  # rows are not counted before they are written
        assert len(logs()) == len(before) + (3 + everywhere if version == 6 else 1)
        assert not [name for name in tree(path) if "p9" in name and name.endswith(".parquet")]


@pytest.mark.parametrize("kind", [seldom("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_columns_that_another_writer_adds_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """They stay; two writers that both add some are a conflict, unless these are the same."""
    path = str(tmp_path / "table")
    several = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    more = {**options("upsert", hoodie__datasource__write__table__type=kind), **several}
    commit = write_execution.commit_write

    def put(key: str, part: str, *columns: str, **extra: str) -> None:
        rows = frame(spark, [(key, part, 2, "two")]).withColumns({c: F.lit(f"{key} {c}") for c in columns})
        write(rows, path, {**more, **extra})

    def race(mine: tuple[str, ...], theirs: tuple[str, ...], **extra: str) -> None:
        """A write to p0, before whose commit another one to p1 comes in between."""

        def late(*args: object) -> object:
            monkeypatch.setattr(write_execution, "commit_write", commit)
            put("k01", "p1", *theirs)
            return commit(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(write_execution, "commit_write", late)
        put("k00", "p0", *mine, **extra)

    def columns() -> list[str]:
        return HudiTable.for_path(path).schema.names[9:]

    write(frame(spark, ROWS), path, more)
    race((), ("a",))
    assert columns() == ["a"]
    race(("a",), ("a",))
    race(("a", "b"), ("a", "b"))
    assert columns() == ["a", "b"]
    with pytest.raises(
        ConflictError, match=r"changed the columns of the table concurrently \(d: string, in this write missing; c: "
    ):
        race(("a", "b", "c"), ("a", "b", "d"))
    assert columns() == ["a", "b", "d"]
    found = {r["id"]: r for r in HudiTable.for_path(path).scan().to_arrow().to_pylist()}
    assert [found["k00"][c] for c in "abd"] == ["k00 a", "k00 b", None]
    assert [found["k01"][c] for c in "abd"] == ["k01 a", "k01 b", "k01 d"]
    spark_rows = {r["id"]: r for r in load_table(spark, path).collect()}
    assert [spark_rows["k00"][c] for c in "abd"] == ["k00 a", "k00 b", None]
    put("k00", "p0", "a", "b", "d", "c")
    assert columns() == ["a", "b", "d", "c"]
    # the other one is later, and so it is what readers take the columns from
    with pytest.raises(ConflictError, match="later instant"):
        race(("a", "b", "d", "c", "e"), ("a", "b", "d", "c"))
    option = "hoodie.write.concurrency.schema.conflict.resolution.enable"
    race(("a", "b", "d", "c", "e"), ("a", "b", "d", "c"), **{option: "false"})
    assert columns() == ["a", "b", "d", "c"]


@pytest.mark.parametrize(
    ("has_metadata", "operation"),
    [("true", "upsert"), ("false", "upsert"), ("true", "bulk_insert"), ("true", "delete_partition")],
)
def test_a_table_that_apache_hudi_has_moved_halfway_is_not_written(
    spark: SparkSession, tmp_path: Path, has_metadata: str, operation: str
) -> None:
    """Its last commit is in the folder of version 6: its rows would be inserted again."""
    root, given = tmp_path / "t", options("upsert", hoodie__metadata__enable="false")
    for rows in ([("a", "p", 1, "x")], [("b", "p", 1, "x")]):
        write(frame(spark, rows), str(root), {**given, "hoodie.metadata.enable": has_metadata}, "append")
    instant = HudiTable.for_path(str(root)).latest_instant
    for path in (root / ".hoodie/timeline").glob(f"{instant}*"):
        path.rename(root / ".hoodie" / re.sub("_[0-9]+", "", path.name))
    before = tree(root)
    given |= {"hoodie.datasource.write.operation": operation}
    with pytest.raises(TransactionError, match="Apache Hudi is changing the version"):
        write(frame(spark, [("b", "p", 2, "y")]), str(root), given, "append")
    assert tree(root) == before
