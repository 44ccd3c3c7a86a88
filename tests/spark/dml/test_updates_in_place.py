"""Rows that statements change in the file groups that they were read from."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConflictError, TransactionError
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.dml import update as update_module
from pyhudi.spark.dml.merge import merge_builder as merge_module
from pyhudi.spark.execution import local_relations
from pyhudi.spark.execution.cached_frames import planned
from pyhudi.spark.spark_errors import task_errors
from pyhudi.spark.write.dataframe_writer import write_changes
from pyhudi.spark.write.plans.file_groups import row_routing, tagged_batch
from pyhudi.spark.write.plans.file_groups.row_routing import count_rows, route
from pyhudi.spark.write.row_change_locations import with_base_paths
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, ROW_POSITION
from pyhudi.write.planning.small_files import SMALL_FILES_SCHEMA, InsertPlacement, Sizing
from pyhudi.write.planning.workload_profile import COUNTS_SCHEMA, build_workload_profile
from tests.cases import classic, seldom
from tests.spark.dml.ride_tables import FIRST, KEYED, TABLES, frame, made, rows


@pytest.mark.parametrize("per_core", [seldom(4), 0], ids=["few-groups", "counted"])
def test_rows_are_changed_at_their_places(spark, tmp_path, monkeypatch, per_core):
    """Of two rows with one key, which an insert may make, the one is changed that meets the condition."""
    monkeypatch.setattr(tagged_batch, "_GROUPS_PER_CORE", per_core)
    counted = []
    monkeypatch.setattr(tagged_batch, "count_rows", lambda *a, **k: counted.append(1) or count_rows(*a, **k))
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


@pytest.mark.parametrize("kind", ["mor", seldom("v6-mor")])
@pytest.mark.parametrize("per_core", [4, seldom(0)], ids=["few-groups", "counted"])
def test_log_files_are_written_to_few_groups_without_counting_rows(spark, tmp_path, monkeypatch, per_core, kind):
    monkeypatch.setattr(tagged_batch, "_GROUPS_PER_CORE", per_core)
    counted = []
    monkeypatch.setattr(tagged_batch, "count_rows", lambda *a, **k: counted.append(1) or count_rows(*a, **k))
    table = made(spark, tmp_path / "t", kind)
    assert table.update({"note": "null"}, "fare <= 20").rows_updated == 2
    assert table.update({"note.b": "'y'"}, "id >= 2").rows_updated == 3  # rows of base and log files
    assert table.delete("id = 1 or id = 4").rows_deleted == 2
    groups = [(r["partition"], len(r["log_paths"])) for r in table.inspect.file_slices().to_pylist()]
    assert sorted(groups) == [("Bergen", 1), ("Moss", 2), ("Oslo", 3)]
    assert table.delete("length(city) > 100").rows_deleted == 0
    assert bool(counted) == (not per_core)
    assert [(r[0], r[1], r[2]) for r in rows(table)] == [(2, "Oslo", 20), (3, "Bergen", 30)]
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

    def explained(rows, *args, **kwargs):
        rows.explain()
        return write_changes(rows, *args, **kwargs)

    monkeypatch.setattr(update_module, "write_changes", explained)
    assert table.update({"fare": "fare + 1"}, "id in (1, 4)").rows_updated == 2
    plan = capsys.readouterr().out
    assert "null AS note#" in plan
    assert RECORD_KEY not in plan.partition("FileScan")[2]  # It is the text of the key column.
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
    notes = [(None if by_event_time and row[3] is None else row[0], row[1]) for row in FIRST]
    assert rows(table) == [(*row[:2], fares[n], notes[n]) for n, row in enumerate(FIRST)]
    # a MERGE reads of the table what it compares, and what decides
    given = (2, "x", -1, None), (3, "x", 33, None), (5, "Oslo", 50, (5, "y")), (4, "x", 99, None)
    source = frame(spark, *given).alias("s")
    capsys.readouterr()
    monkeypatch.setattr(merge_module, "write_changes", explained)
    merge = table.merge(source, "target.id = s.id").when_matched_delete("s.fare = 99")
    done = merge.when_matched_update({"note": "s.note"}, "s.fare > 0").when_not_matched_insert_all().execute()
    assert (done.rows_updated, done.rows_deleted, done.rows_inserted) == (1, 1, 1)
    scans = re.findall(r"FileScan parquet \[(.*?)\]", capsys.readouterr().out)
    assert scans
    assert all("id#" in scan and "note#" in scan and "city#" not in scan for scan in scans)
    assert not any(RECORD_KEY in scan for scan in scans)
    kept = [(*row[:2], fares[n], None if row[0] == 3 else notes[n]) for n, row in enumerate(FIRST[:3])]
    assert rows(table) == [*kept, (5, "Oslo", 50, (5, "y"))]
    assert table.validate_metadata().num_rows == 0


def test_rows_of_file_groups_outside_of_the_plan_fail(spark):
    """They would become a file group of their own, in the place of the stored one."""
    counts = pa.Table.from_pylist(
        [{"partition": "p", "file_id": "f", "base_path": "p/f_1.parquet", "rows": 1}], COUNTS_SCHEMA
    )
    sizes = pa.table({"partition": ["p"], "file_id": ["f"], "base_size": [1]})
    placement = InsertPlacement(SMALL_FILES_SCHEMA.empty_table(), Sizing(1 << 20, 0, 100, True, 10, 1.0), 10)
    workload = build_workload_profile(counts, sizes, placement)
    columns = f"{RECORD_KEY} string, {PARTITION_PATH} string, {FILE_ID} string, {BASE_PATH} string, {ROW_POSITION} long"
    known, unknown = ((str(n), "p", file_id, None, n) for n, file_id in enumerate("fg"))
    assert route(spark.createDataFrame([known], columns), workload, max_tasks=2).first()[BASE_PATH] == "p/f_1.parquet"
    with pytest.raises(TransactionError, match=r"input gave other rows .* file group g, which"), task_errors():
        route(spark.createDataFrame([known, unknown], columns), workload, max_tasks=2).collect()


@classic
def test_plans_that_are_made_once_are_not_adaptive(spark, capsys):
    key = "spark.sql.adaptive.enabled"
    before = spark.conf.get(key)
    spark.conf.set(key, "true")
    try:
        rows = spark.range(10).repartition(3, "id")
        with planned(rows, adaptive=False) as once:
            assert spark.conf.get(key) == "true"
            once.explain()
            assert once.count() == 10
    finally:
        spark.conf.set(key, before)
    shown = capsys.readouterr().out
    assert "InMemoryTableScan" in shown
    assert "AdaptiveSparkPlan" not in shown
    assert not rows.storageLevel.useMemory


@pytest.mark.parametrize("literals", [16, 0], ids=["literals", "joined"])
def test_rows_are_routed_to_partitions_of_any_name(spark, monkeypatch, literals):
    monkeypatch.setattr(local_relations, "MAX_LITERALS", literals)
    monkeypatch.setattr(row_routing, "MAX_LITERALS", literals)
    partitions = ["plain", "it's \"\\' ü", "a=1/b=${x}", "", "new 'one'"]
    counts = [(name, f"f-{number}", f"{name}/f-{number}_1.parquet") for number, name in enumerate(partitions[:4])]
    added = [(name, None, None) for name in (partitions[1], partitions[4])]
    columns = [*map(list, zip(*counts, *added, strict=True)), [1] * 6]
    sizes = pa.table({"partition": partitions[:4], "file_id": [row[1] for row in counts], "base_size": [1] * 4})
    placement = InsertPlacement(SMALL_FILES_SCHEMA.empty_table(), Sizing(1 << 20, 0, 100, True, 10, 1.0), 10)
    workload = build_workload_profile(pa.Table.from_arrays(columns, schema=COUNTS_SCHEMA), sizes, placement)
    names = f"{RECORD_KEY} string, {PARTITION_PATH} string, {FILE_ID} string, {BASE_PATH} string, {ROW_POSITION} long"
    given = [(str(number), name, file_id, None, None) for number, (name, file_id, _) in enumerate([*counts, *added])]
    session = spark.newSession()
    session.udf.register("decode", lambda *_: "a function of the user")
    routed = {
        row[RECORD_KEY]: row for row in route(session.createDataFrame(given, names), workload, max_tasks=2).collect()
    }
    assert [(row[PARTITION_PATH], row[FILE_ID], row[BASE_PATH]) for row in map(routed.get, "0123")] == counts
    new = {row["partition"]: row["file_id"] for row in workload.insert_targets.to_pylist()}
    assert {routed[n][PARTITION_PATH]: (routed[n][FILE_ID], routed[n][BASE_PATH]) for n in "45"} == {
        name: (new[name], None) for name in (partitions[1], partitions[4])
    }


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


@pytest.mark.parametrize("kind", [seldom("cow"), seldom("mor")])
def test_rows_that_keep_a_newer_version_are_counted(spark, tmp_path, monkeypatch, kind):
    options = {**TABLES[kind], "hoodie.datasource.write.precombine.field": "fare"}
    table = HudiTable.create(str(tmp_path / "t"), options)
    table.bulk_insert(frame(spark, *FIRST))
    older = frame(spark, (1, "Oslo", -5, None)).alias("s")
    done = table.merge(older, "target.id = s.id").when_matched_update({"fare": "s.fare"}).execute()
    assert (done.rows_matched, done.rows_updated) == (1, 1)
    assert rows(table) == list(FIRST)
    # the plan of the write counts rows together with new ones
    monkeypatch.setattr(merge_module, "count_changes", None)
    given = frame(spark, (1, "Oslo", -5, None), (4, "Moss", 50, None), (9, "Oslo", -9, None), (10, "Oslo", 9, None))
    merge = table.merge(given.alias("s"), "target.id = s.id").when_matched_delete("s.fare > 40")
    merge = merge.when_matched_update({"fare": "s.fare"}).when_not_matched_insert_all("s.fare > 0")
    done = merge.execute()
    assert (done.rows_matched, done.rows_updated, done.rows_deleted, done.rows_inserted) == (2, 1, 1, 1)
    assert rows(table) == [*FIRST[:3], (10, "Oslo", 9, None)]
    done = table.update({"fare": "-5"}, "id < 3")
    assert (done.rows_matched, done.rows_updated) == (2, 2)
    assert rows(table) == [*FIRST[:3], (10, "Oslo", 9, None)]
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
