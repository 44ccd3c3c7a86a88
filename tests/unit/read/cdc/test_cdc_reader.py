"""Images of records in change data queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import QueryError
from pyhudi.read.cdc.cdc_plan import CdcPlan, plan_cdc
from pyhudi.read.cdc.cdc_reader import CdcReader
from pyhudi.read.query.query import InstantRange, Query
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_group_keys import FileGroupId
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.fencing.write_fence import WriteFence
from pyhudi.timeline.instant import Action
from pyhudi.write.handles.cdc_log_writer import CdcLogWriter
from pyhudi.write.settings import write_settings
from pyhudi.write.settings.write_context import FileColumns, TaskId, WriteContext
from tests.tables import HandMadeTable, at
from tests.unit.services.merge_on_read_table import FAST

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int32()), ("p", pa.string())])
CHANGES = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
    "hoodie.datasource.read.begin.instanttime": at(10),
}


def rows(v: int) -> list[dict[str, object]]:
    return [{"id": "1", "v": v, "p": "a"}]


def changed(root: Path, mode: str, schema: pa.Schema = SCHEMA, **more: str) -> None:
    """A table whose second commit, at 20, updates its only record, with a change log."""
    properties = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": mode, **more}
    table = HandMadeTable(root, schema=schema, properties=properties)
    table.write(10, {("a", "f1"): rows(1)})
    client = TableMetaClient.open(str(root))
    table.active.create_requested(Action.COMMIT, at(20))
    inflight = table.active.to_inflight(table.active.timeline.find(at(20), Action.COMMIT))
    WriteFence(client.storage, at(20)).open()
    settings = write_settings.cdc_settings(client.config, Options.parse({}), to_avro(add_meta_columns(schema), "t"))
    context = WriteContext(client.storage, at(20), FileColumns(schema))
    log = CdcLogWriter(context, settings, TaskId(0, 20, 0), FileGroupId("a", "f1"))
    old, new = (pa.RecordBatch.from_pylist(rows(v), schema=SCHEMA).select(schema.names) for v in (1, 2))
    log.write_changes("u", pa.array(["1"]), old, new if mode == "DATA_BEFORE_AFTER" else None)
    stat = table.write_file(20, "a", "f1", rows(2), schema)
    stat.update(numUpdateWrites=1, numInserts=0, cdcStats=list(log.close().items()))
    metadata = CommitMetadata("UPSERT", write_stats([stat]), {"schema": to_avro(schema, "t")})
    table.active.complete(inflight, metadata.encode(9, Action.COMMIT), at(20))


def changes(table: TableSnapshot) -> list[dict[str, Any]]:
    return rows_of(plan_cdc(table, Query.from_options(Options.parse(CHANGES), table.config)))


def rows_of(plan: CdcPlan) -> list[dict[str, Any]]:
    reader = CdcReader(plan.context)
    return [row for task in plan.tasks.to_pylist() for batch in reader.read(task) for row in batch.to_pylist()]


@pytest.mark.parametrize("populated", [True, False])
def test_rows_inserted_into_an_existing_file_without_a_log(tmp_path: Path, populated: bool) -> None:
    """Apache Hudi logs none of them; they have the time of their commit."""
    properties = {"hoodie.table.cdc.enabled": "true", "hoodie.populate.meta.fields": str(populated).lower()}
    table = HandMadeTable(tmp_path / "t", schema=SCHEMA, properties=properties)
    table.write(10, {("a", "f1"): rows(1)})
    table.active.create_requested(Action.COMMIT, at(20))
    inflight = table.active.to_inflight(table.active.timeline.find(at(20), Action.COMMIT))
    stat = table.write_file(20, "a", "f1", [{**rows(1)[0], "_n": 10}, {"id": "2", "v": 2, "p": "a"}], SCHEMA)
    metadata = CommitMetadata("INSERT", write_stats([stat | {"numInserts": 1}]), {"schema": to_avro(SCHEMA, "t")})
    table.active.complete(inflight, metadata.encode(9, Action.COMMIT), at(20))
    pinned = TableSnapshot.load(TableMetaClient.open(str(tmp_path / "t")))
    if not populated:
        with pytest.raises(QueryError, match="do not store the commits of rows"):
            changes(pinned)
        return
    (change,) = [row for row in changes(pinned) if row["ts_ms"] == at(20)]
    assert (change["op"], change["before"], json.loads(change["after"])["id"]) == ("i", None, "2")


@pytest.mark.parametrize("mode", ["DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY"])
def test_images_have_the_columns_of_the_query(tmp_path: Path, mode: str) -> None:
    """Also those that a change log holds under an earlier name, or that it holds for a column which is gone."""
    root = tmp_path / "t"
    changed(root, mode)
    columns = HudiTable.for_path(str(root), FAST).alter_schema()
    columns.rename_column("v", "amount").add_column("v", "string").commit()
    pinned = TableSnapshot.load(TableMetaClient.open(str(root)))
    (change,) = [row for row in changes(pinned) if row["op"] == "u"]
    for side, amount in (("before", 1), ("after", 2)):
        assert json.loads(change[side]) == {"id": "1", "amount": amount, "p": "a", "v": None}


@pytest.mark.parametrize("mode", ["DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY"])
def test_images_have_partition_columns_that_files_lack(tmp_path: Path, mode: str) -> None:
    dropped = {"hoodie.datasource.write.drop.partition.columns": "true"}
    changed(tmp_path / "t", mode, SCHEMA.remove(2), **dropped, **{"hoodie.table.create.schema": to_avro(SCHEMA, "t")})
    found = changes(TableSnapshot.load(TableMetaClient.open(str(tmp_path / "t"))))
    (change,) = [row for row in found if row["op"] == "u"]
    for side, v in (("before", 1), ("after", 2)):
        assert json.loads(change[side]) == {"id": "1", "v": v, "p": "a"}


def test_images_have_the_paths_text_in_place_of_a_time_that_files_lack(tmp_path: Path) -> None:
    """As queries of rows: the path does not tell the number."""
    properties = {
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.keygenerator.type": "TIMESTAMP",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        "hoodie.datasource.write.drop.partition.columns": "true",
    }
    stored = pa.schema([("id", pa.string()), ("v", pa.int64())])
    told = stored.append(pa.field("ts", pa.int64()))
    table = HandMadeTable(tmp_path / "t", schema=stored, partition_fields="ts", properties=properties)
    day = ("2023/11/14", "f1")
    table.write(10, {day: [{"id": "1", "v": 1}]}, action=Action.DELTA_COMMIT, recorded=told)
    table.log(20, {day: [{"id": "1", "v": 2}]}, base=10)
    table.write(30, {("2023/11/15", "f2"): []}, action=Action.DELTA_COMMIT, recorded=told)
    plan = plan_cdc(
        TableSnapshot.load(table.client()), Query(instants=InstantRange(at(10), at(20), by_completion=True))
    )
    (change,) = rows_of(plan)
    for side, v in (("before", 1), ("after", 2)):
        assert json.loads(change[side]) == {"id": "1", "v": v, "ts": "2023/11/14"}


CLEANED = {**FAST, "hoodie.clean.commits.retained": "1", "hoodie.time.generator.max_expected_clock_skew_ms": "0"}


def replaced_and_cleaned(root: Path, version: int, saved: int) -> TableSnapshot:
    """A table whose commit at 20 replaces a file group, with a savepoint; later commits are all that a clean keeps."""
    properties = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.table.cdc.enabled": "true"}
    table = HandMadeTable(root, version, properties=properties)
    table.write(10, {("a", "f1"): rows(1)}, action=Action.DELTA_COMMIT)
    table.write(20, {}, action=Action.REPLACE_COMMIT, operation="DELETE_PARTITION", replaced=[("a", "f1")])
    services = HudiTable.for_path(str(root), CLEANED).services
    services.savepoint(at(saved))
    for n in (30, 40, 50):
        table.write(n, {("b", "f2"): [{"id": "2", "v": n, "p": "b"}]}, action=Action.DELTA_COMMIT)
    services.clean()
    return TableSnapshot.load(TableMetaClient.open(str(root)))


@pytest.mark.parametrize("version", [6, 9])
def test_a_savepoint_does_not_have_what_its_commit_has_replaced(tmp_path: Path, version: int) -> None:
    table = replaced_and_cleaned(tmp_path / "t", version, saved=20)
    assert not list((tmp_path / "t" / "a").glob("*.parquet"))
    with pytest.raises(QueryError, match=f"{at(20)} are no longer available"):
        plan_cdc(table, Query(instants=InstantRange(at(10), at(20), by_completion=version >= 8)))


@pytest.mark.parametrize("version", [6, 9])
def test_the_savepoint_of_a_commit_keeps_what_the_next_one_has_replaced(tmp_path: Path, version: int) -> None:
    table = replaced_and_cleaned(tmp_path / "t", version, saved=10)
    plan = plan_cdc(table, Query(instants=InstantRange(at(10), at(20), by_completion=version >= 8)))
    found = rows_of(plan)
    assert [(row["op"], json.loads(row["before"])["v"]) for row in found] == [("d", 1)]


@pytest.mark.parametrize("version", [6, 9])
def test_a_savepoint_has_the_files_to_which_its_commit_has_appended(tmp_path: Path, version: int) -> None:
    properties = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.table.cdc.enabled": "true"}
    table = HandMadeTable(tmp_path / "t", version, properties=properties)
    table.write(10, {("a", "f1"): rows(1)}, action=Action.DELTA_COMMIT)
    table.log(20, {("a", "f1"): rows(2)}, base=10)
    services = HudiTable.for_path(str(table.root), CLEANED).services
    services.savepoint(at(20))
    for n in (30, 40, 50):
        table.write(n, {("a", "f1"): rows(n)}, operation="COMPACT")
    services.clean()
    pinned = TableSnapshot.load(TableMetaClient.open(str(table.root)))
    plan = plan_cdc(pinned, Query(instants=InstantRange(at(10), at(20), by_completion=version >= 8)))
    found = rows_of(plan)
    assert [(row["op"], json.loads(row["before"])["v"], json.loads(row["after"])["v"]) for row in found] == [
        ("u", 1, 2)
    ]


def test_a_compaction_that_completes_later_and_is_cleaned(tmp_path: Path) -> None:
    """Its base file has what was there before the logs beside it, whose own slice is gone."""
    properties = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.table.cdc.enabled": "true"}
    table = HandMadeTable(tmp_path / "t", schema=SCHEMA, properties=properties)
    both = [{"id": "x", "v": 1, "p": "a"}, {"id": "y", "v": 1, "p": "a"}]
    table.write(5, {("a", "f1"): both}, action=Action.DELTA_COMMIT)
    table.log(13, {("a", "f1"): [{"id": "y", "v": 3, "p": "a"}]}, deletes={("a", "f1"): ["x"]}, base=5, done=14)
    table.write(12, {("a", "f1"): both}, operation="COMPACT", done=20)
    pinned = TableSnapshot.load(TableMetaClient.open(str(table.root)))
    before = changes(pinned)
    assert sorted(row["op"] for row in before) == ["d", "u"]
    table.clean(40, keep_from=at(13), deleted=[(5, "a", "f1")])
    assert changes(TableSnapshot.load(TableMetaClient.open(str(table.root)))) == before
