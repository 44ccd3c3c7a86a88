"""The record index: built by the write that asks for it, kept by all others, and looked up by those that use it."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import ConflictError, MetadataTableWarning, UnsupportedTableError
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.spark.indexes.record_index import record_index_update
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.spark.write.plans.file_groups import file_group_plan, file_group_planner, planned_keys
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from tests.cases import seldom
from tests.index_contents import indexed_locations, stored_locations
from tests.spark.indexes.indexed_rows import record_indexed
from tests.spark.model import Model, Row, frame, options, rows_of
from tests.spark.model import batch as records

batch = partial(records, partitions=2)
PARTITIONED = {
    "hoodie__metadata__record__level__index__enable": True,
    "hoodie__metadata__record__level__index__min__filegroup__count": 2,
}
BUCKETS = {"hoodie__index__type": "BUCKET", "hoodie__bucket__index__num__buckets": 2}


def groups(path: str) -> dict[str, int]:
    """How many file groups the record index has, by what their ids begin with."""
    client = TableMetaClient.open(path)
    index = MetadataTable.open(TableSnapshot.load(client))
    found: dict[str, int] = {}
    for file_id in index.groups("record_index")["file_id"].to_pylist():
        name = file_id.rsplit("-", 2)[0]
        found[name] = found.get(name, 0) + 1
    return found


@pytest.mark.slow
def test_base_files_alone_have_records_that_the_index_has_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    """Read-optimized queries find records that log files have deleted or moved, also by key."""
    path, written = str(tmp_path / "table"), partial(record_indexed, table_type="MERGE_ON_READ")
    write(frame(spark, batch(0, 20, 10, "base")), path, written("bulk_insert"))
    write(frame(spark, [("k000", "p0", 0, "")]), path, written("delete"))
    write(frame(spark, [("k001", "p7", 12, "moved")]), path, written("upsert"))
    table = HudiTable.for_path(path)
    for key, partition in ("k000", "p0"), ("k001", "p1"), ("k002", "p0"):
        found = table.scan([("id", "=", key)], ["id", "part", "v"], read_optimized=True).to_arrow().to_pylist()
        assert {"id": key, "part": partition, "v": "base"} in found
    skipped = table.scan([("id", "=", "k002")], read_optimized=True).plan().skipped
    assert any("record_index: not used: base files may have records" in line for line in skipped)
    assert "record_index: 1 of 2 slices out" in table.scan([("id", "=", "k002")]).plan().skipped


CASES = [
    seldom(("COPY_ON_WRITE", 9, {})),
    seldom(("MERGE_ON_READ", 6, {})),
    seldom(("COPY_ON_WRITE", 9, {"hoodie__index__type": "RECORD_LEVEL_INDEX", **PARTITIONED})),
    ("MERGE_ON_READ", 9, {"hoodie__index__type": "RECORD_LEVEL_INDEX", **PARTITIONED}),
    ("COPY_ON_WRITE", 9, {**BUCKETS, **PARTITIONED}),
    seldom(("MERGE_ON_READ", 9, {**BUCKETS})),
]


@pytest.mark.parametrize(("table_type", "version", "more"), CASES)
def test_the_index_says_where_every_key_is(
    spark: SparkSession,
    tmp_path: Path,
    table_type: str,
    version: int,
    more: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    path, model = str(tmp_path / "table"), Model()
    partitioned = "hoodie__metadata__record__level__index__enable" in more
    moves = "hoodie__index__type" not in more
    kind = {**more, "hoodie__metadata__record__index__enable": not partitioned}

    def step(operation: str, rows: list[Row], **extra: Any) -> None:
        write(frame(spark, rows), path, record_indexed(operation, table_type, version, **{**kind, **extra}), "append")
        assert rows_of(path) == model.rows, operation
        known, real = indexed_locations(path), stored_locations(path)
        # without a base file that says so, a key may be known that is deleted
        assert {place: file_id for place, file_id in known.items() if place in real} == real, operation
        assert set(known) == set(real) or "BUCKET" in more.values(), operation

    with caplog.at_level(logging.WARNING, "pyhudi.spark"):
        rows = batch(0, 60, 10, "first")
        model.upsert(rows)
        step("bulk_insert", rows)
        rows = [*batch(0, 5, 9, "old"), *batch(10, 20, 11, "new"), *batch(60, 65, 1, "fresh")]
        model.upsert(rows)
        step("upsert", rows)
        if moves:
            # a record moves to another partition, unless the stored one wins
            model.delete([("k020", "p0", 0, "")])
            model.upsert([("k020", "p7", 12, "moved")])
            step("upsert", [("k020", "p7", 12, "moved"), ("k021", "p7", 3, "weaker")])
        if partitioned:
            rows = [("k020", "p-7_x", 12, "another record"), ("k020", "p0", 12, "changed"), ("k001", "p1", 12, "too")]
            model.upsert(rows)
            step("upsert", rows)
            assert set(groups(path).items()) == {(f"record-index-{p}", 2) for p in ("p0", "p1", "p%2D7%5Fx")}
        gone = [*batch(0, 3, 0, ""), ("nobody", "p1", 0, ""), ("k004", "p1", 0, ""), ("k004", "elsewhere", 0, "")]
        if moves:
            gone = gone[:4]  # global indexes delete a key wherever it is
        model.delete(gone)
        step("delete", gone)
        if "BUCKET" not in more.values():
            # another index finds it in the base file, from which a log file has deleted it
            rows = [("k001", "p1", 50, "again")]
            model.upsert(rows)
            step("upsert", rows, hoodie__index__type="SIMPLE")
        rows = batch(100, 105, 1, "inserted")
        model.upsert(rows)
        step("insert", rows)
        rows = [("k000", "p1", 1, "overwritten")]
        model.drop("p1")
        model.upsert(rows)
        step("insert_overwrite", rows)
        if "BUCKET" not in more.values():
            # another index knows nothing of it, and it is kept all the same
            rows = [("k000", "p1", 2, "again"), ("other", "p1", 2, "fresh")]
            model.upsert(rows)
            step("upsert", rows, hoodie__index__type="SIMPLE")
        model.drop("p0")
        step("delete_partition", [], hoodie__datasource__write__partitions__to__delete="p0")
    assert not [r.getMessage() for r in caplog.records if "record index" in r.getMessage()]
    assert groups(path).get("record-index", 3) == 3
    table = HudiTable.for_path(path)
    found = table.scan(filter=[("id", "=", "k000")])
    assert found.plan().tasks.num_rows == 1
    # Apache Hudi may have written keys to log files of buckets, and not indexed them
    unsure = "BUCKET" in more.values() and table_type == "MERGE_ON_READ"
    assert ("record_index: not used" in str(found.plan().skipped)) == unsure
    assert found.to_arrow()["part"].to_pylist() == ["p1"]
    assert [row["part"] for row in found.to_spark(spark).collect()] == ["p1"]
    assert table.scan(filter=[("id", "=", "k003")]).plan().tasks.num_rows == 0
    assert table.lookup(["k000", "nobody"]).num_rows == 1


MOVES = [
    seldom(("COPY_ON_WRITE", "BLOOM", {})),
    seldom(("MERGE_ON_READ", "SIMPLE", {})),
    seldom(("COPY_ON_WRITE", "SIMPLE", {"hoodie__metadata__record__index__enable": False, **PARTITIONED})),
    seldom(("MERGE_ON_READ", "BLOOM", {"hoodie__metadata__record__index__enable": False, **PARTITIONED})),
]


@pytest.mark.parametrize(("table_type", "kind", "more"), MOVES)
def test_records_that_another_index_moves(
    spark: SparkSession,
    tmp_path: Path,
    table_type: str,
    kind: str,
    more: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A delete may lose against the stored record by event time, but a record that moves has won against it."""
    path, model = str(tmp_path / "table"), Model()
    more = {**more, "hoodie__index__type": f"GLOBAL_{kind}"}

    def step(rows: list[Row], *gone: tuple[str, str]) -> None:
        model.delete([(*place, 0, "") for place in gone])
        model.upsert(row for row in rows if row[3] != "weaker")
        write(frame(spark, rows), path, record_indexed("upsert", table_type, **more), "append")
        assert rows_of(path) == model.rows
        assert indexed_locations(path) == stored_locations(path)
        assert "record_index" in TableMetaClient.open(path).config.metadata_partitions

    with caplog.at_level(logging.WARNING, "pyhudi.spark"):
        step(batch(0, 20, 5, "first"))
        moved = [("k001", "p21", 6, "moved"), ("k003", "p21", 5, "as new"), ("k005", "p21", 4, "weaker")]
        step([*moved, ("k007", "p1", 6, "stays"), ("k020", "p21", 1, "fresh")], ("k001", "p1"), ("k003", "p1"))
        back = [("k001", "p1", 7, "back"), ("k003", "p0", 4, "weaker"), *batch(18, 24, 8, "")]
        step(back, ("k001", "p21"), ("k020", "p21"))
    assert not [r.getMessage() for r in caplog.records if "record index" in r.getMessage()]
    table = HudiTable.for_path(path)
    found = {key: table.lookup([key])["part"].to_pylist() for key in ("k001", "k003", "k005", "k020")}
    assert found == {"k001": ["p1"], "k003": ["p21"], "k005": ["p1"], "k020": ["p0"]}


def test_deletes_from_buckets_evaluate_their_input_once(spark: SparkSession, tmp_path: Path) -> None:
    """Else the index might learn of other deletes than the table, where an input is not the same each time."""
    path, seen = str(tmp_path / "table"), tmp_path / "seen"
    write(frame(spark, batch(0, 20, 1, "first")), path, record_indexed("bulk_insert", "MERGE_ON_READ", **BUCKETS))

    def watched(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for one in batches:
            with seen.open("a") as log:
                log.write("x" * one.num_rows)
            yield one

    gone = frame(spark, batch(0, 5, 2, ""))
    write(gone.mapInArrow(watched, gone.schema), path, record_indexed("delete", "MERGE_ON_READ", **BUCKETS))
    assert seen.read_text() == "x" * 5
    assert set(indexed_locations(path)) == set(stored_locations(path))
    assert len(indexed_locations(path)) == 15


@pytest.mark.slow
def test_new_keys_are_not_read_back_unless_they_went_elsewhere(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "table")
    write(frame(spark, batch(0, 40, 1, "first")), path, record_indexed("upsert", "COPY_ON_WRITE"))
    reads = []
    read = record_index_update.file_keys
    monkeypatch.setattr(record_index_update, "file_keys", lambda *a, **k: reads.append(a) or read(*a, **k))

    def upsert(rows: list[Row], read_back: int) -> None:
        del reads[:]
        write(frame(spark, rows), path, record_indexed("upsert", "COPY_ON_WRITE"), "append")
        assert indexed_locations(path) == stored_locations(path)
        assert len(reads) == read_back

    upsert([*batch(30, 50, 2, "second"), ("other", "p7", 2, "in a new partition")], 0)
    upsert(batch(0, 10, 3, "known"), 0)
    # rows of one key are merged before, and records move
    upsert([*batch(50, 52, 4, "new"), *batch(50, 51, 5, "twice")], 1)
    upsert([("k030", "p7", 6, "moved"), ("another", "p7", 6, "new")], 1)
    monkeypatch.setattr(planned_keys, "matches_plan", lambda *_: False)
    upsert(batch(60, 62, 7, "new"), 1)


@pytest.mark.parametrize("policy", ["drop", seldom("fail")])
def test_keys_of_deleted_records_are_no_duplicates(
    spark: SparkSession, tmp_path: Path, policy: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Where records are ordered by event time, the index keeps the keys of rows that are marked as deleted."""
    path = str(tmp_path / "table")
    write(frame(spark, batch(0, 4, 1, "first")), path, record_indexed("upsert", "COPY_ON_WRITE"))
    schema = "id string, part string, ts long, v string, _hoodie_is_deleted boolean"
    gone = spark.createDataFrame([("k001", "p1", 2, "", True)], schema)
    write(gone, path, record_indexed("upsert", "COPY_ON_WRITE"))
    more = {"hoodie__datasource__insert__dup__policy": policy, "hoodie__write__set__null__for__missing__columns": True}
    new = [("k001", "p1", 3, "again"), ("new", "p1", 3, "new"), *(batch(2, 3, 3, "known") if policy == "drop" else [])]
    with caplog.at_level(logging.WARNING, "pyhudi.spark"):
        write(frame(spark, new), path, record_indexed("insert", "COPY_ON_WRITE", **more))
    assert {row[0]: row[3] for row in rows_of(path)} == {
        **dict.fromkeys(("k000", "k002", "k003"), "first"),
        "k001": "again",
        "new": "new",
    }
    assert indexed_locations(path) == stored_locations(path)
    assert not [r.getMessage() for r in caplog.records if "record index" in r.getMessage()]


def test_an_index_that_is_wrong_is_not_believed(spark: SparkSession, tmp_path: Path) -> None:
    path, model = str(tmp_path / "table"), Model()
    rows = batch(0, 20, 1, "first")
    model.upsert(rows)
    write(frame(spark, rows), path, record_indexed("upsert", "COPY_ON_WRITE"))
    assert pa.array(sorted(key for key, _ in indexed_locations(path))).equals(pa.array(sorted(row[0] for row in rows)))
    for file in (tmp_path / "table/.hoodie/metadata/record_index").glob("*.hfile"):
        file.unlink()
    rows = batch(10, 30, 2, "second")
    model.upsert(rows)
    write(frame(spark, rows), path, record_indexed("upsert", "COPY_ON_WRITE"))
    assert rows_of(path) == model.rows


def test_an_index_of_files_that_a_restore_has_deleted(spark: SparkSession, tmp_path: Path) -> None:
    """Apache Hudi builds the metadata table anew before it undoes the writes, in a restore to before a compaction of
    it."""
    path, model, settings = str(tmp_path / "table"), Model(), record_indexed("upsert", "COPY_ON_WRITE")
    folder = tmp_path / "table/.hoodie"
    rows = batch(0, 20, 1, "first")
    model.upsert(rows)
    write(frame(spark, rows), path, settings)
    table = HudiTable.for_path(path)
    (first,) = table.history()["requested"].to_pylist()
    write(frame(spark, rows), path, record_indexed("insert_overwrite_table", "COPY_ON_WRITE"))
    table.services.delete_metadata_table()
    table.services.build_index("record_index", spark=spark)
    shutil.copytree(folder / "metadata", tmp_path / "metadata")
    properties = (folder / "hoodie.properties").read_bytes()
    table.services.restore(first)
    shutil.rmtree(folder / "metadata")
    shutil.copytree(tmp_path / "metadata", folder / "metadata")
    (folder / "hoodie.properties").write_bytes(properties)

    with pytest.warns(MetadataTableWarning, match="which a restore has undone since"):
        assert table.scan(filter=[("id", "=", rows[0][0])]).to_arrow().num_rows == 1
    rows = batch(10, 30, 2, "second")
    model.upsert(rows)
    write(frame(spark, rows), path, settings)
    assert rows_of(path) == model.rows
    assert indexed_locations(path) == stored_locations(path)


@pytest.mark.parametrize(
    ("table_type", "version", "moment"),
    [
        ("MERGE_ON_READ", 9, "write"),
        seldom(("COPY_ON_WRITE", 9, "record_index_of")),
        seldom(("COPY_ON_WRITE", 6, "write")),
    ],
)
def test_two_writers_that_add_one_key_at_once(
    spark: SparkSession,
    tmp_path: Path,
    table_type: str,
    version: int,
    moment: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each puts it into a file group of its own. Beside keys of others that are none of its own a write commits."""
    path, model = str(tmp_path / "table"), Model()
    several = {
        "hoodie__write__concurrency__mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie__parquet__small__file__limit": 0,
    }

    def upsert(rows: list[Row]) -> None:
        write(frame(spark, rows), path, record_indexed("upsert", table_type, version, **several))
        model.upsert(rows)

    def beside(rows: list[Row], others: list[list[Row]]) -> None:
        """A write in which one of others is done whenever it comes to that moment."""
        of: Any = file_group_planner if moment == "record_index_of" else file_group_plan.FileGroupPlan
        step = getattr(of, moment)

        def later(*args: Any, **named: Any) -> Any:
            monkeypatch.undo()
            if others:
                upsert(others.pop(0))
            if others:
                monkeypatch.setattr(of, moment, later)
            return step(*args, **named)

        monkeypatch.setattr(of, moment, later)
        upsert(rows)
        assert not others

    upsert(batch(0, 10, 1, "first"))
    first = moment == "record_index_of"  # what completes before the write is announced makes it plan again
    rounds = [batch(50, 51, 1, "before")] if first else []
    with caplog.at_level(logging.WARNING, "pyhudi"):
        with pytest.raises(ConflictError, match="1 of its new keys were added concurrently"):
            beside([("new", "p0", 2, "one"), ("n1", "p0", 2, "one")], [*rounds, [("new", "p1", 1, "other")]])
        rounds = [batch(51, 52, 1, "before")] if first else []
        beside([("n2", "p0", 2, "one")], [*rounds, [("n3", "p0", 2, "other")]])
        upsert([("new", "p1", 3, "again")])
    assert "will be disabled" not in caplog.text
    assert rows_of(path) == model.rows
    assert indexed_locations(path) == stored_locations(path)
    for key in ("new", "n2", "n3"):
        assert HudiTable.for_path(path).lookup([key]).num_rows == 1


@pytest.mark.slow
def test_two_writers_that_open_a_partition_with_other_numbers_of_file_groups(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "table")
    several = {"hoodie__write__concurrency__mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    own = {"hoodie__metadata__record__index__enable": False, "hoodie__index__type": "RECORD_LEVEL_INDEX", **PARTITIONED}

    def upsert(rows: list[Row], count: int = 2) -> None:
        groups = {"hoodie__metadata__record__level__index__min__filegroup__count": count}
        write(frame(spark, rows), path, record_indexed("upsert", "COPY_ON_WRITE", 9, **{**own, **several, **groups}))

    def write_keys(*args: Any) -> Any:
        found = real(*args)
        monkeypatch.undo()
        upsert([(f"o{n}", "p9", 1, "other") for n in range(4)], 5)
        return found

    upsert(batch(0, 6, 1, "first"))
    real = record_index_update.write_keys
    monkeypatch.setattr(record_index_update, "write_keys", write_keys)
    rows: list[Row] = [(f"n{n}", "p9", 1, "one") for n in range(4)]
    with pytest.raises(ConflictError, match="other numbers of file groups of the record index were opened"):
        upsert(rows, 3)
    upsert(rows, 3)
    assert groups(path) == {"record-index-p0": 2, "record-index-p1": 2, "record-index-p9": 5}
    assert indexed_locations(path) == stored_locations(path)


def test_an_index_that_would_miss_rows_goes_out_of_use(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(tmp_path / "table")

    def declared() -> bool:
        return "record_index" in TableMetaClient.open(path).config.metadata_partitions

    write(frame(spark, batch(0, 9, 1, "first")), path, record_indexed("insert", "COPY_ON_WRITE"))
    assert declared()
    again = [("k003", "p0", 1, "in another partition")]
    with caplog.at_level(logging.WARNING, "pyhudi.spark"):
        write(frame(spark, again), path, record_indexed("upsert", "COPY_ON_WRITE", hoodie__index__type="SIMPLE"))
    assert not declared()
    assert "1 keys are in more than one file group" in caplog.text
    assert "was not built: 1 keys are in several file groups" in caplog.text
    assert HudiTable.for_path(path).lookup(["k003"]).num_rows == 2
    # of a key and a partition there is one, until a bulk insert does not look
    own = {"hoodie__metadata__record__index__enable": False, "hoodie__index__type": "RECORD_LEVEL_INDEX"}
    kind = {**own, **PARTITIONED}
    services = HudiTable.for_path(path).services
    asked = {name.replace("__", "."): value for name, value in PARTITIONED.items()}
    assert services.build_index("record_index", options=asked, spark=spark).partitions == ("record_index",)
    assert groups(path) == {"record-index-p0": 2, "record-index-p1": 2}
    write(frame(spark, batch(3, 4, 2, "third")), path, record_indexed("upsert", "COPY_ON_WRITE", **kind))
    assert declared()
    assert len(indexed_locations(path)) == 10
    write(frame(spark, again), path, options("bulk_insert"))
    assert not declared()
    assert HudiTable.for_path(path).lookup(["k003"]).num_rows == 3
    with pytest.raises(UnsupportedTableError, match="version 6 do not support"):
        write(frame(spark, again), str(tmp_path / "old"), record_indexed("upsert", "COPY_ON_WRITE", 6, **kind))


def test_the_index_of_a_table_without_files(spark: SparkSession, tmp_path: Path) -> None:
    path, indexed = str(tmp_path / "table"), {"hoodie__metadata__record__index__enable": True}
    result = write(frame(spark, []), path, options("insert", hoodie__allow__empty__commit=True, **indexed), "append")
    assert not result.warnings
    assert "record_index" in TableMetaClient.open(path).config.metadata_partitions
    write(frame(spark, [("a", "p", 1, "x")]), path, options("upsert", **indexed), "append")
    assert indexed_locations(path) == stored_locations(path) != {}
