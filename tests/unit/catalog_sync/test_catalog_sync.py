"""Syncs to a metastore in memory."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pymetastore.hive_metastore import ttypes
from thrift.transport.TTransport import TTransportException

from pyhudi import HudiTable
from pyhudi.catalog_sync.sync_after_commit import check_sync_after_commit, sync_after_commit
from pyhudi.catalog_sync.sync_result import CatalogSyncResult, TableSyncResult
from pyhudi.config import Options
from pyhudi.errors import CatalogError, ConfigError, ServiceAfterCommitError, UnsupportedTableError
from pyhudi.timeline.instant import Action
from tests.metastore_server import FakeMetastore, fake_metastore
from tests.tables import SCHEMA, HandMadeTable, at

HIVE = "hoodie.datasource.hive_sync."
ROW = {"id": "1", "p": "a", "v": 1}
WIDER = pa.schema([*SCHEMA, pa.field("w", pa.float64())])


@pytest.fixture
def metastore() -> Iterator[tuple[str, FakeMetastore]]:
    with fake_metastore() as running:
        yield running


@pytest.fixture
def state(metastore: tuple[str, FakeMetastore]) -> FakeMetastore:
    return metastore[1]


@pytest.fixture
def table(tmp_path: Path) -> HandMadeTable:
    made = HandMadeTable(tmp_path / "t")
    made.write(1, {("a", "f1"): [ROW], ("b", "f2"): [ROW]})
    return made


@pytest.fixture
def sync(metastore: tuple[str, FakeMetastore], table: HandMadeTable) -> Any:
    def run(**more: str) -> CatalogSyncResult:
        metastore[1].writes.clear()
        named = {key.replace("__", "."): value for key, value in more.items()}
        options = {f"{HIVE}metastore.uris": metastore[0], **named}
        return HudiTable.for_path(str(table.root)).services.sync_catalog(options)

    return run


def partitions(state: FakeMetastore, name: str = "t") -> dict[str, str]:
    return {one: stored.sd.location for one, stored in state.partitions["default", name].items()}


def columns(state: FakeMetastore, name: str = "t") -> dict[str, str]:
    return {column.name: column.type for column in state.tables["default", name].sd.cols}


def test_a_new_table(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    assert sync() == CatalogSyncResult((TableSyncResult("default", "t", is_created=True, partitions_added=2),))
    stored, uri = state.tables["default", "t"], f"file://{table.root}"
    assert list(columns(state)) == [*(f"_hoodie_{name}" for name in META), "id", "v"]
    assert [(column.name, column.type) for column in stored.partitionKeys] == [("p", "string")]
    assert stored.tableType == "EXTERNAL_TABLE"
    assert stored.parameters["EXTERNAL"] == "TRUE"
    assert stored.parameters["last_commit_time_sync"] == at(1)
    assert stored.parameters["last_commit_completion_time_sync"] == at(1)
    assert stored.sd.location == stored.sd.serdeInfo.parameters["path"] == uri
    assert stored.sd.serdeInfo.parameters["hoodie.query.as.ro.table"] == "false"
    assert partitions(state) == {"p=a": f"{uri}/a", "p=b": f"{uri}/b"}
    assert state.writes == ["create_table", "add_partitions_req", "alter_table_with_environment_context"]


META = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")


def test_nothing_changes_without_a_commit(sync: Any, state: FakeMetastore) -> None:
    sync()
    assert not sync().is_changed
    assert state.writes == []
    assert not sync(hoodie__meta__sync__incremental="false").is_changed
    assert state.writes == []


def test_new_partitions_and_columns(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    sync()
    table.write(2, {("c", "f3"): [{**ROW, "w": 0.5}], ("a", "f1"): [ROW]}, schema=WIDER)
    assert sync().tables == (TableSyncResult("default", "t", is_altered=True, partitions_added=1),)
    assert columns(state)["w"] == "double"
    assert set(partitions(state)) == {"p=a", "p=b", "p=c"}
    assert all(len(one.sd.cols) == len(columns(state)) for one in state.partitions["default", "t"].values())
    assert state.tables["default", "t"].parameters["last_commit_time_sync"] == at(2)


def test_dropped_partitions(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    sync()
    table.write(2, {}, action=Action.REPLACE_COMMIT, operation="DELETE_PARTITION", replaced=[("a", "f1")])
    assert sync().tables == (TableSyncResult("default", "t", partitions_dropped=1),)
    assert list(partitions(state)) == ["p=b"]
    table.write(3, {("a", "f4"): [ROW]})
    table.write(4, {("b", "f5"): [ROW]}, action=Action.REPLACE_COMMIT, operation="CLUSTER", replaced=[("b", "f2")])
    assert sync().tables == (TableSyncResult("default", "t", partitions_added=1),)
    assert list(partitions(state)) == ["p=b", "p=a"]


def test_a_dropped_partition_is_not_in_a_first_sync(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    table.write(2, {}, action=Action.REPLACE_COMMIT, operation="DELETE_PARTITION", replaced=[("a", "f1")])
    sync()
    assert list(partitions(state)) == ["p=b"]


def test_a_slow_commit_is_not_missed(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    table.write(3, {("c", "f3"): [ROW]})
    sync()
    table.write(2, {("d", "f4"): [ROW]}, done=4)
    assert sync().tables[0].partitions_added == 1
    assert set(partitions(state)) == {"p=a", "p=b", "p=c", "p=d"}


def test_a_commit_that_is_gone(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    table.write(2, {("c", "f3"): [ROW]})
    sync()
    for file in (table.root / ".hoodie" / "timeline").glob(f"{at(2)}*"):
        file.unlink()
    assert sync().tables == (TableSyncResult("default", "t", partitions_dropped=1),)
    assert set(partitions(state)) == {"p=a", "p=b"}


def test_a_slow_commit_that_is_gone(sync: Any, table: HandMadeTable) -> None:
    """The last instant is still there, but not the one that completed last."""
    table.write(3, {("c", "f3"): [ROW]})
    table.write(2, {("d", "f4"): [ROW]}, done=4)
    sync()
    for file in (table.root / ".hoodie" / "timeline").glob(f"{at(2)}*"):
        file.unlink()
    assert sync().tables == (TableSyncResult("default", "t", partitions_dropped=1),)


def test_partitions_that_were_changed_by_others(sync: Any, state: FakeMetastore) -> None:
    sync()
    stored = state.partitions["default", "t"]
    stored["p=a"].sd.location = "file:/elsewhere"
    del stored["p=b"]
    repaired = sync(hoodie__meta__sync__incremental="false").tables
    assert repaired == (TableSyncResult("default", "t", partitions_added=1, partitions_moved=1),)
    assert partitions(state)["p=a"].endswith("/t/a")


def test_partitions_in_batches(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    table.write(2, {(f"c{i}", f"g{i}"): [ROW] for i in range(5)})
    sync(hoodie__datasource__hive_sync__batch_num="3")
    assert state.writes.count("add_partitions_req") == 3
    assert len(partitions(state)) == 7


def test_touched_partitions(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    sync()
    table.write(2, {("a", "f1"): [ROW]})
    sync(hoodie__meta__sync__touch__partitions__enabled="true")
    touched = {
        name: "transient_lastDdlTime" in one.parameters for name, one in state.partitions["default", "t"].items()
    }
    assert touched == {"p=a": True, "p=b": False}


def test_a_conditional_sync(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    sync()
    table.write(2, {("a", "f1"): [ROW]})
    sync(hoodie__datasource__meta_sync__condition__sync="true")
    assert state.writes == []
    sync()
    assert state.tables["default", "t"].parameters["last_commit_time_sync"] == at(2)


def test_layouts_of_an_entry(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    sync(
        hoodie__datasource__hive_sync__table="plain",
        hoodie__datasource__hive_sync__database="Shop",
        hoodie__datasource__hive_sync__sync_as_datasource="false",
        hoodie__datasource__hive_sync__omit_metadata_fields="true",
        hoodie__datasource__hive_sync__create_managed_table="true",
        hoodie__datasource__hive_sync__table_properties="owner=me",
        hoodie__datasource__hive_sync__serde_properties="x=1",
        hoodie__meta__sync__no_partition_metadata="true",
    )
    assert state.databases["Shop"].description == "automatically created by hoodie"
    stored = state.tables["shop", "plain"]
    assert [column.name for column in stored.sd.cols] == ["id", "v"]
    assert stored.tableType == "MANAGED_TABLE"
    assert set(stored.parameters) == {
        "owner",
        "last_commit_time_sync",
        "last_commit_completion_time_sync",
        "transient_lastDdlTime",
    }
    assert stored.sd.serdeInfo.parameters == {"serialization.format": "1", "x": "1", "path": f"file://{table.root}"}
    assert state.partitions["shop", "plain"] == {}


def test_a_merge_on_read_table(metastore: tuple[str, FakeMetastore], tmp_path: Path) -> None:
    made = HandMadeTable(tmp_path / "m", properties={"hoodie.table.type": "MERGE_ON_READ"})
    made.write(1, {("a", "f1"): [ROW]}, action=Action.DELTA_COMMIT)
    result = HudiTable.for_path(str(made.root)).services.sync_catalog({f"{HIVE}metastore.uris": metastore[0]})
    assert [one.table for one in result.tables] == ["t_ro", "t_rt", "t"]
    formats = {name: stored.sd.inputFormat.rpartition(".")[2] for (_, name), stored in metastore[1].tables.items()}
    assert formats == {
        "t_ro": "HoodieParquetInputFormat",
        "t_rt": "HoodieParquetRealtimeInputFormat",
        "t": "HoodieParquetRealtimeInputFormat",
    }
    read_optimized = {
        name: stored.sd.serdeInfo.parameters["hoodie.query.as.ro.table"]
        for (_, name), stored in metastore[1].tables.items()
    }
    assert read_optimized == {"t_ro": "true", "t_rt": "false", "t": "false"}


def test_comments(metastore: tuple[str, FakeMetastore], tmp_path: Path) -> None:
    commented = pa.schema([SCHEMA.field("id").with_metadata({"comment": "the key"}), *list(SCHEMA)[1:]])
    made = HandMadeTable(tmp_path / "c", schema=commented)
    made.write(1, {("a", "f1"): [ROW]})
    services, options = HudiTable.for_path(str(made.root)).services, {f"{HIVE}metastore.uris": metastore[0]}
    services.sync_catalog(options)
    stored = metastore[1].tables["default", "t"]
    assert {column.comment for column in stored.sd.cols} == {""}
    stored.sd.cols[-1].comment = "by hand"
    again = {**options, "hoodie.meta.sync.incremental": "false"}
    assert not services.sync_catalog(again).is_changed
    assert services.sync_catalog({**again, f"{HIVE}sync_comment": "true"}).is_changed
    comments = {column.name: column.comment for column in metastore[1].tables["default", "t"].sd.cols}
    assert (comments["id"], comments["v"]) == ("the key", "")


def test_a_table_of_version_6(metastore: tuple[str, FakeMetastore], tmp_path: Path) -> None:
    made = HandMadeTable(tmp_path / "six", version=6)
    made.write(1, {("a", "f1"): [ROW]})
    services, options = HudiTable.for_path(str(made.root)).services, {f"{HIVE}metastore.uris": metastore[0]}
    services.sync_catalog(options)
    parameters = metastore[1].tables["default", "t"].parameters
    assert (parameters["last_commit_time_sync"], "last_commit_completion_time_sync" in parameters) == (at(1), False)
    metastore[1].writes.clear()
    assert not services.sync_catalog(options).is_changed
    assert metastore[1].writes == []
    made.write(2, {("b", "f2"): [ROW]})
    assert services.sync_catalog(options).tables[0].partitions_added == 1


@pytest.mark.parametrize("slow", [2, 4])
def test_a_slow_commit_of_version_6_is_not_missed(
    metastore: tuple[str, FakeMetastore], tmp_path: Path, slow: int
) -> None:
    """Its instant precedes one that was synced, or all of them, and the timeline has no completion times."""
    made = HandMadeTable(tmp_path / "six", version=6)
    services, options = HudiTable.for_path(str(made.root)).services, {f"{HIVE}metastore.uris": metastore[0]}
    if slow == 4:
        made.write(3, {("a", "f1"): [ROW]})
        services.sync_catalog(options)
    made.write(slow, {("b", "f2"): [ROW]}, pending=True)
    made.write(5, {("c", "f3"): [ROW]})
    assert services.sync_catalog(options).is_changed
    metastore[1].writes.clear()
    assert not services.sync_catalog(options).is_changed
    assert metastore[1].writes == []
    for file in (made.root / ".hoodie").glob(f"{at(slow)}.*"):
        file.unlink()
    HandMadeTable(made.root, version=6).write(slow, {("b", "f2"): [ROW]})
    assert services.sync_catalog(options).tables[0].partitions_added == 1
    assert metastore[1].tables["default", "t"].parameters["last_commit_time_sync"] == at(5)
    assert not services.sync_catalog(options).is_changed


def test_a_table_that_was_moved(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    sync()
    state.tables["default", "t"].sd.location = "file:/tmp/before"
    assert sync().tables == (TableSyncResult("default", "t", is_created=True, partitions_added=2),)
    assert state.tables["default", "t"].sd.location == f"file://{table.root}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tableType": "VIRTUAL_VIEW"}, "is a view, which is not replaced"),
        ({"parameters": {"spark.sql.sources.provider": "parquet"}}, r"is a table of another format \(parquet\)"),
        ({"partitionKeys": []}, r"has the partition columns \(none\), which cannot be changed to p string"),
    ],
)
def test_what_is_not_changed(sync: Any, state: FakeMetastore, change: dict[str, Any], message: str) -> None:
    sync()
    stored = state.tables["default", "t"]
    stored.sd.inputFormat = (
        "org.apache.hadoop.mapred.TextInputFormat" if "parameters" in change else "org.apache.hudi.x"
    )
    for name, value in change.items():
        setattr(stored, name, value)
    with pytest.raises(CatalogError, match=message):
        sync(hoodie__meta__sync__incremental="false")
    assert state.writes == []


def test_a_table_that_cannot_be_changed_is_created_again(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    sync()
    state.fail["alter_table_with_environment_context"] = ttypes.InvalidOperationException("incompatible types")
    table.write(2, {("a", "f1"): [{**ROW, "w": 0.5}]}, schema=WIDER)
    message = r"default\.t cannot be changed: .* refused a request .*incompatible types.*recreate_table_on_error=true"
    with pytest.raises(CatalogError, match=message):
        sync()
    with pytest.raises(CatalogError, match="incompatible types"):  # the last commit cannot be recorded
        sync(hoodie__datasource__hive_sync__recreate_table_on_error="true")
    state.fail.clear()
    assert columns(state)["w"] == "double"
    assert sync().tables[0].is_altered is False


def test_databases_that_are_not_created(sync: Any, state: FakeMetastore) -> None:
    with pytest.raises(CatalogError, match="has no database 'shop'; create it, or set"):
        sync(
            hoodie__datasource__hive_sync__database="shop", hoodie__datasource__hive_sync__auto_create_database="false"
        )
    assert state.writes == []


def test_a_table_without_commits(metastore: tuple[str, FakeMetastore], tmp_path: Path) -> None:
    empty = HudiTable.create(str(tmp_path / "e"), {"hoodie.table.name": "e"})
    with pytest.raises(UnsupportedTableError, match="no commit yet"):
        empty.services.sync_catalog({f"{HIVE}metastore.uris": metastore[0]})


def test_a_metastore_that_does_not_answer(table: HandMadeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    services = HudiTable.for_path(str(table.root)).services
    with pytest.raises(CatalogError, match=r"the Hive metastore at 127\.0\.0\.1:1 does not answer"):
        services.sync_catalog({f"{HIVE}metastore.uris": "thrift://127.0.0.1:1"})
    monkeypatch.delenv("HIVE_CONF_DIR", raising=False)
    with pytest.raises(ConfigError, match="the Hive metastore is not known: set"):
        services.sync_catalog()
    server = "jdbc:hive2://localhost:10000"
    with pytest.raises(ConfigError, match=rf"jdbcurl={server}: HiveServer2 is not asked, and .*metastore\.uris=thrift"):
        services.sync_catalog({f"{HIVE}jdbcurl": f"{server};user=me;password=secret"})


def test_the_second_server_answers(metastore: tuple[str, FakeMetastore], table: HandMadeTable) -> None:
    uris = f"thrift://127.0.0.1:1,{metastore[0]}"
    assert HudiTable.for_path(str(table.root)).services.sync_catalog({f"{HIVE}metastore.uris": uris}).is_changed


def test_errors_after_a_commit(table: HandMadeTable) -> None:
    options = {f"{HIVE}enable": "true", f"{HIVE}metastore.uris": "thrift://127.0.0.1:1"}
    check_sync_after_commit(Options.parse(options))
    with pytest.raises(
        ServiceAfterCommitError, match=r"is committed, do not run it again; the sync .* failed: the Hive"
    ):
        sync_after_commit(table.storage, Options.parse(options))
    ignored = Options.parse({**options, f"{HIVE}ignore_exceptions": "true"})
    assert "does not answer" in str(sync_after_commit(table.storage, ignored))
    with pytest.raises(ConfigError, match="mode=jdbc"):
        check_sync_after_commit(Options.parse({**options, f"{HIVE}mode": "jdbc"}))
    check_sync_after_commit(Options.parse({f"{HIVE}mode": "jdbc"}))


def test_timestamps_stay_as_they_are(metastore: tuple[str, FakeMetastore], tmp_path: Path) -> None:
    timed = pa.schema([*SCHEMA, pa.field("at", pa.timestamp("us", "UTC"))])
    made = HandMadeTable(tmp_path / "t", schema=timed)
    made.write(1, {("a", "f1"): [ROW]})
    services = HudiTable.for_path(str(made.root)).services
    options = {f"{HIVE}metastore.uris": metastore[0], "hoodie.meta.sync.incremental": "false"}
    services.sync_catalog(options)
    assert columns(metastore[1])["at"] == "bigint"
    for wanted, kind in ((None, "bigint"), ("true", "timestamp"), (None, "timestamp"), ("false", "bigint")):
        services.sync_catalog(options if wanted is None else {**options, f"{HIVE}support_timestamp": wanted})
        assert columns(metastore[1])["at"] == kind


def test_a_sync_beside_an_older_one(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    sync()
    table.write(2, {("c", "f3"): [{**ROW, "w": 0.5}]}, schema=WIDER)
    others = state.tables["default", "t"].parameters

    def older(request: ttypes.AddPartitionsRequest) -> ttypes.AddPartitionsResult:
        """Answer a request as if a sync of an older state had ended just after it: it drops what it does not know."""
        state.meanwhile.clear()
        answer = state.add_partitions_req(request)
        state.partitions["default", "t"].pop("p=c")
        parameters = state.tables["default", "t"].parameters
        parameters["last_commit_completion_time_sync"] = parameters["last_commit_time_sync"] = at(0)
        return answer

    state.meanwhile["add_partitions_req"] = older
    assert sync().tables == (TableSyncResult("default", "t", is_altered=True, partitions_added=2),)
    assert set(partitions(state)) == {"p=a", "p=b", "p=c"}
    assert columns(state)["w"] == "double"
    assert others is not state.tables["default", "t"].parameters
    assert state.tables["default", "t"].parameters["last_commit_time_sync"] == at(2)
    assert not sync().is_changed


def test_a_sync_beside_a_newer_one(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    sync()
    table.write(2, {("c", "f3"): [ROW]})

    def newer(request: ttypes.AddPartitionsRequest) -> ttypes.AddPartitionsResult:
        state.meanwhile.clear()
        answer = state.add_partitions_req(request)
        table.write(3, {("d", "f4"): [{**ROW, "w": 0.5}]}, schema=WIDER)
        sync()
        assert columns(state)["w"] == "double"
        return answer

    state.meanwhile["add_partitions_req"] = newer
    assert sync().is_changed
    assert columns(state)["w"] == "double"
    assert set(partitions(state)) == {"p=a", "p=b", "p=c", "p=d"}
    assert state.tables["default", "t"].parameters["last_commit_time_sync"] == at(3)


def test_syncs_that_never_stop(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    sync()
    table.write(2, {("c", "f3"): [ROW]})
    times = iter(range(10, 20))

    def beside(database: str, name: str, names: list[str]) -> list[ttypes.Partition]:
        state.tables["default", "t"].parameters["last_commit_time_sync"] = at(next(times))
        return [found for one, found in state.partitions[database, name].items() if one in names]

    state.meanwhile["get_partitions_by_names"] = beside
    assert sync().tables == (TableSyncResult("default", "t", partitions_added=1),)
    assert state.tables["default", "t"].parameters["last_commit_time_sync"] == at(2)
    assert next(times) == 13


def test_an_entry_is_not_dropped_for_one_that_is_refused(sync: Any, state: FakeMetastore) -> None:
    sync()
    state.tables["default", "t"].sd.location = "file:/tmp/before"
    state.fail["create_table"] = ttypes.MetaException("no access to the location")
    with pytest.raises(CatalogError, match="no access to the location"):
        sync()
    assert list(state.tables) == [("default", "t")]
    state.fail.clear()
    assert sync().tables[0].is_created
    assert list(state.tables) == [("default", "t")]


def moved(state: FakeMetastore, _: HandMadeTable) -> None:
    state.tables["default", "t"].sd.location = "file:/tmp/before"


def changed(_: FakeMetastore, table: HandMadeTable) -> None:
    table.write(2, {("c", "f3"): [{**ROW, "w": 0.5}], ("a", "f1"): [ROW]}, schema=WIDER)
    table.write(3, {}, action=Action.REPLACE_COMMIT, operation="DELETE_PARTITION", replaced=[("b", "f2")])


def emptied(state: FakeMetastore, _: HandMadeTable) -> None:
    state.tables.clear()
    state.partitions.clear()


@pytest.mark.parametrize("change", [emptied, moved, changed])
def test_a_sync_that_dies_is_finished_by_the_next(sync: Any, state: FakeMetastore, table: HandMadeTable, change: Any):
    """Wherever it dies, and nothing else is left of it."""
    sync()
    change(state, table)
    before = copy.deepcopy((state.tables, state.partitions))
    sync()
    after, count = entries(state), len(state.writes)
    assert count > 2
    for number in range(count):
        state.tables, state.partitions = copy.deepcopy(before)
        state.writes_left = number
        with pytest.raises(CatalogError, match="does not answer"):
            sync()
        state.writes_left = None
        sync()
        assert entries(state) == after, number
        assert not sync().is_changed


def entries(state: FakeMetastore) -> dict[str, Any]:
    """What the metastore has, but for times."""
    times = ("transient_lastDdlTime", "createTime")
    return {
        name: (
            stored.sd,
            stored.partitionKeys,
            {key: value for key, value in stored.parameters.items() if key not in times},
            {one: partition.sd for one, partition in sorted(state.partitions[database, name].items())},
        )
        for (database, name), stored in state.tables.items()
    }


def test_an_entry_is_not_dropped_by_a_broken_connection(sync: Any, state: FakeMetastore, table: HandMadeTable) -> None:
    sync()
    table.write(2, {("a", "f1"): [{**ROW, "w": 0.5}]}, schema=WIDER)
    state.fail["alter_table_with_environment_context"] = TTransportException(message="gone")
    with pytest.raises(CatalogError, match="does not answer"):
        sync(hoodie__datasource__hive_sync__recreate_table_on_error="true")
    assert state.writes == []
    assert set(partitions(state)) == {"p=a", "p=b"}


def test_values_of_url_encoded_paths(metastore: tuple[str, FakeMetastore], tmp_path: Path) -> None:
    encoded = {
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    made = HandMadeTable(tmp_path / "t", properties=encoded)
    made.write(1, {("p=a%2Fb", "f1"): [ROW], ("p=c%25", "f2"): [ROW], ("p=Oslo", "f3"): [ROW]})
    services = HudiTable.for_path(str(made.root)).services
    options = {f"{HIVE}metastore.uris": metastore[0]}

    def stored() -> dict[tuple[str, ...], str]:
        partitions = metastore[1].partitions["default", "t"].values()
        return {tuple(one.values): one.sd.location.rpartition("/")[2] for one in partitions}

    services.sync_catalog(options | {"hoodie.meta.sync.decode_partition": "false"})  # as Apache Hudi
    assert stored() == {("a%2Fb",): "p=a%2Fb", ("c%25",): "p=c%25", ("Oslo",): "p=Oslo"}
    made.write(2, {("p=a%2Fb", "f1"): [ROW]})
    services.sync_catalog(options)
    assert stored() == {("a/b",): "p=a%2Fb", ("c%25",): "p=c%25", ("Oslo",): "p=Oslo"}
    services.sync_catalog(options | {"hoodie.meta.sync.incremental": "false"})
    assert stored() == {("a/b",): "p=a%2Fb", ("c%",): "p=c%25", ("Oslo",): "p=Oslo"}
    made.write(3, {}, action=Action.REPLACE_COMMIT, operation="DELETE_PARTITION", replaced=[("p=a%2Fb", "f1")])
    services.sync_catalog(options)
    assert stored() == {("c%",): "p=c%25", ("Oslo",): "p=Oslo"}


def test_an_encoded_value_that_is_the_value_of_another_partition(
    metastore: tuple[str, FakeMetastore], tmp_path: Path
) -> None:
    encoded = {
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    made = HandMadeTable(tmp_path / "t", properties=encoded)
    made.write(1, {("p=a%2Fb", "f1"): [ROW], ("p=a%252Fb", "f2"): [ROW]})
    services = HudiTable.for_path(str(made.root)).services
    options = {f"{HIVE}metastore.uris": metastore[0]}
    services.sync_catalog(options)
    made.write(2, {("p=a%2Fb", "f1"): [ROW]})
    services.sync_catalog(options)
    stored = metastore[1].partitions["default", "t"].values()
    assert {tuple(one.values) for one in stored} == {("a/b",), ("a%2Fb",)}
