"""Structured Streaming into Hudi tables and out of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import ConfigError, InvalidOptionError, OptionWithoutEffectWarning, QueryError, StorageError
from pyhudi.spark.streaming import sink as sink_module
from pyhudi.storage import open_storage
from pyhudi.streaming import checkpoint
from pyhudi.streaming.checkpoint import SinkCheckpoint, last_checkpoint
from tests.cases import seldom
from tests.tables import HandMadeTable, at

KEYS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
SCHEMA = "id string, ts long"


@pytest.fixture(autouse=True)
def _active(spark: SparkSession) -> Iterator[None]:
    pyhudi.activate(spark)
    yield
    pyhudi.deactivate()


class Feed:
    """A folder of JSON files that streams read, one file a micro-batch, and a checkpoint location."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.files = spark, folder, 0
        (folder / "feed").mkdir(parents=True)

    def add(self, *rows: tuple[str, int]) -> None:
        self.files += 1
        file = self.folder / "feed" / f"{self.files:03d}.json"
        file.write_text("".join(json.dumps({"id": k, "ts": v}) + "\n" for k, v in rows))
        os.utime(file, (self.files, self.files))

    def frame(self) -> DataFrame:
        return self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(self.folder / "feed"))

    def run(self, path: Path, *, checkpoint: str = "cp", mode: str = "append", **options: str) -> None:
        writer = self.frame().writeStream.format("hudi").options(**KEYS).outputMode(mode).trigger(availableNow=True)
        given = {key.replace("__", "."): value for key, value in options.items()}
        writer = writer.options(**given).option("checkpointLocation", str(self.folder / checkpoint))
        assert writer.queryName("feed").start(str(path)).awaitTermination(120)


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path)


def rows_of(spark: SparkSession, path: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.read.format("hudi").load(str(path)).select("id", "ts").collect())


def commits(path: Path) -> int:
    history = pyhudi.HudiTable.for_path(str(path)).history()
    pairs = zip(history["action"].to_pylist(), history["state"].to_pylist(), strict=True)
    return sum(state == "COMPLETED" and action != "rollback" for action, state in pairs)


def test_batches_count_once(spark, feed, tmp_path, monkeypatch):
    path = tmp_path / "t"
    feed.add(("a", 1), ("b", 1))
    feed.add(("a", 2), ("c", 1))
    feed.run(path)
    assert rows_of(spark, path) == [("a", 2), ("b", 1), ("c", 1)]
    storage = open_storage(str(path))
    assert last_checkpoint(storage, "default_single_writer").batch == 1
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
    assert last_checkpoint(storage, "default_single_writer").covers(SinkCheckpoint("default_single_writer", 2))
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
    for thread in threading.enumerate():
        if thread.name == "pyhudi-compaction":
            thread.join(60)
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


class Reading:
    """A stream of a table into JSON files."""

    def __init__(self, spark: SparkSession, table: Path, folder: Path, name: str | None = None) -> None:
        self.spark, self.table, self.folder, self.name = spark, table, folder, name
        self.seen: Counter[tuple[str, int]] = Counter()

    def run(self, **options: str) -> list[tuple[str, int]]:
        """The rows that are new."""
        given = {key.replace("__", "."): value for key, value in options.items()}
        reader = self.spark.readStream.options(**given)
        rows = reader.table(self.name) if self.name else reader.format("hudi").load(str(self.table))
        rows = rows.select("id", "v")
        writer = rows.writeStream.format("json").option("checkpointLocation", str(self.folder / "cp"))
        query = writer.trigger(availableNow=True).start(str(self.folder / "out"))
        assert query.awaitTermination(120)
        found = self.spark.read.schema("id string, v long").json(str(self.folder / "out")).collect()
        left = Counter((row["id"], row["v"]) for row in found)
        new, self.seen = left - self.seen, left
        return sorted(new.elements())


def insert(table: HandMadeTable, n: int, *, done: int | None = None) -> None:
    table.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]}, done=done or n + 1)


@pytest.mark.parametrize("version", [6, 9])
def test_commits_are_read_once(spark, tmp_path, version):
    table = HandMadeTable(tmp_path / "t", version=version)
    with pytest.raises(QueryError, match="no columns"):
        spark.readStream.format("hudi").load(str(table.root))
    for n in (10, 20, 30):
        insert(table, n)
    all_rows, from_20 = Reading(spark, table.root, tmp_path / "all"), Reading(spark, table.root, tmp_path / "from")
    latest = Reading(spark, table.root, tmp_path / "latest")
    start = {"hoodie__datasource__streaming__startOffset": at(21 if version >= 8 else 20)}
    assert all_rows.run(pyhudi__streaming__max__instants__per__trigger="1") == [("10", 10), ("20", 20), ("30", 30)]
    assert len(list((tmp_path / "all" / "cp" / "commits").glob("[0-9]*"))) == 3
    assert from_20.run(**start) == [("30", 30)]
    assert latest.run(hoodie__datasource__streaming__startOffset="latest") == []
    assert all_rows.run() == []
    insert(table, 50)
    insert(table, 40, done=60)  # requested before another one that has been read, completed after it
    table.write(70, {("a", "f10"): [{"id": "10", "p": "a", "v": 11}]}, done=71)
    new = [("10", 11), ("40", 40), ("50", 50)]
    assert all_rows.run() == new
    assert from_20.run(**start) == new
    assert latest.run(hoodie__datasource__streaming__startOffset="latest") == new
    from_20.table = table.root.rename(tmp_path / "moved")
    with pytest.raises(Exception, match="CheckpointError: batch 2 has the oldest commit"):
        from_20.run(**start)


def test_a_late_write_that_was_archived_after_it_was_read(spark, tmp_path):
    table = HandMadeTable(tmp_path / "t")
    insert(table, 10)
    stream = Reading(spark, table.root, tmp_path / "r")
    assert stream.run() == [("10", 10)]
    insert(table, 30)
    insert(table, 20, done=40)
    assert stream.run() == [("20", 20), ("30", 30)]
    table.archive(20)
    insert(table, 50)
    assert stream.run() == [("50", 50)]


def test_a_copied_table_with_a_limit(spark, tmp_path):
    """Spark takes files in the order of their modification times."""
    table = HandMadeTable(tmp_path / "t")
    for n in (10, 20, 30):
        insert(table, n)
    for n, file in enumerate(sorted((table.root / ".hoodie/timeline").glob("*.commit"))):
        os.utime(file, (10**9 - n, 10**9 - n))
    stream = Reading(spark, table.root, tmp_path / "r")
    limit = {"pyhudi__streaming__max__instants__per__trigger": "1"}
    with pytest.warns(OptionWithoutEffectWarning, match="does not apply to the 3 commits"):
        assert stream.run(**limit) == [("10", 10), ("20", 20), ("30", 30)]
    for n in (40, 50):
        insert(table, n)
    assert stream.run(**limit) == [("40", 40), ("50", 50)]


@pytest.mark.parametrize("dropped", [True, seldom(False)])
def test_partition_columns_of_formatted_times_come_from_paths(spark, tmp_path, dropped):
    """As in batch queries they are texts then, though the commits' columns are numbers."""
    path = str(tmp_path / "t")
    times = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "ts",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        "hoodie.datasource.write.drop.partition.columns": str(dropped).lower(),
    }
    frame = spark.createDataFrame([("a", 1700000000000)], SCHEMA)
    frame.write.format("hudi").options(**times).mode("append").save(path)
    reader = spark.readStream.format("hudi")
    if not dropped:
        reader = reader.option("hoodie.datasource.read.extract.partition.values.from.path", "true")
    stream = reader.load(path).select("id", "ts")
    found: list[Any] = []
    writer = stream.writeStream.foreachBatch(lambda df, _: found.extend(map(tuple, df.collect())))
    writer = writer.option("checkpointLocation", str(tmp_path / "out")).trigger(availableNow=True)
    assert writer.start().awaitTermination(60)
    assert found == [("a", "2023/11/14")]


def test_tables_by_name(spark, tmp_path):
    pytest.importorskip("sqlglot")
    table = HandMadeTable(tmp_path / "t")
    for n in (10, 20):
        insert(table, n)
    spark.sql(f"CREATE TABLE streamed USING hudi LOCATION '{table.root}'")
    spark.sql("CREATE TABLE plain USING parquet AS SELECT 1 AS id")
    try:
        assert Reading(spark, table.root, tmp_path / "all", "streamed").run() == [("10", 10), ("20", 20)]
        start = {"hoodie__datasource__streaming__startOffset": at(11)}
        reading = Reading(spark, table.root, tmp_path / "from", "default.streamed")
        spark.sql(f"SET hoodie.datasource.streaming.startOffset = {at(21)}")
        spark.sql("SET hoodie.datasource.query.type = read_optimized")  # for queries, not for streams
        try:
            assert Reading(spark, table.root, tmp_path / "set").run() == []
            assert reading.run(**start) == [("20", 20)], "options override the session"
        finally:
            spark.conf.unset("hoodie.datasource.streaming.startOffset")
            spark.conf.unset("hoodie.datasource.query.type")
        assert spark.readStream.table("plain").isStreaming
    finally:
        spark.sql("DROP TABLE streamed")
        spark.sql("DROP TABLE plain")


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
        assert last_checkpoint(open_storage(str(tmp_path / "t")), "second").batch == 1
        assert sorted(tuple(row) for row in spark.table("made").select("id", "ts").collect()) == [("a", 2), ("b", 1)]
        run("plain", format="parquet")
        assert spark.table("plain").count() == 3
    finally:
        spark.conf.unset("hoodie.datasource.write.streaming.checkpoint.identifier")
        spark.sql("DROP TABLE IF EXISTS made")
        spark.sql("DROP TABLE plain")


def test_logs_are_merged(spark, feed, tmp_path):
    path = tmp_path / "t"
    merge_on_read = {"hoodie__datasource__write__table__type": "MERGE_ON_READ"}
    feed.add(("a", 1), ("b", 1))
    feed.run(path, **merge_on_read)
    stream = spark.readStream.format("hudi").load(str(path)).select("id", "ts")
    found: list[list[tuple[Any, ...]]] = []
    writer = stream.writeStream.foreachBatch(lambda df, _: found.append(sorted(map(tuple, df.collect()))))
    writer = writer.option("checkpointLocation", str(tmp_path / "out")).trigger(availableNow=True)
    assert writer.start().awaitTermination(60)
    feed.add(("a", 2))
    feed.run(path, **merge_on_read)
    assert writer.start().awaitTermination(60)
    assert found == [[("a", 1), ("b", 1)], [("a", 2)]]


def test_a_stream_that_has_missed_commits(spark, tmp_path):
    table = HandMadeTable(tmp_path / "t")
    for n in (10, 20):
        insert(table, n)
    reading = Reading(spark, table.root, tmp_path / "r")
    assert reading.run() == [("10", 10), ("20", 20)]
    for n in (30, 40):
        insert(table, n)
    archive(table, upto=40)
    with pytest.raises(Exception, match=f"CheckpointError.*{at(41)}.*have been archived"):
        reading.run()
    # a stream that begins now has all there is
    anew = Reading(spark, table.root, tmp_path / "anew")
    assert anew.run() == [("10", 10), ("20", 20), ("30", 30), ("40", 40)]
    # a file that cannot be read ends the stream, which goes on when it is back
    insert(table, 50)
    file = next((table.root / "a").glob("f50*.parquet"))
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    with pytest.raises(Exception, match=r"f50"):
        anew.run()
    file.write_bytes(whole)
    assert anew.run() == [("50", 50)]


@pytest.mark.parametrize(("version", "to"), [(6, 8), seldom((8, 6))])
def test_a_stream_that_runs_while_its_table_is_upgraded(spark, tmp_path, version, to):
    """It ends with an error; the place at which it has looked for commits has none any more."""
    path = str(tmp_path / "t")
    write = spark.createDataFrame([("a", 1)], SCHEMA).write.format("hudi").options(**KEYS).mode("append")
    write.option("hoodie.write.table.version", version).save(path)
    found = []
    writer = spark.readStream.format("hudi").load(path).writeStream.option("checkpointLocation", str(tmp_path / "out"))
    query = writer.foreachBatch(lambda df, _: found.extend(df.select("id").collect())).start()
    try:
        query.processAllAvailable()
        assert found == [("a",)]
        table = HudiTable.for_path(path)
        table.services.upgrade(to) if to > version else table.services.downgrade(to)
        with pytest.raises(Exception, match="CheckpointError: the table has been upgraded or downgraded"):
            query.processAllAvailable()
    finally:
        query.stop()
    assert found == [("a",)]


def archive(table: HandMadeTable, upto: int) -> None:
    """Move the instants before ``upto`` into the archived timeline, as a writer of layout 2 would."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = table.root / ".hoodie" / "timeline"
    rows = []
    for file in sorted(folder.iterdir()):
        requested = file.name.split("_")[0].split(".")[0]
        if not file.is_file() or requested >= at(upto):
            continue
        if file.name.endswith(".commit"):
            completion = file.name.split("_")[1].split(".")[0]
            rows.append((requested, completion, "commit", file.read_bytes(), b""))
        file.unlink()
    names = ("instantTime", "completionTime", "action", "metadata", "plan")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    columns["version"] = [1] * len(rows)
    history = folder / "history"
    history.mkdir(exist_ok=True)
    name = f"{rows[0][0]}_{rows[-1][0]}_0.parquet"
    pq.write_table(pa.table(columns), history / name)
    size = (history / name).stat().st_size
    (history / "manifest_1").write_text(json.dumps({"files": [{"fileName": name, "fileLen": size}]}))
    (history / "_version_").write_text("1")


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
        assert checkpoint.last_checkpoint(storage, f"a{n}") == checkpoint.SinkCheckpoint(f"a{n}", n)
        assert len(decoded) == 7 - n
    assert checkpoint.last_checkpoint(storage, "none") is None


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


@pytest.mark.parametrize("kind", [seldom("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_a_stream_of_changes(spark, tmp_path, kind):
    """Each commit's changes come once, and are those that a query tells."""
    path = str(tmp_path / "t")
    options = {
        "hoodie.table.name": "t",
        "hoodie.table.cdc.enabled": "true",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
    }

    def write(operation: str, *rows: tuple[str, int]) -> None:
        given = options | {"hoodie.datasource.write.operation": operation}
        frame = spark.createDataFrame(list(rows), "id STRING, ts INT")
        frame.write.format("hudi").options(**given).mode("append").save(path)

    write("upsert", ("a", 1), ("b", 1))
    stream = spark.readStream.format("hudi").option("hoodie.datasource.query.incremental.format", "cdc").load(path)
    assert stream.columns == ["op", "ts_ms", "before", "after"]
    found: list[list[tuple[Any, ...]]] = []
    writer = stream.writeStream.foreachBatch(lambda df, _: found.append(sorted(map(tuple, df.collect()), key=repr)))
    writer = writer.option("checkpointLocation", str(tmp_path / "out")).trigger(availableNow=True)
    assert writer.start().awaitTermination(60)
    write("upsert", ("a", 2), ("c", 1))
    write("delete", ("b", 2))
    assert writer.start().awaitTermination(60)
    assert writer.start().awaitTermination(60)
    assert [sorted(row[0] for row in batch) for batch in found] == [["i", "i"], ["d", "i", "u"]]
    told = [tuple(row.values()) for row in HudiTable.for_path(path).changes("earliest").to_arrow().to_pylist()]
    assert sorted((row for batch in found for row in batch), key=repr) == sorted(told, key=repr)
    plain = HandMadeTable(tmp_path / "plain")
    insert(plain, 10)
    reader = spark.readStream.format("hudi").option("hoodie.datasource.query.incremental.format", "cdc")
    with pytest.raises(QueryError, match="has no change data"):
        reader.load(str(plain.root))
