"""Tables that are read as streams."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi import HudiTable
from pyhudi.config import Options
from pyhudi.errors import OptionWithoutEffectWarning, QueryError
from pyhudi.spark.session_settings import session_setting
from pyhudi.spark.streaming import micro_batch_planner
from pyhudi.spark.streaming.micro_batch_planner import RowPlanner, read_pieces
from pyhudi.streaming.offsets import StartOffset
from tests.cases import seldom
from tests.concurrent_archival import archive_after_first_pin
from tests.spark.streaming.streams import KEYS, SCHEMA, archive, insert
from tests.tables import HandMadeTable, at


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


@pytest.mark.parametrize("version", [seldom(6), 9])
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
    if version >= 8:  # a restart goes on from the checkpoint location, whatever the start is then
        insert(table, 80)
        assert latest.run(hoodie__datasource__streaming__startOffset=at(85)) == [("80", 80)]
    from_20.table = table.root.rename(tmp_path / "moved")
    with pytest.raises(Exception, match="CheckpointError: batch 2 has the oldest commit"):
        from_20.run(**start)


def test_a_session_whose_timestamps_have_no_zone(spark, tmp_path):
    table = HandMadeTable(tmp_path / "t")
    insert(table, 10)
    with session_setting(spark, "spark.sql.timestampType", "TIMESTAMP_NTZ"):
        stream = Reading(spark, table.root, tmp_path / "all")
        assert stream.run() == [("10", 10)]
        insert(table, 20)
        assert stream.run() == [("20", 20)]


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


@pytest.mark.parametrize("read_before", [0, 1])
def test_a_batch_that_was_archived_before_it_is_repeated(spark, tmp_path, read_before):
    """Spark leaves out files that no longer exist, so the batch that it repeats is empty."""
    table, found, fails = HandMadeTable(tmp_path / "t"), [], True

    def each(df: Any, _: int) -> None:
        assert not fails
        found.extend(row["v"] for row in df.collect())

    def run() -> None:
        rows = spark.readStream.format("hudi").load(str(table.root))
        writer = rows.writeStream.foreachBatch(each).option("checkpointLocation", str(tmp_path / "cp"))
        assert writer.trigger(availableNow=True).start().awaitTermination(120)

    insert(table, 10)
    if read_before:
        fails = False
        run()
        insert(table, 20)
    fails = True
    with pytest.raises(Exception, match="AssertionError"):
        run()
    last = 20 if read_before else 10
    insert(table, 30)
    archive(table, upto=30)
    fails = False
    with pytest.raises(
        Exception, match=f"CheckpointError: the commits {at(last)} are no longer in the active timeline"
    ):
        run()
    assert found == [10] * read_before


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


def test_an_instant_that_is_archived_while_a_batch_is_planned(tmp_path, monkeypatch):
    """The task that plans a batch, in this process."""
    monkeypatch.setattr(micro_batch_planner, "_batch_number", lambda: 0)
    table, pinned = archive_after_first_pin(tmp_path, monkeypatch)
    layout = table.active.layout
    planner = RowPlanner(str(table.root), Options.parse({}), StartOffset(), pa.schema([("id", pa.string())]), 1, layout)
    commit = table.storage.uri(table.active.path(table.active.timeline.find(at(3))))
    pieces = planner([pa.record_batch({"path": [commit]})])
    found = [row["id"] for batch in read_pieces(pieces) for row in batch.to_pylist()]
    assert sorted(found) == ["x", "y"]  # the first batch includes archived commits
    assert len(pinned) == 2
