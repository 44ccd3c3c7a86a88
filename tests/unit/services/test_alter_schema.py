"""Changes of a table's columns in one commit: what is left on disk, refusals, other writers, deaths."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import (
    ConfigError,
    ConflictError,
    SchemaMismatchError,
    StorageError,
    TransactionError,
    UnsupportedTableError,
)
from pyhudi.metadata.indexes.index_declarations import declare_partitions
from pyhudi.metadata.indexes.secondary_index_definition import secondary_definition
from pyhudi.schema.evolution import schema_changes
from pyhudi.schema.evolution.internal_schema import InternalSchema
from pyhudi.schema.meta_fields import META_COLUMNS
from pyhudi.services.alter_schema import alter_schema
from pyhudi.storage import Storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.instant import Action
from pyhudi.transaction.commit_conditions import CommitConditions
from pyhudi.transaction.transaction import Transaction
from tests.fault_injection import WRITES, Fault, FaultyStorage, Killed
from tests.tables import HandMadeTable, at
from tests.unit.services.merge_on_read_table import FAST
from tests.unit.transaction.test_writer_death import opened

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int32()), ("s", pa.struct([("a", pa.int32())])), ("p", pa.string())])
ROWS = [{"id": "1", "v": 1, "s": {"a": 10}, "p": "a"}, {"id": "2", "v": 2, "s": None, "p": "a"}]
SEVERAL = {
    **FAST,
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}


def make(root: Path, version: int = 9, **properties: str) -> HudiTable:
    made = HandMadeTable(root, version=version, schema=SCHEMA, properties=properties)
    made.write(10, {("a", "f1"): ROWS})
    return HudiTable.for_path(str(root), FAST)


def rename(schema: InternalSchema) -> InternalSchema:
    return schema_changes.rename_column(schema, "v", "w")


def rows(table: HudiTable, *columns: str) -> list[dict[str, Any]]:
    return table.scan(columns=columns).to_arrow().to_pylist()


@pytest.mark.parametrize("version", [6, 8, 9])
def test_what_is_left_on_disk(tmp_path: Path, version: int) -> None:
    table = make(tmp_path / "t", version)
    first = table.schema
    changes = table.alter_schema().rename_column("v", "w").add_column("x", "bigint", "new", after="id")
    changes.rename_column("s.a", "b").add_column("s.c", pa.int32(), first=True)
    preview = changes.preview()
    done = changes.commit()
    assert table.schema.names == preview.names == [*first.names[:6], "x", "w", "s", "p"]
    assert done.instant == table.latest_instant
    assert rows(table, "id", "x", "w", "s") == [
        {"id": "1", "x": None, "w": 1, "s": {"c": None, "b": 10}},
        {"id": "2", "x": None, "w": 2, "s": None},
    ]
    assert rows(HudiTable.for_path(table.path), "id") == [{"id": "1"}, {"id": "2"}]
    assert table.scan(as_of=table.history()["requested"].to_pylist()[-1]).to_arrow()["v"].to_pylist() == [1, 2]
    (last,) = [one for one in table.history().to_pylist() if one["requested"] == done.instant]
    assert (last["action"], last["operation"]) == (Action.COMMIT, "ALTER_SCHEMA")
    folder = tmp_path / "t/.hoodie/.schema"
    (file,) = folder.glob("*.schemacommit")
    pending = {f"{done.instant}.schemacommit.{state}" for state in ("requested", "inflight")}
    assert {path.name for path in folder.iterdir()} == {file.name, *pending}
    assert file.name.startswith(f"{done.instant}_" if version >= 8 else f"{done.instant}.")
    assert [one["version_id"] for one in json.loads(file.read_text())["schemas"]] == [int(done.instant or 0), 0]
    assert table.alter_schema().commit().instant is None  # nothing to be changed


def test_meta_columns_stay_in_front(tmp_path: Path) -> None:
    """Apache Hudi finds the file name at the fifth place: its inserts wrote it into a column that was in front."""
    table = make(tmp_path / "t")
    with table.alter_schema() as columns:
        columns.add_column("x", "string", first=True).move_column("s", first=True).move_column("v", before="s")
    (file,) = (tmp_path / "t/.hoodie/.schema").glob("*.schemacommit")
    newest, _ = json.loads(file.read_text())["schemas"]
    assert [field["name"] for field in newest["fields"]] == [*META_COLUMNS, "v", "s", "x", "id", "p"]
    with pytest.raises(SchemaMismatchError, match="has no such column"):
        table.alter_schema().add_column("y", "string", before="_hoodie_file_name").commit()


def test_the_next_changes_go_on(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    with table.alter_schema() as columns:
        columns.drop_column("v")
    with table.alter_schema() as columns:
        columns.add_column("v", "string").change_type("s.a", pa.int64())
    with pytest.raises(SchemaMismatchError), table.alter_schema() as columns:
        columns.drop_column("v").drop_column("v")
    assert rows(table, "v", "s") == [{"v": None, "s": {"a": 10}}, {"v": None, "s": None}]
    assert table.schema.field("v").type == pa.string()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda c: c.drop_column("id"), "record key fields"),
        (lambda c: c.rename_column("p", "q"), "partition path fields"),
        (lambda c: c.change_type("p", "string").drop_column("p"), "partition path fields"),
        (lambda c: c.change_type("v", "string"), "ordering fields"),
        (lambda c: c.rename_column("gone", "x"), "column 'gone' does not exist"),
        (lambda c: c.drop_column("_hoodie_record_key"), "meta column"),
        (lambda c: c.add_column("a b", "int"), "invalid column name 'a b': names start with a letter"),
        (lambda c: c.add_column("_pyhudi_row", "int"), "'_pyhudi_row' is reserved"),
    ],
)
def test_refusals(tmp_path: Path, change: Any, text: str) -> None:
    table = make(tmp_path / "t", **{"hoodie.table.ordering.fields": "v"})
    before = sorted(map(str, (tmp_path / "t").rglob("*")))
    with pytest.raises(SchemaMismatchError, match=text):
        change(table.alter_schema()).commit()
    assert sorted(map(str, (tmp_path / "t").rglob("*"))) == before
    with pytest.raises(ConfigError, match="one position"):
        table.alter_schema().add_column("x", "int", first=True, after="id")
    with pytest.raises(ConfigError, match="requires a position"):
        table.alter_schema().move_column("v")
    table.alter_schema().change_type("v", "bigint").commit()  # what an ordering column may become


def test_tables_without_columns_and_pending_clusterings(tmp_path: Path) -> None:
    empty = HudiTable.create(str(tmp_path / "e"), {"hoodie.table.name": "e"})
    with pytest.raises(UnsupportedTableError, match="no columns yet"):
        empty.alter_schema().add_column("x", "int").commit()
    made = HandMadeTable(tmp_path / "t", schema=SCHEMA)
    made.write(10, {("a", "f1"): ROWS})
    made.active.create_requested(Action.CLUSTERING, "20260101000000020")
    with pytest.raises(TransactionError, match="clustering requested is pending"):
        HudiTable.for_path(str(made.root), FAST).alter_schema().drop_column("v").commit()


def test_writes_that_were_begun_later_stand_against_it(tmp_path: Path) -> None:
    """Their files have instants after it, and the columns from before it."""
    table = make(tmp_path / "t")
    opts = Options.parse(SEVERAL)
    begun: list[Transaction] = []
    client = TableMetaClient.open(table.path, opts)
    to_inflight = Transaction.to_inflight

    def beside(self: Transaction, metadata: Any = None) -> None:
        to_inflight(self, metadata)
        if self.operation == "ALTER_SCHEMA" and not begun:
            begun.append(Transaction.begin(client, Action.COMMIT, "UPSERT", opts))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Transaction, "to_inflight", beside)
        done = alter_schema(client, opts, rename)
    assert begun[0].instant < (done.instant or "")  # tried again, after the other
    begun[0].abort()


def test_a_write_planned_before_it_is_a_conflict(tmp_path: Path) -> None:
    from pyhudi.timeline.commit_metadata import CommitMetadata
    from pyhudi.timeline.latest_schema import newest_columns

    table = make(tmp_path / "t")
    table.alter_schema().add_column("x", "int").commit()
    opts = Options.parse(SEVERAL)
    client = TableMetaClient.open(table.path, opts)
    found = newest_columns(client.active_timeline())
    assert found is not None
    text = found[1].schema_json
    tx = Transaction.begin(client, Action.COMMIT, "UPSERT", opts)
    tx.to_inflight()
    alter_schema(TableMetaClient.open(table.path, opts), opts, rename)
    outcome = tx.commit(
        CommitMetadata("UPSERT", extra={"schema": text or ""}), conditions=CommitConditions(text, agree_on_columns=True)
    )
    with pytest.raises(ConflictError, match="has changed the columns of the table"):
        raise outcome.error()  # type: ignore[union-attr]


def test_deaths(tmp_path: Path) -> None:
    """Whoever dies leaves the columns as they were or as they are to be, and the next one goes on."""
    table = make(tmp_path / "t")
    table.alter_schema().add_column("x", "int").commit()

    def act(storage: Storage) -> None:
        alter_schema(TableMetaClient.open(storage, FAST), Options.parse(FAST), rename)

    shutil.copytree(tmp_path / "t", tmp_path / "probe")
    probe = FaultyStorage(opened(tmp_path / "probe"))
    act(probe)
    writes = [one for one in probe.operations if one[0] in WRITES]
    assert any(path.startswith(".hoodie/.schema/") for _, path in writes)
    seen = set()
    steps = [
        nth for nth, (_, path) in enumerate(writes, 1) if path.startswith((".hoodie/.schema/", ".hoodie/timeline/"))
    ]
    assert len(steps) > 5
    for nth in steps:
        copy = Path(shutil.copytree(tmp_path / "t", tmp_path / f"dead{nth}"))
        with suppress(Killed):  # once it is published, nothing is raised
            act(FaultyStorage(opened(copy), [Fault("writes", nth, "after", Killed)]))
        dead = HudiTable.for_path(str(copy), FAST)
        name = "w" if "w" in dead.schema.names else "v"
        seen.add(name)
        assert rows(dead, name) == [{name: 1}, {name: 2}]
        if name == "v":
            dead.alter_schema().rename_column("v", "w").commit()
        dead.alter_schema().drop_column("x").commit()
        assert rows(dead, "w") == [{"w": 1}, {"w": 2}]
        files = [path.name for path in (copy / ".hoodie/.schema").glob("*.schemacommit")]
        assert {file[:17] for file in files} <= {one["requested"] for one in dead.history().to_pylist()}
        shutil.rmtree(copy)
    assert seen == {"v", "w"}


MARKED = "hoodie.record.merge.property.hoodie.payload.delete."
PAYLOADS = "org.apache.hudi.common.model."


@pytest.mark.parametrize(
    ("version", "properties"),
    [
        (9, {f"{MARKED}field": "v", f"{MARKED}marker": "D"}),
        (6, {"hoodie.compaction.payload.class": PAYLOADS + "debezium.PostgresDebeziumAvroPayload"}),
    ],
)
def test_columns_by_which_records_merge_stay(tmp_path: Path, version: int, properties: dict[str, str]) -> None:
    """Also those that a payload class implies: without them deleted records and older versions would come back."""
    name = "v" if version == 9 else "_event_lsn"
    schema = pa.schema([("id", pa.string()), (name, pa.string()), ("p", pa.string())])
    made = HandMadeTable(tmp_path / "t", version, schema=schema, properties=properties)
    made.write(10, {("a", "f1"): [{"id": "1", name: "1", "p": "a"}]})
    table = HudiTable.for_path(str(tmp_path / "t"), FAST)
    for change in (table.alter_schema().rename_column(name, "w"), table.alter_schema().drop_column(name)):
        with pytest.raises(SchemaMismatchError, match="ordering fields" if version == 6 else "delete marker fields"):
            change.commit()


def declared_indexes(root: Path, column: str) -> set[str]:
    """Declare a record index and a secondary index of a column, as if they had been built. Return the partitions."""
    client = TableMetaClient.open(str(root))
    definitions = {"secondary_index_by": secondary_definition("secondary_index_by", column, 9)}
    declare_partitions(client.storage, client.config, ["record_index", *definitions], definitions)
    return partitions(root)


def partitions(root: Path) -> set[str]:
    """Return the partitions of a table's metadata table."""
    return set(TableMetaClient.open(str(root)).config.metadata_partitions)


def test_indexes_stay(tmp_path: Path) -> None:
    """A change of the schema writes no file, so that no index has anything to learn from it."""
    table = make(tmp_path / "t")
    table.alter_schema().add_column("w", "int").commit()
    before = declared_indexes(tmp_path / "t", "v")
    assert {"files", "record_index", "secondary_index_by"} <= before
    table.alter_schema().set_comment("p", "a comment").commit()
    assert partitions(tmp_path / "t") == before


def test_a_compaction_that_was_planned_before_it_leaves_indexes(tmp_path: Path) -> None:
    """It records the columns as of its plan, without the indexed one."""
    made = HandMadeTable(tmp_path / "t", schema=SCHEMA, properties={"hoodie.table.type": "MERGE_ON_READ"})
    made.write(10, {("a", "f1"): ROWS}, action=Action.DELTA_COMMIT)
    made.log(20, {("a", "f1"): ROWS[:1]}, base=10)
    table = HudiTable.for_path(str(tmp_path / "t"), FAST)
    assert len(table.services.schedule_compaction()) == 1
    table.alter_schema().add_column("w", "string").commit()
    before = declared_indexes(tmp_path / "t", "w")
    assert table.services.run_compaction().num_files == 1
    assert partitions(tmp_path / "t") == before


@pytest.mark.parametrize("how", ["rolled back", "restored", "restored by another writer"])
def test_an_undone_change_does_not_come_back_when_archival_passes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Its history file would count as that of an archived write, and clustering would write renamed columns as null."""
    no_index = {**FAST, "hoodie.metadata.enable": "false"}
    made = HandMadeTable(tmp_path / "t", schema=SCHEMA)
    made.write(10, {("a", "f1"): ROWS})
    table = HudiTable.for_path(str(tmp_path / "t"), no_index)
    folder = tmp_path / "t/.hoodie/.schema"
    change = table.alter_schema().rename_column("v", "w")
    if how == "rolled back":
        with monkeypatch.context() as patched:
            patched.setattr("pyhudi.transaction.transaction.complete_instant", _fail)
            with pytest.raises(StorageError, match="no space"):
                change.commit()
    else:
        change.commit()
        shutil.copytree(folder, tmp_path / "left")
        table.services.restore(at(10))
    assert list(folder.iterdir()) == []
    if how == "restored by another writer":
        shutil.copytree(tmp_path / "left", folder, dirs_exist_ok=True)
    made.active = made.active.reload()
    with monkeypatch.context() as patched:
        patched.setattr("tests.tables.at", lambda n: at(n).replace("2026", "2099", 1))
        made.write(1, {("a", "f2"): [{"id": "3", "v": 3, "p": "a"}]})
    made.archive(10)
    table = HudiTable.for_path(str(tmp_path / "t"), no_index)
    table.services.cluster()
    assert sorted(table.scan(columns=["v"]).to_arrow()["v"].to_pylist()) == [1, 2, 3]


def _fail(*_: object, **__: object) -> None:
    raise StorageError("no space")


@pytest.mark.parametrize("kind", ["string", "int", pa.struct([("a", pa.int32())])], ids=str)
def test_a_column_that_takes_the_name_of_a_dropped_one_has_its_own_statistics(tmp_path: Path, kind: Any) -> None:
    table = HudiTable.for_path(make(tmp_path / "t").path, {"hoodie.time.generator.max_expected_clock_skew_ms": "0"})
    table.alter_schema().drop_column("v").add_column("v", kind).commit()
    assert "column_stats" in table.config.metadata_partitions
    is_null = table.scan(columns=["id"], filter=pc.field("v").is_null())
    assert sorted(row["id"] for row in is_null.to_arrow().to_pylist()) == ["1", "2"]
    assert table.scan(columns=["id"], filter=pc.field("v").is_valid()).to_arrow().num_rows == 0
