"""Streams that are written to tables."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import ConfigError, InvalidOptionError, StorageError, ValidationError
from pyhudi.spark.streaming import sink as sink_module
from pyhudi.storage import open_storage
from pyhudi.streaming import checkpoint
from pyhudi.streaming.checkpoint import SinkCheckpoint, SinkHistory
from tests.cases import classic
from tests.spark.streaming.streams import KEYS, archive, await_compaction, commits
from tests.tables import HandMadeTable


def rows_of(spark: SparkSession, path: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.read.format("hudi").load(str(path)).select("id", "ts").collect())


def test_batches_count_once(spark, feed, tmp_path, monkeypatch):
    path = tmp_path / "t"
    feed.add(("a", 1), ("b", 1))
    feed.add(("a", 2), ("c", 1))
    feed.run(path)
    assert rows_of(spark, path) == [("a", 2), ("b", 1), ("c", 1)]
    storage = open_storage(str(path))
    assert SinkHistory.load(storage, "default_single_writer").last.batch == 1
    # Spark has not heard of the end of the last batch: it comes again
    (tmp_path / "cp" / "commits" / "1").unlink()
    (tmp_path / "cp" / "commits" / ".1.crc").unlink(missing_ok=True)
    before = commits(path)
    feed.add(("d", 1))
    # and the first attempt of the next one fails, the second one loses a race
    attempts = []

    def failing(*args: Any, **kwargs: Any) -> Any:
        attempts.append(args)
        if len(attempts) == 1:
            raise StorageError("the disk is full")
        # by another driver that still runs the query
        write(*args, idempotent=replace(kwargs["idempotent"], already_committed=None))
        return write(*args, **kwargs)

    write = sink_module.write
    monkeypatch.setattr(sink_module, "write", failing)
    monkeypatch.setitem(KEYS, "hoodie.datasource.write.operation", "insert")
    feed.run(path, hoodie__datasource__write__streaming__retry__interval__ms="1")
    monkeypatch.undo()
    assert len(attempts) == 2
    assert commits(path) == before + 1
    assert rows_of(spark, path) == [("a", 2), ("b", 1), ("c", 1), ("d", 1)]
    # other checkpoint locations are of other queries, or of other tables
    with pytest.raises(Exception, match="CheckpointError: the table has batches up to 2 of another streaming query"):
        feed.run(path, checkpoint="cp2")
    feed.add(("e", 1))
    with pytest.raises(Exception, match="CheckpointError: the stream continues with batch 3"):
        feed.run(tmp_path / "t2")
    assert not (tmp_path / "t2" / ".hoodie").exists()
    # what Apache Hudi has written tells no query
    assert SinkHistory.load(storage, "default_single_writer").last.covers(SinkCheckpoint("default_single_writer", 2))
    # the rows of a batch that is rolled back do not come again
    HudiTable.for_path(str(path)).services.rollback()
    with pytest.raises(Exception, match=r"CheckpointError: .* the rows of batch 2 are missing"):
        feed.run(path)
    feed.run(path, hoodie__datasource__write__streaming__ignore__failed__batch="true")
    assert rows_of(spark, path) == [("a", 2), ("b", 1), ("c", 1), ("e", 1)]


def test_what_options_say(spark, feed, tmp_path, monkeypatch):
    path = tmp_path / "t"
    merge_on_read = {
        "hoodie__datasource__write__table__type": "MERGE_ON_READ",
        "hoodie__compact__inline__max__delta__commits": "2",
    }
    for n in range(3):
        feed.add(("a", n), (f"b{n}", n))
    feed.run(path, **merge_on_read, hoodie__datasource__write__streaming__disable__compaction="true", mode="update")
    actions = pyhudi.HudiTable.for_path(str(path)).history()["action"].to_pylist()
    assert actions == ["deltacommit"] * 3
    feed.add(("a", 9))
    feed.run(path, **merge_on_read)
    await_compaction()
    actions = pyhudi.HudiTable.for_path(str(path)).history()["action"].to_pylist()
    assert sorted(actions) == ["commit", *["deltacommit"] * 4]
    feed.add(("b0", 10))
    feed.run(path, **merge_on_read, hoodie__datasource__write__operation="delete")
    assert rows_of(spark, path) == [("a", 9), ("b1", 1), ("b2", 2)]

    def failing(*_: Any, **__: Any) -> Any:
        raise StorageError("the disk is full")

    monkeypatch.setattr(sink_module, "write", failing)
    feed.add(("z", 1))
    quick = {
        **merge_on_read,
        "hoodie__datasource__write__streaming__retry__count": "1",
    }
    with pytest.raises(Exception, match="the disk is full"):
        feed.run(path, **quick)
    feed.run(path, **quick, hoodie__datasource__write__streaming__ignore__failed__batch="true")
    monkeypatch.undo()
    assert rows_of(spark, path) == [("a", 9), ("b1", 1), ("b2", 2)]


def test_what_is_refused_at_once(spark, feed, tmp_path):
    feed.add(("a", 1))
    path = tmp_path / "t"
    with pytest.raises(InvalidOptionError, match="complete"):
        feed.run(path, mode="complete")
    with pytest.raises(ConfigError, match="did you mean"):
        feed.run(path, hoodie__datasource__write__recordkey__feild="id")
    with pytest.raises(ConfigError, match="checkpointLocation"):
        feed.frame().writeStream.format("hudi").options(**KEYS).start(str(path))
    with pytest.raises(ConfigError, match="checkpointLocation"):
        feed.frame().writeStream.format("hudi").options(**KEYS).toTable("refused")
    assert not path.exists()
    assert not spark.catalog.tableExists("refused")
    # other formats do not notice
    writer = feed.frame().writeStream.format("json").partitionBy("id").trigger(availableNow=True)
    assert writer.option("checkpointLocation", str(tmp_path / "cp3")).start(str(tmp_path / "json")).awaitTermination(60)
    assert (tmp_path / "json" / "id=a").exists()


def test_a_batch_that_a_validator_refuses_is_not_repeated(tmp_path, monkeypatch):
    attempts = []

    def refused(*args: Any, **_: Any) -> Any:
        attempts.append(args)
        raise ValidationError("a pre-commit validator refuses it")

    monkeypatch.setattr(sink_module, "write", refused)
    with pytest.raises(ValidationError, match="refuses"):
        sink_module.StreamingSink(str(tmp_path / "t"), KEYS)(MagicMock(), 0)
    assert len(attempts) == 1


@classic
def test_a_batch_of_a_query_that_is_stopped_is_neither_repeated_nor_skipped(spark, feed, tmp_path, monkeypatch):
    """Spark cancels its jobs."""
    attempts, begun = [], threading.Event()

    def cancelled(*args: Any, **_: Any) -> Any:
        attempts.append(args)
        (query,) = spark.streams.active
        begun.set()
        while query.isActive:
            time.sleep(0.01)
        raise StorageError("a job was cancelled")

    feed.add(("a", 1))
    path, ignoring = tmp_path / "t", {"hoodie.datasource.write.streaming.ignore.failed.batch": "true"}
    writer = feed.frame().writeStream.format("hudi").options(**KEYS, **ignoring)
    with monkeypatch.context() as patched:
        patched.setattr(sink_module, "write", cancelled)
        query = writer.option("checkpointLocation", str(tmp_path / "cp")).start(str(path))
        assert begun.wait(60)
        query.stop()
    assert len(attempts) == 1
    feed.run(path)
    assert rows_of(spark, path) == [("a", 1)]


def test_streams_are_written_to_tables_by_name(spark, feed, tmp_path):
    pytest.importorskip("sqlglot")

    def run(name, *, format=None, **given):
        writer = feed.frame().writeStream.trigger(availableNow=True).options(**given)
        query = writer.option("checkpointLocation", str(tmp_path / name)).toTable(name, format, "append")
        assert query.awaitTermination(60)

    feed.add(("a", 1))
    spark.sql("CREATE TABLE plain (id STRING, ts BIGINT) USING parquet")
    keys = {"primaryKey": "id", "preCombineField": "ts", "type": "mor"}
    try:
        with pytest.raises(ConfigError, match="did you mean"):
            run("made", format="hudi", **keys, **{"hoodie.datasource.write.recordkey.feild": "id"})
        assert not spark.catalog.tableExists("made")
        spark.sql("SET hoodie.datasource.write.streaming.checkpoint.identifier = second")
        external = feed.frame().writeStream.trigger(availableNow=True).options(**keys)
        external = external.option("checkpointLocation", str(tmp_path / "made"))
        assert external.toTable("made", format="hudi", path=str(tmp_path / "t")).awaitTermination(60)
        assert len(rows_of(spark, tmp_path / "t")) == spark.table("made").count() == 1
        feed.add(("a", 2), ("b", 1))
        run("made")  # goes on; the catalog says that it is Hudi's, and what its key is
        assert SinkHistory.load(open_storage(str(tmp_path / "t")), "second").last.batch == 1
        assert sorted(tuple(row) for row in spark.table("made").select("id", "ts").collect()) == [("a", 2), ("b", 1)]
        run("plain", format="parquet")
        assert spark.table("plain").count() == 3
    finally:
        spark.conf.unset("hoodie.datasource.write.streaming.checkpoint.identifier")
        spark.sql("DROP TABLE IF EXISTS made")
        spark.sql("DROP TABLE plain")


def test_the_archive_is_read_from_its_end(tmp_path, monkeypatch):
    table = HandMadeTable(tmp_path / "t", version=9)
    for n in range(7):
        rows = {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]}
        table.write(10 + n, rows, extra={checkpoint.CHECKPOINT_KEY: f'{{"a{n}":"{n}"}}'})
    archive(table, 17)
    decoded = []
    decode = checkpoint.decode_commit
    monkeypatch.setattr(checkpoint, "_AT_ONCE", 2)
    monkeypatch.setattr(checkpoint, "decode_commit", lambda data: decoded.append(data) or decode(data))
    storage = open_storage(str(tmp_path / "t"))
    for n in range(7):
        decoded.clear()
        assert checkpoint.SinkHistory.load(storage, f"a{n}").last == checkpoint.SinkCheckpoint(f"a{n}", n)
        assert len(decoded) == 7 - n
    assert checkpoint.SinkHistory.load(storage, "none").last is None


KILLED = """
import os, signal, sys
from pyspark.sql import SparkSession
import pyhudi
from pyhudi.spark.streaming.sink import StreamingSink
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = pyhudi.configure_spark(builder).getOrCreate()
pyhudi.activate(spark)
folder, kill_at = sys.argv[1], int(sys.argv[2])
write = StreamingSink.__call__
def dying(self, batch, number):
    write(self, batch, number)
    if number == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
StreamingSink.__call__ = dying
rows = spark.readStream.schema("id string, ts long").option("maxFilesPerTrigger", 1).json(folder + "/feed")
options = {"hoodie.table.name": "t", "hoodie.datasource.write.operation": "insert"}
options["hoodie.datasource.write.recordkey.field"] = "id"
writer = rows.writeStream.format("hudi").options(**options).option("checkpointLocation", folder + "/cp")
writer.trigger(availableNow=True).start(folder + "/t").awaitTermination()
"""


@pytest.mark.slow
def test_a_kill_between_the_commit_and_sparks_own_checkpoint(spark, feed, tmp_path):
    for n in range(3):
        feed.add(("a", n))
    job = [sys.executable, "-c", KILLED, str(tmp_path)]
    assert subprocess.run([*job, "1"], timeout=300).returncode == -signal.SIGKILL
    assert not (tmp_path / "cp" / "commits" / "1").exists()
    assert subprocess.run([*job, "-1"], timeout=300).returncode == 0
    # inserts of one key are rows of their own: a doubled batch would show
    assert rows_of(spark, tmp_path / "t") == [("a", 0), ("a", 1), ("a", 2)]
