"""UPDATE, DELETE and MERGE of ``HudiTable``."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
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
    UnsupportedTableError,
)
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.dml import merge_builder as merge_module
from pyhudi.spark.dml import update as update_module
from pyhudi.spark.write.dataframe_writer import write_changes
from pyhudi.spark.write.plans import file_group_plan
from pyhudi.spark.write.plans.row_routing import count_rows, route
from pyhudi.spark.write.row_changes import with_base_paths
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, ROW
from pyhudi.write.planning.small_files import SMALL_FILES_SCHEMA, InsertPlacement, Sizing
from pyhudi.write.planning.workload_profile import COUNTS_SCHEMA, plan_workload
from tests.cases import seldom
from tests.spark.dml.increment_job import add_one

COLUMNS = "id int, city string, fare bigint, note struct<a:int,b:string>"
KEYED = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
}
TABLES = {
    "cow": KEYED,
    "mor": {**KEYED, "hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "v6-mor": {
        **KEYED,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.write.table.version": "6",
        "hoodie.datasource.write.precombine.field": "fare",
    },
    "keyless": {"hoodie.table.name": "rides", "hoodie.datasource.write.partitionpath.field": "city"},
    "record-index": {
        **KEYED,
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    },
    "partitioned-index": {
        **KEYED,
        "hoodie.metadata.record.level.index.enable": "true",
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
    },
    "bucket": {**KEYED, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    "virtual-keys": {**KEYED, "hoodie.populate.meta.fields": "false"},
}
USUAL = ("mor", "keyless")
FIRST = [(1, "Oslo", 10, (1, "x")), (2, "Oslo", 20, (2, "x")), (3, "Bergen", 30, None), (4, "Moss", 40, (4, "x"))]


def frame(spark, *rows, columns=COLUMNS):
    return spark.createDataFrame(list(rows), columns)


def rows(table: HudiTable) -> list[tuple]:
    found = table.scan(columns=["id", "city", "fare", "note"]).to_arrow().to_pylist()
    return sorted((r["id"], r["city"], r["fare"], r["note"] and tuple(r["note"].values())) for r in found)


def made(spark, path, kind="cow") -> HudiTable:
    table = HudiTable.create(str(path), TABLES[kind])
    table.bulk_insert(frame(spark, *FIRST))
    return table


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
    with pytest.raises(AmbiguousMergeError, match="record key '1'"):
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
    with pytest.raises(SchemaMismatchError, match="cast it"):
        table.update({"fare": "true"})
    with pytest.raises(Exception, match="'nine' is no bigint"):
        table.update({"fare": "'nine'"})
    with pytest.raises(Exception, match="does not fit"):
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

    def write_after_another(*args):
        monkeypatch.setattr(module, "write_changes", real)
        next(others)()
        return real(*args)

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


def test_no_update_is_lost_between_threads(spark, tmp_path):
    table = made(spark, tmp_path / "t")
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(add_one, table, 3) for _ in range(2)]:
            done.result()
    assert [r[2] for r in rows(table)] == [16, 26, 36, 46]


@pytest.mark.slow
def test_no_update_is_lost_between_processes(spark, tmp_path):
    table = made(spark, tmp_path / "t")
    command = [sys.executable, "-m", "tests.spark.dml.increment_job", table.path, "25"]
    writers = [subprocess.Popen(command) for _ in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    assert [r[2] for r in rows(table)] == [110, 120, 130, 140]


BY_KEY = "target.city = s.city AND (target.id = s.id)"
BY_EVENT_TIME = {**TABLES["mor"], "hoodie.datasource.write.precombine.field": "fare"}
OTHERS = ("cow", "mor", "v6-mor", "virtual-keys", "record-index", "bucket")


@pytest.mark.parametrize("kind", ["event-time", *map(seldom, OTHERS)])
def test_a_merge_by_key_is_an_upsert(spark, tmp_path, monkeypatch, kind):
    """The same rows and counts as by the join, which a condition asks for."""
    source = frame(spark, (1, "Oslo", 9, None), (2, "Oslo", 99, None), (3, "Moss", 7, (3, "y")), (5, "Oslo", 5, None))
    source = source.selectExpr("note", "cast(fare as int) as FARE", "city", "id").alias("s")
    found = []
    for name, condition in (("joined", "true"), ("upserted", None)):
        table = HudiTable.create(str(tmp_path / name), {**TABLES, "event-time": BY_EVENT_TIME}[kind])
        table.bulk_insert(frame(spark, *FIRST))
        if condition is None and kind not in ("record-index", "bucket"):
            monkeypatch.setattr(merge_module, "count_changes", None)
        merge = table.merge(source, BY_KEY).when_matched_update_all(condition)
        done = merge.when_not_matched_insert_all(condition).execute()
        found.append((rows(table), done.rows_matched, done.rows_updated, done.rows_inserted, done.rows_deleted))
    assert found[0] == found[1]
    assert found[0][1:] == (2, 2, 2, 0)
    assert found[0][0][0][2] == (10 if kind == "event-time" else 9)


def test_pairs_and_what_is_left_of_the_source(spark, tmp_path):
    """Rows that match by no key, several source rows of a row, source rows without any, and clauses that take none."""
    table = made(spark, tmp_path / "t", "cow")
    given = (1, "Oslo", 100, None), (2, "Oslo", 7, None), (None, "Moss", 9, None), (8, "Moss", 4, None)
    merge = table.merge(frame(spark, *given).alias("s"), "target.id = s.id")
    inserted = {"id": "coalesce(s.id, 90)", "city": "s.city", "fare": "s.fare"}
    done = (
        merge.when_matched_delete("s.fare < target.fare - 50")
        .when_matched_update({"fare": "target.fare + s.fare"}, "s.fare >= 100")
        .when_not_matched_insert(inserted, "s.fare > 4")
        .execute()
    )
    # id 2 matches, so that it is not inserted, though no clause takes it
    assert (done.rows_updated, done.rows_inserted, done.rows_deleted) == (1, 1, 0)
    assert rows(table) == [(1, "Oslo", 110, (1, "x")), *FIRST[1:], (90, "Moss", 9, None)]
    # of a row that two pairs delete one is deleted; another join than by equal values
    twice = frame(spark, (5, "x", 30, None), (6, "x", 30, None)).alias("s")
    done = table.merge(twice, "target.fare >= s.fare and target.id < 5").when_matched_delete().execute()
    assert (done.rows_matched, done.rows_deleted) == (3, 3)
    assert [row[0] for row in rows(table)] == [2, 90]
    with pytest.raises(AmbiguousMergeError, match="record key '90'"):
        table.merge(twice, "target.fare < s.fare").when_matched_update({"fare": "s.fare"}).execute()
    # only new rows; one of them twice
    new = frame(spark, (2, "Oslo", 1, None), (3, "Oslo", 1, None), (3, "Oslo", 1, None)).alias("s")
    done = table.merge(new, "target.id = s.id").when_not_matched_insert_all().execute()
    assert done.rows_matched == 0
    assert [row[0] for row in rows(table)] == [2, 3, 90]
    nothing = frame(spark, (4, "Oslo", 1, None)).where("false").alias("s")
    done = table.merge(nothing, "target.id = s.id").when_not_matched_insert_all().execute()
    assert (done.rows_matched, done.rows_inserted) == (0, 0)
    assert table.validate_metadata().num_rows == 0


@pytest.mark.parametrize("per_core", [4, 0], ids=["few-groups", "counted"])
def test_rows_are_changed_at_their_places(spark, tmp_path, monkeypatch, per_core):
    """Of two rows with one key, which an insert may make, the one is changed that meets the condition."""
    monkeypatch.setattr(file_group_plan, "_GROUPS_PER_CORE", per_core)
    counted = []
    monkeypatch.setattr(file_group_plan, "count_rows", lambda rows: counted.append(1) or count_rows(rows))
    table = HudiTable.create(str(tmp_path / "t"), KEYED)
    table.bulk_insert(frame(spark, *FIRST, (1, "Oslo", 11, None)).coalesce(1))
    assert table.update({"fare": "fare + 100"}, "fare = 11").rows_updated == 1
    assert table.delete("id = 1 and fare < 100").rows_deleted == 1
    assert table.update({"fare": "0"}, "length(city) > 100").rows_updated == 0
    assert bool(counted) == (not per_core)
    assert rows(table) == [(1, "Oslo", 111, None), *FIRST[1:]]
    with pytest.raises(Exception, match="no number"):
        table.update({"fare": "if(id > 1, raise_error('no number'), 1)"})
    assert rows(table) == [(1, "Oslo", 111, None), *FIRST[1:]]
    assert table.validate_metadata().num_rows == 0


def _chunks(folder, column: str) -> set[bytes]:
    """The bytes of a column in all base files."""
    found = set()
    for file in folder.rglob("*.parquet"):
        if ".hoodie" not in file.parts:
            group = pq.read_metadata(file).row_group(0)
            chunks = [group.column(number) for number in range(group.num_columns)]
            chunk = next(chunk for chunk in chunks if chunk.path_in_schema == column)
            begin = chunk.dictionary_page_offset or chunk.data_page_offset
            found.add(file.read_bytes()[begin : begin + chunk.total_compressed_size])
    return found


@pytest.mark.parametrize("by_event_time", [seldom(False), True], ids=["commit-time", "event-time"])
def test_columns_that_are_not_assigned_are_neither_read_nor_written(
    spark, tmp_path, monkeypatch, capsys, by_event_time
):
    ordering = {"hoodie.datasource.write.precombine.field": "fare"}
    options = {**KEYED, "hoodie.datasource.write.partitionpath.field": "", **(ordering if by_event_time else {})}
    table = HudiTable.create(str(tmp_path / "t"), options)
    table.bulk_insert(frame(spark, *FIRST).coalesce(1))
    before = {name: _chunks(tmp_path, name) for name in ("note.b", "city", "fare")}
    monkeypatch.setattr(
        update_module, "write_changes", lambda rows, *args: rows.explain() or write_changes(rows, *args)
    )
    assert table.update({"fare": "fare + 1"}, "id in (1, 4)").rows_updated == 2
    assert "null AS note#" in capsys.readouterr().out
    assert rows(table) == [(1, "Oslo", 11, (1, "x")), *FIRST[1:3], (4, "Moss", 41, (4, "x"))]
    assert {name: _chunks(tmp_path, name) == before[name] for name in before} == {
        "note.b": True,
        "city": True,
        "fare": False,
    }
    # whole structs, nulls, and the filter's own column
    whole = {"note": "named_struct('a', id, 'b', city)", "fare": "null"}
    table.update({"note.b": "city"} if by_event_time else whole)
    fares = [11, 20, 30, 41] if by_event_time else [None] * 4
    notes = [None if by_event_time and row[3] is None else (row[0], row[1]) for row in FIRST]
    assert rows(table) == [(*row[:2], fares[n], notes[n]) for n, row in enumerate(FIRST)]
    # a MERGE reads of the table what it compares, and what decides
    given = (2, "x", -1, None), (3, "x", 33, None), (5, "Oslo", 50, (5, "y")), (4, "x", 99, None)
    source = frame(spark, *given).alias("s")
    capsys.readouterr()
    monkeypatch.setattr(merge_module, "write_changes", lambda rows, *args: rows.explain() or write_changes(rows, *args))
    merge = table.merge(source, "target.id = s.id").when_matched_delete("s.fare = 99")
    done = merge.when_matched_update({"note": "s.note"}, "s.fare > 0").when_not_matched_insert_all().execute()
    assert (done.rows_updated, done.rows_deleted, done.rows_inserted) == (1, 1, 1)
    scans = re.findall(r"FileScan parquet \[(.*?)\]", capsys.readouterr().out)
    assert scans
    assert all("id#" in scan and "note#" in scan and "city#" not in scan for scan in scans)
    kept = [(*row[:2], fares[n], None if row[0] == 3 else notes[n]) for n, row in enumerate(FIRST[:3])]
    assert rows(table) == [*kept, (5, "Oslo", 50, (5, "y"))]
    assert table.validate_metadata().num_rows == 0


@pytest.mark.parametrize("kind", ["cow", seldom("event-time"), seldom("record-index")])
def test_new_rows_with_a_key_of_the_table_have_all_their_columns(spark, tmp_path, kind):
    """The condition does not find them, as it is about more than the key, or about another column."""
    ordering = {**KEYED, "hoodie.datasource.write.precombine.field": "fare"}
    table = HudiTable.create(str(tmp_path / "t"), {**TABLES, "event-time": ordering}[kind])
    table.bulk_insert(frame(spark, *FIRST))
    source = frame(spark, (1, "Oslo", 100, (7, "new"))).alias("s")
    table.merge(source, "target.id = s.id and target.fare > 50").when_not_matched_insert_all().execute()
    assert rows(table) == [(1, "Oslo", 100, (7, "new")), *FIRST[1:]]
    source = frame(spark, (2, "Oslo", 200, (8, "newer"))).alias("s")
    merge = table.merge(source, "target.fare = s.fare").when_matched_update({"fare": "s.fare"})
    merge.when_not_matched_insert_all().execute()
    assert rows(table) == [(1, "Oslo", 100, (7, "new")), (2, "Oslo", 200, (8, "newer")), *FIRST[2:]]


def test_rows_of_file_groups_outside_of_the_plan_fail(spark):
    """They would become a file group of their own, in the place of the stored one."""
    counts = pa.Table.from_pylist(
        [{"partition": "p", "file_id": "f", "base_path": "p/f_1.parquet", "rows": 1}], COUNTS_SCHEMA
    )
    sizes = pa.table({"partition": ["p"], "file_id": ["f"], "base_size": [1]})
    placement = InsertPlacement(SMALL_FILES_SCHEMA.empty_table(), Sizing(1 << 20, 0, 100, True, 10, 1.0), 10)
    workload = plan_workload(counts, sizes, placement)
    columns = f"{RECORD_KEY} string, {PARTITION_PATH} string, {FILE_ID} string, {BASE_PATH} string, {ROW} long"
    known, unknown = ((str(n), "p", file_id, None, n) for n, file_id in enumerate("fg"))
    assert route(spark.createDataFrame([known], columns), workload, max_tasks=2).first()[BASE_PATH] == "p/f_1.parquet"
    with pytest.raises(Exception, match="rows are stored in another file group than their file name says: g"):
        route(spark.createDataFrame([known, unknown], columns), workload, max_tasks=2).collect()


def test_keys_that_spark_casts_to_match(spark, tmp_path):
    """Two texts may equal one number, and two source rows that match nothing may be inserted with the same key."""
    table = made(spark, tmp_path / "t", "cow")
    texts = spark.createDataFrame([("1", 5), ("01", 6)], "id string, fare long").alias("s")
    with pytest.raises(AmbiguousMergeError, match="record key '1'"):
        table.merge(texts, "target.id = s.id").when_matched_update({"fare": "s.fare"}).execute()
    new = spark.createDataFrame(
        [("70", "Oslo", 5, None), ("070", "Oslo", 5, None)], COLUMNS.replace("id int", "id string")
    )
    done = table.merge(new.alias("s"), "target.id = s.id").when_not_matched_insert_all().execute()
    assert done.rows_matched == 0
    assert [row[0] for row in rows(table)] == [*(row[0] for row in FIRST), 70]


def test_a_field_of_a_struct_is_no_column_of_the_source(spark, tmp_path):
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    table = HudiTable.create(str(tmp_path / "t"), options)
    table.bulk_insert(frame(spark, (1, "a"), (2, "b"), columns="id int, v string"))
    columns = "id int, v string, after struct<id:int,v:string>"

    def merge(*events):
        return table.merge(frame(spark, *events, columns=columns).alias("s"), "target.id = after.id")

    with pytest.raises(AmbiguousMergeError):
        merge((11, "", (2, "X")), (12, "", (2, "Y"))).when_matched_update({"v": "after.v"}).execute()
    with pytest.raises(RecordKeyError, match="'2' cannot be changed to '1'"):
        merge((1, "other", (2, ""))).when_matched_update_all().when_not_matched_insert_all().execute()
    new = merge((1, "", (1, "A")), (1, "", (50, "B"))).when_matched_update({"v": "after.v"})
    new.when_not_matched_insert({"id": "after.id", "v": "after.v"}).execute()
    found = table.scan(columns=["id", "v"]).to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [(1, "A"), (2, "b"), (50, "B")]


@pytest.mark.parametrize("kind", ["cow", seldom("mor"), seldom("bucket"), seldom("virtual-keys")])
def test_rows_do_not_move_to_where_their_key_is(spark, tmp_path, kind):
    table = HudiTable.create(str(tmp_path / "t"), TABLES[kind])
    stored = [(1, "Moss", 2, None), (1, "Oslo", 1, None), (2, "Moss", 3, None), (3, "Oslo", 4, None)]
    table.bulk_insert(frame(spark, *stored))
    with pytest.raises(RecordKeyError, match="the key '1' cannot move to the partition 'Moss'"):
        table.update({"city": "'Moss'"}, "city = 'Oslo'")
    with pytest.raises(RecordKeyError, match=r"'1' cannot move to the partition 'Bodø'.*gets another one"):
        table.update({"city": "'Bodø'"})
    source = frame(spark, (1, "Moss", 9, None), (5, "Moss", 9, None)).alias("s")
    merge = table.merge(source, "target.id = s.id").when_matched_update_all().when_not_matched_insert_all()
    with pytest.raises(RecordKeyError, match="the key '1' cannot move to the partition 'Moss'"):
        merge.execute()
    other = frame(spark, (3, "Moss", 9, None)).selectExpr("id AS old", "30 AS id", "city", "fare", "note").alias("s")
    with pytest.raises(RecordKeyError, match="'3' cannot be changed to '30'"):
        table.merge(other, "target.id = s.old").when_matched_update_all().execute()
    assert rows(table) == stored
    assert len(table.history()) == 1
    table.update({"city": "'Moss'"}, "id = 3")
    assert rows(table) == [*stored[:3], (3, "Moss", 4, None)]


SWAP = {"city": "CASE city WHEN 'Moss' THEN 'Oslo' WHEN 'Oslo' THEN 'Moss' ELSE city END"}


@pytest.mark.parametrize("kind", ["cow", seldom("partitioned-index")])
def test_rows_swap_partitions(spark, tmp_path, kind):
    table = HudiTable.create(str(tmp_path / "t"), TABLES[kind])
    # the rows that move have lower ordering values than those whose places they take
    stored = [(1, "Bodø", 5, None), (1, "Moss", 9, (1, "x")), (1, "Oslo", 1, None), (2, "Oslo", 3, None)]
    table.bulk_insert(frame(spark, *stored))
    done = table.update(SWAP, "id = 1")
    assert (done.rows_matched, done.rows_updated, len(table.history())) == (3, 3, 2)
    swapped = [stored[0], (1, "Moss", 1, None), (1, "Oslo", 9, (1, "x")), stored[3]]
    assert rows(table) == swapped
    assert table.validate_metadata().num_rows == 0
    # later writes find the records where they are
    table.upsert(frame(spark, (1, "Moss", 10, None), (2, "Oslo", 11, None)))
    swapped = [stored[0], (1, "Moss", 10, None), swapped[2], (2, "Oslo", 11, None)]
    assert rows(table) == swapped
    # a row that is deleted makes room, one that stays does not
    table.merge(
        frame(spark, (1, "Moss"), (1, "Oslo"), columns="id int, city string").alias("s"),
        "target.id = s.id AND target.city = s.city",
    ).when_matched_delete("s.city = 'Moss'").when_matched_update({"city": "'Moss'"}).execute()
    assert rows(table) == [stored[0], (1, "Moss", 9, (1, "x")), (2, "Oslo", 11, None)]
    with pytest.raises(RecordKeyError, match="'1' cannot move to the partition 'Moss'"):
        table.update({"city": "IF(city = 'Moss', 'Moss', 'Moss')"}, "id = 1")


@pytest.mark.parametrize("kind", ["bucket", seldom("virtual-keys"), seldom("mor")])
def test_rows_without_file_groups_do_not_swap_partitions(spark, tmp_path, kind):
    table = HudiTable.create(str(tmp_path / "t"), TABLES[kind])
    stored = [(1, "Moss", 9, None), (1, "Oslo", 1, None)]
    table.bulk_insert(frame(spark, *stored))
    with pytest.raises(UnsupportedTableError, match="swap partitions"):
        table.update(SWAP)
    assert rows(table) == stored


def test_a_delete_by_new_values_makes_no_room(spark, tmp_path):
    """It may lose against the stored record, where ordering values count."""
    columns = "id int, city string, fare int, _hoodie_is_deleted boolean"
    table = HudiTable.create(str(tmp_path / "t"), TABLES["cow"])
    table.bulk_insert(frame(spark, (1, "Moss", 9, False), (1, "Oslo", 9, False), columns=columns))
    with pytest.raises(RecordKeyError, match="'1' cannot move to the partition 'Moss'"):
        table.update({"_hoodie_is_deleted": "city = 'Moss'", "fare": "fare - 1", "city": "'Moss'"})
    assert table.scan().to_arrow().num_rows == 2


@pytest.mark.parametrize("kind", [seldom("cow"), "mor", seldom("record-index"), seldom("bucket")])
def test_new_values_that_mark_rows_as_deletes(spark, tmp_path, kind):
    columns = "id int, city string, _hoodie_is_deleted boolean"
    table = HudiTable.create(str(tmp_path / "t"), TABLES[kind])
    table.bulk_insert(frame(spark, *((n, "Oslo", False) for n in range(1, 6)), columns=columns))
    done = table.update({"_hoodie_is_deleted": "id = 1"}, "id < 3")
    assert (done.rows_matched, done.write.num_deletes) == (2, 1)
    source = frame(spark, (2, "Oslo", True), (3, "Moss", True), (8, "Oslo", True), (9, "Oslo", None), columns=columns)
    merge = table.merge(source.alias("s"), "target.id = s.id").when_matched_update_all("s.id > 2")
    merge.when_matched_update({"city": "s.city"}).when_not_matched_insert_all().execute()
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == [2, 4, 5, 9]
    assert table.validate_metadata().num_rows == 0
    if kind == "mor":
        table.services.compact(spark=spark)
        assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == [2, 4, 5, 9]


def test_one_of_two_key_columns_is_assigned_its_own_value(spark, tmp_path):
    keys = {"hoodie.datasource.write.recordkey.field": "id,city", "hoodie.datasource.write.partitionpath.field": ""}
    table = HudiTable.create(str(tmp_path / "t"), {**KEYED, **keys})
    table.bulk_insert(frame(spark, *FIRST))
    source = frame(spark, (1, "Oslo", 11), columns="id int, city string, fare bigint")
    merge = table.merge(source.alias("s"), "target.id = s.id AND target.city = s.city")
    merge.when_matched_update({"id": "s.id", "fare": "s.fare"}).execute()
    assert rows(table) == [(1, "Oslo", 11, (1, "x")), *FIRST[1:]]


@pytest.mark.parametrize("kind", ["cow", seldom("mor")])
def test_rows_that_keep_a_newer_version_are_counted(spark, tmp_path, kind):
    options = {**TABLES[kind], "hoodie.datasource.write.precombine.field": "fare"}
    table = HudiTable.create(str(tmp_path / "t"), options)
    table.bulk_insert(frame(spark, *FIRST))
    older = frame(spark, (1, "Oslo", -5, None)).alias("s")
    done = table.merge(older, "target.id = s.id").when_matched_update({"fare": "s.fare"}).execute()
    assert (done.rows_matched, done.rows_updated) == (1, 1)
    assert rows(table) == list(FIRST)
    done = table.update({"fare": "-5"}, "id < 3")
    assert (done.rows_matched, done.rows_updated) == (2, 2)
    assert rows(table) == list(FIRST)
    assert table.update({"city": "'Moss'"}, "id = 1").rows_updated == 1


def test_file_groups_that_were_rewritten_since_they_were_read():
    schema = COUNTS_SCHEMA
    counts = pa.Table.from_pylist(
        [
            {"partition": "p", "file_id": "f", "base_path": None, "rows": 2},
            {"partition": "p", "file_id": "f", "base_path": "p/f_2.parquet", "rows": 3},
            {"partition": "p", "file_id": None, "base_path": None, "rows": 4},
        ],
        schema,
    )
    slices = pa.table({"partition": ["p", "p"], "file_id": ["e", "f"], "base_path": ["p/e_1.parquet", "p/f_2.parquet"]})
    found = with_base_paths(counts, slices, slices).to_pylist()
    assert [(row["file_id"], row["base_path"], row["rows"]) for row in found] == [
        ("f", "p/f_2.parquet", 5),
        (None, None, 4),
    ]
    looked_up = counts.slice(1, 1)
    assert with_base_paths(looked_up, slices, slices.slice(0, 1)) == looked_up
    older = slices.set_column(2, "base_path", [["p/e_1.parquet", "p/f_1.parquet"]])
    for now, read in ((slices.slice(0, 1), None), (slices, older), (slices, older.slice(0, 1))):
        with pytest.raises(ConflictError, match="concurrently changed file group 'f' of partition 'p'"):
            with_base_paths(counts, now, read)


def test_what_only_a_join_can_merge(spark, tmp_path):
    table = made(spark, tmp_path / "t", "mor")

    def merge(*given, on=BY_KEY, columns=COLUMNS):
        source = frame(spark, *given, columns=columns).alias("s")
        return table.merge(source, on).when_matched_update_all().when_not_matched_insert_all().execute()

    with pytest.raises(AmbiguousMergeError):
        merge((1, "Oslo", 11, None), (1, "Oslo", 12, None))
    with pytest.raises(RecordKeyError):
        merge((None, "Oslo", 11, None))
    assert rows(table) == sorted(FIRST)
    # a partition is not part of this condition
    assert merge((1, "Moss", 11, None), on="target.id = s.id").rows_updated == 1
    assert rows(table)[0] == (1, "Moss", 11, None)
    # null equals nothing, so that the second row is not the first one's new version
    assert merge((7, None, 70, None)).rows_inserted == 1
    assert merge((7, None, 71, None)).rows_updated == 0
    # Spark makes the types equal first
    assert merge((2, "Oslo", 21, None), columns=COLUMNS.replace("id int", "id smallint")).rows_updated == 1
    assert (2, "Oslo", 21, None) in rows(table)
