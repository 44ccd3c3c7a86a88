"""A writer of log files may die before or after any operation on the storage: readers see all of its rows or none, and
whoever comes next clears up behind it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config.options import TIME_GENERATOR_MAX_CLOCK_SKEW_MS
from pyhudi.format.log import LogSchema
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.storage import Storage, open_storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_group_state import GROUP_INSTANT_SCHEMA
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.fencing.write_fence import WriteFence
from pyhudi.timeline.instant import Action
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, IS_DELETE, ROW_POSITION
from pyhudi.write.settings.log_settings import LogSettings, log_slices
from pyhudi.write.settings.write_context import FileColumns, TaskId, WriteContext
from pyhudi.write.tasks.write_tasks import bulk_insert_task, upsert_task
from pyhudi.write.write_status import decode_stats
from tests.fault_injection import WRITES, Fault, FaultyStorage, Killed
from tests.tables import HandMadeTable

MAX_CLOCK_SKEW = TIME_GENERATOR_MAX_CLOCK_SKEW_MS.key

KEYS = ["a", "b", "c", "d"]
OPTIONS = {MAX_CLOCK_SKEW: "0", "hoodie.metadata.enable": "false"}
"""Deaths beside a metadata table are a test of their own."""


def opened(folder: Path) -> Storage:
    """The table without fsync: the process dies here, not the machine."""
    return open_storage(folder, {"pyhudi.storage.fsync": "none"})


def update(storage: Storage, key: str, value: int, *, attempts: int = 1, late: bool = False) -> None:
    """Write a new version of one record to a log file; of several attempts of the task the last one counts. ``late``:
    one more attempt publishes its file after the commit, and dies before it looks at the fence again."""
    client = TableMetaClient.open(storage)
    version = client.config.version
    with Transaction.begin(client, Action.DELTA_COMMIT, "UPSERT", OPTIONS) as tx:
        slices = FileSystemView.load(client, tx.timeline).latest_slices()
        profile = {"partitionPath": "x", "fileId": "f-0", "numUpdateWrites": 1}
        profile["prevCommit"] = slices["base_instant"][0].as_py()
        tx.to_inflight(CommitMetadata("UPSERT", write_stats([profile])))
        schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
        avro = to_avro(add_meta_columns(schema), "t")
        logs = LogSettings(
            LogSchema(avro, pa.schema([]), version),
            positions=version >= 8,
            slices=log_slices(slices, slices, GROUP_INSTANT_SCHEMA.empty_table(), named_by_slice=version < 8),
        )
        row: dict[str, Any] = {"id": key, "p": "x", "v": value, RECORD_KEY: key, PARTITION_PATH: "x", IS_DELETE: False}
        row |= {FILE_ID: "f-0", BASE_PATH: slices["base_path"][0].as_py(), ROW_POSITION: KEYS.index(key)}
        rows = pa.RecordBatch.from_pylist([row])
        context = WriteContext(storage, tx.instant, FileColumns(schema, avro), logs=logs)
        statuses = [upsert_task([rows], context, TaskId(0, 1, attempt)) for attempt in range(attempts)]
        metadata = CommitMetadata("UPSERT", decode_stats(statuses[-1:]), {"schema": to_avro(schema, "t")})
        tx.commit(metadata)
    if late:
        fence = WriteFence(storage, tx.instant)
        fence.open()
        upsert_task([rows], context, TaskId(0, 1, attempts))
        fence.close()


def deaths(folder: Path) -> Iterator[Storage]:
    probe = FaultyStorage(opened(shutil.copytree(folder, folder.with_name("probe"))))
    update(probe, "b", 2, attempts=2)
    for nth in range(1, 1 + sum(name in WRITES for name, _ in probe.operations)):
        copy = opened(shutil.copytree(folder, folder.with_name(f"dead{nth}")))
        with pytest.raises(Killed):
            update(FaultyStorage(copy, [Fault("writes", nth, "after", Killed)]), "b", 2, attempts=2)
        yield copy


def values(storage: Storage) -> list[int]:
    rows = HudiTable.for_path(storage.root).scan().to_arrow().to_pylist()
    return [row["v"] for row in sorted(rows, key=lambda row: row["id"])]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_writer_of_log_files_dies(tmp_path: Path, version: int) -> None:
    table = HandMadeTable(tmp_path / "t", version, properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(10, {("x", "f-0"): [{"id": key, "p": "x", "v": 0} for key in KEYS]}, action=Action.DELTA_COMMIT)
    update(opened(table.root), "a", 1)
    seen = set()
    for storage in deaths(table.root):
        now = values(storage)
        assert now in ([1, 0, 0, 0], [1, 2, 0, 0])
        seen.add(now[1])
        update(storage, "c", 3)
        assert values(storage) == [1, now[1], 3, 0]
        active = TableMetaClient.open(storage).active_timeline()
        assert not active.timeline.pending()
        done = active.timeline.writes().completed()
        named = {path for instant in done for path in active.commit_metadata(instant).stats["path"].to_pylist()}
        files = {path for path in storage.list("x")["path"].to_pylist() if not path.endswith("metadata")}
        if version >= 8:
            assert files == named, "nothing is left of what does not count"
        assert named <= files
        assert not storage.list(".hoodie/.temp", recursive=True).num_rows
    assert seen == {0, 2}


@pytest.mark.parametrize("version", [6, 8, 9])
def test_what_a_lost_task_leaves_behind_counts_for_nobody(tmp_path: Path, version: int) -> None:
    table = HandMadeTable(tmp_path / "t", version, properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(10, {("x", "f-0"): [{"id": key, "p": "x", "v": 0} for key in KEYS]}, action=Action.DELTA_COMMIT)
    storage = opened(table.root)
    update(storage, "a", 1, late=True)
    assert len(list((table.root / "x").glob(".f-0*.log.*"))) == 2
    assert values(storage) == [1, 0, 0, 0]
    if version >= 8:
        client = TableMetaClient.open(storage)
        (paths,) = FileSystemView.load(client).latest_slices()["log_paths"].to_pylist()
        last = client.active_timeline().timeline.writes().last
        assert paths == client.active_timeline().commit_metadata(last).stats["path"].to_pylist()
    update(storage, "b", 2)
    HudiTable.for_path(storage.root).services.compact()
    assert values(storage) == [1, 2, 0, 0]


def test_a_lost_task_may_leave_new_file_groups_behind(tmp_path: Path) -> None:
    """They are twins of those that the commit names, even where a task got its rows in another order."""
    table = HandMadeTable(tmp_path / "t")
    storage = opened(table.root)
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
    row: dict[str, Any] = {"p": "x", "v": 0}
    rows = [row | {"id": key, RECORD_KEY: key, PARTITION_PATH: p} for key, p in (("a", "x"), ("b", "y"), ("c", "x"))]
    with Transaction.begin(table.client(), Action.COMMIT, "BULK_INSERT", {MAX_CLOCK_SKEW: "0"}) as tx:
        tx.to_inflight()
        context = WriteContext(storage, tx.instant, FileColumns(schema))
        lost = bulk_insert_task([pa.RecordBatch.from_pylist(rows[::-1])], context, TaskId(0, 1, 9))
        kept = bulk_insert_task([pa.RecordBatch.from_pylist(rows)], context, TaskId(0, 1, 1))
        left = {path: storage.read(path) for path in decode_stats([lost])["path"].to_pylist()}
        tx.commit(CommitMetadata("BULK_INSERT", decode_stats([kept]), {"schema": to_avro(schema, "t")}))
    for path, data in left.items():
        storage.write(path, data)
    found = HudiTable.for_path(storage.root).scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == ["a", "b", "c"]
    assert not set(left) & set(FileSystemView.load(table.client()).latest_base_files()["path"].to_pylist())
