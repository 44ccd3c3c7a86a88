"""UPDATE, DELETE and MERGE of ``HudiTable``."""

from __future__ import annotations

import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import functions as F  # noqa: N812

from pyhudi import HudiTable
from pyhudi.errors import (
    AmbiguousMergeError,
    ConfigError,
    ConflictError,
    NonRetryableConflictError,
    QueryError,
    RecordKeyError,
    SchemaMismatchError,
)
from pyhudi.read import complex_key_encoding
from pyhudi.spark.dml.merge import merge_builder as merge_module
from tests.cases import seldom
from tests.concurrent_archival import archive_after_first_pin
from tests.spark.dml.increment_job import add_one
from tests.spark.dml.ride_tables import FIRST, KEYED, TABLES, frame, made, rows

USUAL = ("mor", "keyless")


@pytest.mark.parametrize("kind", [k if k in USUAL else seldom(k) for k in TABLES])
def test_statements_one_after_the_other(spark, tmp_path, kind):
    table = made(spark, tmp_path / "t", kind)
    done = table.update({"fare": "fare + 1", "note.b": "concat('n', id)"}, "id < 3")
    assert (done.rows_matched, done.rows_updated, done.rows_deleted) == (2, 2, 0)
    assert rows(table) == [(1, "Oslo", 11, (1, "n1")), (2, "Oslo", 21, (2, "n2")), *FIRST[2:]]
    done = table.delete(F.col("id") == 2)
    assert done.rows_deleted == 1
    assert [r[0] for r in rows(table)] == [1, 3, 4]
    # moves a row to another partition
    if kind != "virtual-keys":
        moves = {"hoodie.record.index.update.partition.path": "true"}
        table.update({"city": F.lit("Bergen")}, "id = 1", moves)
        assert rows(table)[0] == (1, "Bergen", 11, (1, "n1"))
    source = frame(spark, (1, "x", 100, None), (3, "x", 300, (9, "s")), (7, "Moss", 70, None)).alias("s")
    merge = (
        table.alias("t")
        .merge(source, "t.id = s.id")
        .when_matched_delete("s.fare = 300")
        .when_matched_update({"fare": "s.fare + t.id", "note": "s.note"})
        .when_not_matched_insert({"id": "s.id", "city": "s.city", "fare": "s.fare"})
        .when_not_matched_by_source_update({"t.fare": "t.fare * 2"}, "t.id = 4")
    )
    done = merge.execute()
    assert (done.rows_matched, done.rows_updated, done.rows_inserted, done.rows_deleted) == (3, 2, 1, 1)
    first = (1, "Oslo" if kind == "virtual-keys" else "Bergen", 101, None)
    assert rows(table) == [first, (4, "Moss", 80, (4, "x")), (7, "Moss", 70, None)]
    operations = [name for name in table.history()["operation"].to_pylist() if name != "COMPACT"]
    assert len(operations) == (4 if kind == "virtual-keys" else 5)
    assert table.validate_metadata().num_rows == 0
    # what came of it goes on
    table.delete()
    assert rows(table) == []


def test_a_late_row_does_not_bring_back_what_was_deleted(spark, tmp_path):
    """The delete in a log file has the ordering value of the row, which is greater than that of the late one."""
    by_event_time = {**TABLES["mor"], "hoodie.datasource.write.precombine.field": "fare"}
    table = HudiTable.create(str(tmp_path / "t"), by_event_time)
    table.bulk_insert(frame(spark, *FIRST))
    table.delete(where="id = 1")
    for key, condition in ((2, None), (4, "target.fare > 0")):  # an upsert, a join
        source = frame(spark, (key, FIRST[key - 1][1], 1, None), (9, "Oslo", 1, None)).alias("s")
        merge = table.merge(source, "target.id = s.id and target.city = s.city").when_matched_delete(condition)
        assert merge.execute().rows_deleted == 1
    late = (1, "Oslo", 9, None), (2, "Oslo", 19, None), (4, "Moss", 39, None)
    table.upsert(frame(spark, *late))
    assert rows(table) == FIRST[2:3]
    table.upsert(frame(spark, (1, "Oslo", 11, None)))
    assert rows(table) == [(1, "Oslo", 11, None), *FIRST[2:3]]


def test_keys_are_sampled_once_for_a_statement(spark, tmp_path, monkeypatch):
    complex_keys = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}
    table = HudiTable.create(str(tmp_path / "t"), KEYED | complex_keys)
    table.bulk_insert(frame(spark, *FIRST))
    sampled = []
    inner = complex_key_encoding.sample_keys
    monkeypatch.setattr(complex_key_encoding, "sample_keys", lambda now: sampled.append(now) or inner(now))
    assert table.update({"fare": "fare + 1"}, "id = 1").rows_updated == 1
    assert len(sampled) == 1


@pytest.mark.parametrize(
    ("run", "found"),
    [
        pytest.param(lambda table, _: table.update({"v": "v + 1"}, "id = 'x'"), [("x", 3), ("y", 3)], id="update"),
        pytest.param(lambda table, _: table.delete("id = 'x'"), [("y", 3)], id="delete"),
        pytest.param(
            lambda table, new: table.merge(new, "target.id = s.id").when_matched_update_all().execute(),
            [("x", 5), ("y", 3)],
            id="merge",
        ),
        pytest.param(
            lambda table, new: table.merge(new, "target.id = s.id").when_matched_delete("target.v > 1").execute(),
            [("y", 3)],
            id="merge-by-join",
        ),
        pytest.param(lambda table, new: table.upsert(new), [("x", 5), ("y", 3)], id="upsert"),
    ],
)
def test_an_instant_that_is_archived_while_a_statement_begins(spark, tmp_path, monkeypatch, run, found):
    archived, pinned = archive_after_first_pin(tmp_path, monkeypatch)
    table = HudiTable.for_path(str(archived.root), {"hoodie.metadata.enable": "false"})
    run(table, spark.sql("select 'x' id, 'a' p, 5l v").alias("s"))
    assert len(pinned) > 1
    assert sorted((row["id"], row["v"]) for row in table.scan().to_arrow().to_pylist()) == found
    assert set(table.history()["state"].to_pylist()) == {"COMPLETED"}
    assert table.history().num_rows == 2


@pytest.mark.slow
def test_all_columns_by_name(spark, tmp_path):
    table = made(spark, tmp_path / "t")
    source = frame(spark, (20, 1, "Oslo"), (50, 5, "Moss"), columns="FARE bigint, id int, city string")
    with pytest.raises(SchemaMismatchError, match="'note'"):
        table.merge(source.alias("s"), "target.id = s.id").when_matched_update_all().execute()
    source = source.selectExpr("*", "cast(null as struct<a:int,b:string>) as note").alias("s")
    merge = table.merge(source, "target.id = s.id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute()
    assert rows(table) == [(1, "Oslo", 20, None), *FIRST[1:], (5, "Moss", 50, None)]
    # of several new rows of one key one is inserted
    twice = frame(spark, (6, "Moss", 60, None), (6, "Moss", 61, None)).alias("s")
    table.merge(twice, "target.id = s.id").when_not_matched_insert_all().execute()
    assert [row[0] for row in rows(table)].count(6) == 1
    table.delete("id = 6 and fare >= 60")
    # a row that goes to another partition is there once
    moved = frame(spark, (1, "Bodø", 21, None)).alias("s")
    done = table.merge(moved, "target.id = s.id").when_matched_update_all().execute()
    assert (done.rows_updated, done.rows_inserted, done.rows_deleted) == (1, 0, 0)
    assert rows(table)[0] == (1, "Bodø", 21, None)
    assert len(rows(table)) == 5
    # rows that the source does not have
    done = table.merge(moved, "target.id = s.id").when_not_matched_by_source_delete("target.fare > 30").execute()
    assert (done.rows_updated, done.rows_inserted, done.rows_deleted) == (0, 0, 2)
    assert [row[0] for row in rows(table)] == [1, 2, 3]


def test_what_is_refused(spark, tmp_path):
    table = made(spark, tmp_path / "t")
    before = table.latest_instant
    twice = frame(spark, (1, "Oslo", 1, None), (1, "Oslo", 2, None)).alias("s")
    merge = table.merge(twice, "target.id = s.id")
    with pytest.raises(AmbiguousMergeError, match=r"^the row of the table with the record key '1' matches several"):
        merge.when_matched_update_all().execute()
    with pytest.raises(AmbiguousMergeError):
        merge.when_matched_delete("s.fare = 1").when_matched_update_all().execute()
    other = frame(spark, (9, "Oslo", 1, None)).alias("s")
    with pytest.raises(RecordKeyError, match="'1' cannot be changed to '9'"):
        table.merge(other, "target.id = 1").when_matched_update_all().execute()
    with pytest.raises(QueryError, match="clause"):
        merge.execute()
    with pytest.raises(QueryError, match="last clause"):
        merge.when_matched_delete().when_matched_delete()
    with pytest.raises(ConfigError, match="record key"):
        table.update({"id": "9"})
    with pytest.raises(SchemaMismatchError, match="'faer'"):
        table.update({"faer": "9"})
    with pytest.raises(QueryError, match=r"9 is a value of the type int; write it as SQL text"):
        table.update({"fare": 9})
    with pytest.raises(SchemaMismatchError, match="cast it"):
        table.update({"fare": "true"})
    with pytest.raises(SchemaMismatchError, match=r"^the text 'nine' is no bigint, as the column 'fare' has$"):
        table.update({"fare": "'nine'"})
    with pytest.raises(SchemaMismatchError, match="does not fit"):
        table.merge(twice, "target.id = s.id and s.fare = 1").when_matched_update(
            {"note.a": "1", "fare": "1e30"}
        ).execute()
    assert table.latest_instant == before
    assert merge.when_matched_delete().execute().rows_deleted == 1
    assert rows(table) == FIRST[1:]


def test_another_writer_meanwhile(spark, tmp_path, monkeypatch):
    from pyhudi.spark.dml import update as module

    table = made(spark, tmp_path / "t")
    real = module.write_changes
    others = itertools.chain([lambda: table.update({"fare": "fare + 100"}, "id = 1")], itertools.repeat(lambda: None))

    def write_after_another(*args, **kwargs):
        monkeypatch.setattr(module, "write_changes", real)
        next(others)()
        return real(*args, **kwargs)

    monkeypatch.setattr(module, "write_changes", write_after_another)
    with pytest.raises(ConflictError, match="concurrently changed"):
        table.update({"fare": "fare + 1"})
    assert rows(table)[0][2] == 110
    others = iter([lambda: table.upsert(frame(spark, (2, "Oslo", 200, None)))])
    monkeypatch.setattr(module, "write_changes", write_after_another)
    done = table.update({"fare": "fare + 1"}, options={"hoodie.write.num.retries.on.conflict.failures": "2"})
    assert done.retries == 1
    assert [r[2] for r in rows(table)] == [111, 201, 31, 41]
    # what was not read may change
    others = iter([lambda: table.upsert(frame(spark, (4, "Moss", 44, None)))])
    monkeypatch.setattr(module, "write_changes", write_after_another)
    assert table.delete("city = 'Bergen'").retries == 0
    assert [r[2] for r in rows(table)] == [111, 201, 44]
    # a source that was read from the table before would undo the other write
    source = table.scan("id = 1").to_spark(spark).selectExpr("id", "fare + 1 AS fare").alias("s")
    merge = table.merge(source, "target.id = s.id", {"hoodie.write.num.retries.on.conflict.failures": "2"})
    others = iter([lambda: table.upsert(frame(spark, (1, "Oslo", 500, None)))])
    monkeypatch.setattr(merge_module, "write_changes", write_after_another)
    with pytest.raises(NonRetryableConflictError, match="load the table again"):
        merge.when_matched_update({"fare": "s.fare"}).execute()
    assert [r[2] for r in rows(table)] == [500, 201, 44]


@pytest.mark.parametrize("kind", [seldom("cow"), "mor"])
@pytest.mark.slow
def test_no_update_is_lost_between_threads(spark, tmp_path, kind):
    table = made(spark, tmp_path / "t", kind)
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(add_one, table, 3) for _ in range(2)]:
            done.result()
    assert [r[2] for r in rows(table)] == [16, 26, 36, 46]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_no_update_is_lost_between_processes(spark, tmp_path, kind):
    table = made(spark, tmp_path / "t", kind)
    command = [sys.executable, "-m", "tests.spark.dml.increment_job", table.path, "25"]
    writers = [subprocess.Popen(command) for _ in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    assert [r[2] for r in rows(table)] == [110, 120, 130, 140]
