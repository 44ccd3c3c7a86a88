"""Indexes with as many records as the table, built while writes go on that move, delete and add keys."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config.property_keys import METADATA_PARTITIONS_INFLIGHT as INFLIGHT
from pyhudi.errors import ConfigError, ConflictError, UnsupportedTableError
from pyhudi.metadata.file_groups.delta_commit_writer import GroupFiles
from pyhudi.metadata.indexes.index_definitions import drop_definitions, load_definitions
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.metadata.records.record_index_file_groups import new_group_ids
from pyhudi.services.indexing import async_indexer
from pyhudi.spark.write import write_execution
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.storage import open_storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.transaction.transaction import Transaction
from tests.cases import seldom
from tests.index_contents import indexed_locations, metadata_table, secondary_entries, stored_locations
from tests.spark.indexes.indexed_rows import VALUES, batch
from tests.spark.model import Model, Row, by_event_time, frame, rows_of

UPPER: dict[str, Any] = {"using": "column_stats", "index_options": {"expr": "upper"}}
MOVES = {"hoodie__simple__index__update__partition__path": True, "hoodie__index__type": "GLOBAL_SIMPLE"}
GROUPS = {"hoodie.metadata.record.index.min.filegroup.count": 3}


@pytest.mark.parametrize(("table_type", "version"), [seldom(("MERGE_ON_READ", 9)), seldom(("MERGE_ON_READ", 6))])
def test_writes_beside(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_type: str, version: int
) -> None:
    path, model = str(tmp_path / "table"), Model()
    more: dict[str, Any] = {"hoodie__record__index__update__partition__path": True}

    def step(operation: str, rows: list[Row], **extra: Any) -> None:
        write(frame(spark, rows), path, by_event_time(operation, table_type, version, **more, **extra), "append")

    def add(start: int, stop: int, ts: int, shift: int = 0) -> None:
        rows = batch(start, stop, ts, shift)
        model.upsert(rows)
        step("upsert", rows)

    def changes(ts: int) -> None:
        """Updates and inserts, rows that move, deletes."""
        add(10, 50, ts, 1)
        moved = ("mover", f"p{ts}", ts + 2, "red")
        model.upsert([moved])
        step("upsert", [moved], **({} if "hoodie__index__type" in more else MOVES))
        gone = [*batch(0, 3, ts + 5), ("nobody", "p1", 0, "")]
        model.delete(gone)
        step("delete", gone)

    def other_files(ts: int) -> None:
        """A compaction, a partition that is overwritten."""
        if table_type == "MERGE_ON_READ":
            services.compact(spark=spark)
        rows: list[Row] = [("k001", "p0", ts + 9, "red"), ("new", "p0", ts + 9, "bl\\ue")]
        model.drop("p0")
        model.upsert(rows)
        step("insert_overwrite", rows)

    add(0, 40, 10)
    model.upsert([("mover", "p1", 1, "red")])
    step("upsert", [("mover", "p1", 1, "red")])
    services = HudiTable.for_path(path).services
    real = async_indexer.write_index_files

    def build(name: str, columns: tuple[str, ...], ts: int, *beside: Callable[[int], None], **more: Any) -> None:
        def written(begun: Any) -> Any:
            found = None if ts % 2 else real(begun)
            for act in beside:
                act(ts)
            return found or real(begun)

        planned = services.schedule_index(name, columns, options=GROUPS, **more)
        add(5, 8, ts - 1, 3)
        monkeypatch.setattr(async_indexer, "write_index_files", written)
        assert services.run_index(planned.instant, GROUPS, spark=spark).partitions == planned.partitions
        monkeypatch.undo()

    build("record_index", (), 21, changes, other_files)
    assert indexed_locations(path) == stored_locations(path)
    if version >= 8:
        more["hoodie__index__type"] = "RECORD_INDEX"
        build("by_v", ("v",), 40, changes, other_files)
        build("upper_v", ("v",), 61, other_files, **UPPER)
        check_secondary(path)
        check_expression(path, spark)
    more["hoodie__index__type"] = "RECORD_INDEX"
    step("upsert", batch(0, 4, 79))
    assert indexed_locations(path) == stored_locations(path)
    if version >= 8:
        check_secondary(path)
        check_expression(path, spark)


def test_a_write_that_opens_a_partition_beside_is_rolled_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File groups that a pending write has opened in an index are not those of other writes to the same partition."""
    path = str(tmp_path / "table")
    several = {
        "hoodie__write__concurrency__mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie__clean__failed__writes__policy": "LAZY",
        "hoodie__metadata__record__level__index__enable": True,
        "hoodie__metadata__record__level__index__min__filegroup__count": 7,
    }
    kind = by_event_time("upsert", "COPY_ON_WRITE", **several)

    def step(*rows: Row) -> None:
        write(frame(spark, rows), path, kind, "append")

    write(frame(spark, batch(0, 8, 1)), path, by_event_time("upsert", "COPY_ON_WRITE"), "append")
    services = HudiTable.for_path(path).services
    asked = {key.replace("__", "."): value for key, value in several.items()}
    planned = services.schedule_index("record_index", options=asked)
    real = async_indexer.write_index_files

    def beside(begun: Any) -> Any:
        client = TableMetaClient.open(path)
        pending = Transaction.begin(client, "commit", "UPSERT", {key: str(value) for key, value in asked.items()})
        for file_id in new_group_ids({"p9": 7}):
            GroupFiles(client.storage, "record_index", pending.instant, 9).open_group(file_id)
        step(*((f"n{n}", "p9", 1, "red") for n in range(3)))
        pending.abort()
        return real(begun)

    with monkeypatch.context() as patch:
        patch.setattr(async_indexer, "write_index_files", beside)
        assert services.run_index(planned.instant, asked, spark=spark).partitions == planned.partitions
    assert indexed_locations(path) == stored_locations(path)
    ids = metadata_table(path).groups("record_index")["file_id"].to_pylist()
    assert sum("-p9-" in file_id for file_id in ids) == 7
    step(("n1", "p9", 2, "red"), ("other", "p9", 2, "red"))
    assert indexed_locations(path) == stored_locations(path)


def check_secondary(path: str) -> None:
    """The index tells the keys of all rows, and queries find them by it."""
    rows = rows_of(path)
    assert secondary_entries(path) == sorted(((row[3], row[0]) for row in rows), key=repr)
    for value in VALUES[:3]:
        scan = HudiTable.for_path(path).scan([("v", "=", value)], ["id"])
        assert sorted(scan.to_arrow()["id"].to_pylist()) == sorted(row[0] for row in rows if row[3] == value)
        assert "secondary_index_by_v" in str(scan.plan().skipped)


def check_expression(path: str, spark: SparkSession) -> None:
    """The index says of the table's files what it would say if it was built anew."""

    def known(path: str) -> dict[str, Any]:
        client = TableMetaClient.open(path)
        index = MetadataTable.open(TableSnapshot.load(client))
        found = {row.pop("key"): row for row in index.scan("expr_index_upper_v").to_pylist()}
        for row in found.values():
            (row["BloomFilterMetadata"] or {}).pop("timestamp", None)
        return {key: row for key, row in found.items() if row["type"] in (3, 4)}

    there, copy = known(path), f"{path}-anew"
    shutil.copytree(path, copy)
    definition = load_definitions(open_storage(copy), HudiTable.for_path(copy).config)["expr_index_upper_v"]
    services = HudiTable.for_path(copy).services
    services.drop_index("upper_v")
    given = {"using": definition["indexType"], "index_options": definition["indexOptions"]}
    services.build_index("upper_v", "v", **given, spark=spark)
    anew = known(copy)
    shutil.rmtree(copy)
    whole = {key for key, row in anew.items() if "__partition_stat__" not in str(row)}
    assert {key: there[key] for key in whole} == {key: anew[key] for key in whole}
    scan = HudiTable.for_path(path).scan("upper(v) = 'RED'", ["id"])
    found = sorted(row.id for row in scan.to_spark(spark).collect())
    assert found == sorted(row[0] for row in rows_of(path) if row[3] == "red")
    assert "expr_index_upper_v" in str(scan.plan().skipped)


@pytest.mark.parametrize("name", [seldom("by_v"), seldom("upper_v")])
def test_who_builds_and_dies(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Writers go on and tell what is half-built; who runs the plan again builds all of it. A write of ours that has
    nothing to tell is not suspected, one of others that knows nothing of the index is."""
    path = str(tmp_path / "table")
    config: Any = lambda: HudiTable.for_path(path).config  # noqa: E731

    def step(rows: list[Row]) -> None:
        write(frame(spark, rows), path, by_event_time("upsert", "COPY_ON_WRITE", 8), "append")

    step([row for row in batch(0, 20, 1) if row[3]])
    services = HudiTable.for_path(path).services
    services.build_index("record_index", options=GROUPS, spark=spark)
    more: dict[str, Any] = {} if name == "by_v" else {**UPPER, "using": "bloom_filters"}
    planned = services.schedule_index(name, "v", options=GROUPS, **more)
    (partition,) = planned.partitions
    assert load_definitions(open_storage(path), config())[partition]["sourceFields"] == ["v"]
    assert partition not in config().metadata_partitions_kept
    real = async_indexer.write_index_files

    def dies(begun: Any) -> Any:
        real(begun)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(async_indexer, "write_index_files", dies)
        patch.setattr(async_indexer.IndexBuildAttempt, "roll_back", lambda _: None)
        with pytest.raises(KeyboardInterrupt):
            services.run_index(options=GROUPS, spark=spark)
    assert config().metadata_partitions_inflight == (partition,)
    step([("k000", "p0", 5, "late"), ("k001", "p1", 5, "late")])
    assert config().metadata_partitions_inflight == (partition,)
    assert HudiTable.for_path(path).scan([("v", "=", "late")], ["id"]).to_arrow().num_rows == 2
    times = []

    def beside(begun: Any) -> Any:
        found = real(begun)
        times.append(begun)
        if len(times) == 1:
            properties = config().properties[INFLIGHT]
            HudiTable.for_path(path).config.updated(open_storage(path), remove=[INFLIGHT])
            step([("k002", "p0", 6, "silent")])
            HudiTable.for_path(path).config.updated(open_storage(path), set={INFLIGHT: properties})
        step([("k004", "p0", 7, "red")])  # as it is
        return found

    monkeypatch.setattr(async_indexer, "write_index_files", beside)
    assert services.run_index(options=GROUPS, spark=spark).partitions == (partition,)
    assert len(times) == 2
    assert not config().metadata_partitions_inflight
    check_secondary(path) if name == "by_v" else check_expression(path, spark)
    assert HudiTable.for_path(path).scan([("v", "=", "silent")], ["id"]).to_arrow()["id"].to_pylist() == ["k002"]


def test_plans_that_others_stand_in_the_way_of(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column changes its type while its index is built; values are null that cannot be; a definition is lost."""
    path = str(tmp_path / "table")
    kind = by_event_time("upsert", "COPY_ON_WRITE")
    write(frame(spark, [], "id string, part string, ts long, n int, v string"), path, kind)
    columns = "id string, part string, ts long, n {}, v string"
    write(frame(spark, [("a", "p", 1, 1, None)], columns.format("int")), path, kind)  # type: ignore[list-item]
    services = HudiTable.for_path(path).services
    services.build_index("record_index", options=GROUPS, spark=spark)
    services.schedule_index("by_n", "n", options=GROUPS)
    real = async_indexer.write_index_files

    def retype(begun: Any) -> Any:
        found = real(begun)
        write(frame(spark, [("b", "p", 1, 2, "x")], columns.format("long")), path, kind)  # type: ignore[list-item]
        return found

    with monkeypatch.context() as patch:
        patch.setattr(async_indexer, "write_index_files", retype)
        with pytest.raises(ConflictError, match="run the plan again"):
            services.run_index(options=GROUPS, spark=spark)
    assert not HudiTable.for_path(path).config.metadata_partitions_inflight
    assert services.run_index(options=GROUPS, spark=spark).partitions == ("secondary_index_by_n",)
    assert secondary_entries(path, "by_n") == [("1", "a"), ("2", "b")]
    with pytest.raises(ConfigError, match="exists; drop it first"):
        services.schedule_index("by_n", "v")
    with pytest.raises(ConfigError, match="the column 'w' to index does not exist"):
        services.schedule_index("by_w", "w")
    services.schedule_index("upper_v", "v", using="bloom_filters", index_options={"expr": "upper"})
    with pytest.raises(UnsupportedTableError, match="null in some rows"):
        services.run_index(spark=spark)
    storage, config = open_storage(path), HudiTable.for_path(path).config
    assert not config.metadata_partitions_inflight
    drop_definitions(storage, config, ["expr_index_upper_v"])
    with pytest.raises(UnsupportedTableError, match="no definition of it"):
        services.run_index(spark=spark)
    assert services.drop_index("upper_v").partitions == ("expr_index_upper_v",)
    assert not services.pending_indexes()
    assert services.schedule_index("upper_v", "v", **UPPER).instant
    with pytest.raises(ConfigError, match="is planned"):
        services.build_index("upper_v", "v", **UPPER, spark=spark)
    services.drop_index("upper_v")
    assert "expr_index_upper_v" not in load_definitions(storage, HudiTable.for_path(path).config)


def test_an_index_that_cannot_be(spark: SparkSession, tmp_path: Path) -> None:
    """Keys in two file groups, of which a record index knows one: the builder gives up, and readers look nothing up."""
    path = str(tmp_path / "table")
    for _ in range(2):
        write(frame(spark, batch(0, 4, 1)), path, by_event_time("bulk_insert", "COPY_ON_WRITE"), "append")
    services = HudiTable.for_path(path).services
    services.schedule_index("record_index")
    with pytest.raises(ConfigError, match="requires the record index"):
        services.schedule_index("by_v", "v")
    with pytest.raises(UnsupportedTableError, match="4 keys are in several file groups"):
        services.run_index(options=GROUPS, spark=spark)
    config = HudiTable.for_path(path).config
    assert not config.metadata_partitions_inflight
    assert "record_index" not in config.metadata_partitions
    assert len(services.pending_indexes()) == 1
    assert services.drop_index("record_index").partitions == ("record_index",)
    assert not services.pending_indexes()


@pytest.mark.parametrize("when", ["begun", seldom("built")])
def test_a_write_that_began_before(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """It tells the index that is begun, or even ready, by the time it commits."""
    path = str(tmp_path / "table")
    write(frame(spark, batch(0, 20, 1)), path, by_event_time("upsert", "COPY_ON_WRITE"), "append")
    services = HudiTable.for_path(path).services
    real = write_execution.commit_write

    def commit(*args: Any, **more: Any) -> Any:
        monkeypatch.undo()
        services.schedule_index("record_index", options=GROUPS)
        if when == "built":
            services.run_index(options=GROUPS, spark=spark)
            return real(*args, **more)
        found = []
        monkeypatch.setattr(
            async_indexer,
            "write_index_files",
            lambda begun: (found.append(real(*args, **more)), written(begun))[1],
        )
        services.run_index(options=GROUPS, spark=spark)
        return found[0]

    written = async_indexer.write_index_files
    monkeypatch.setattr(write_execution, "commit_write", commit)
    write(frame(spark, batch(10, 30, 2)), path, by_event_time("upsert", "COPY_ON_WRITE"), "append")
    assert "record_index" in HudiTable.for_path(path).config.metadata_partitions
    assert indexed_locations(path) == stored_locations(path)


def test_keys_that_come_a_second_time(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the builder, one write puts keys into a second file group. Their index would find half of their rows."""
    path, rows = str(tmp_path / "table"), batch(0, 20, 1)
    write(frame(spark, rows), path, by_event_time("upsert", "COPY_ON_WRITE"), "append")
    services = HudiTable.for_path(path).services
    services.schedule_index("record_index", options=GROUPS)
    real = async_indexer.write_index_files

    def beside(begun: Any) -> Any:
        found = real(begun)
        monkeypatch.undo()
        write(frame(spark, rows[5:8]), path, by_event_time("bulk_insert", "COPY_ON_WRITE"), "append")
        return found

    monkeypatch.setattr(async_indexer, "write_index_files", beside)
    with pytest.raises(UnsupportedTableError, match="3 keys are in several file groups"):
        services.run_index(options=GROUPS, spark=spark)
    config = HudiTable.for_path(path).config
    assert "record_index" not in {*config.metadata_partitions, *config.metadata_partitions_inflight}
    assert len(HudiTable.for_path(path).scan([("id", "=", rows[5][0])]).to_arrow()) == 2
