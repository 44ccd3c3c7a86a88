"""Processes that are suspended under the lock of the table for longer than its lease: another one breaks the lock and
works, and the first, when it wakes up, changes nothing that is no longer its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import LockError
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.services.cleaning.clean_planner import read_savepoints
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata
from pyhudi.timeline.instant import Action
from pyhudi.transaction.commit_outcome import Committed
from pyhudi.transaction.planned_transaction import PlanAttempt, PlannedTransaction
from pyhudi.transaction.table_overwrite.table_removal import remove_empty_table
from pyhudi.transaction.transaction import Transaction
from tests.fault_injection import SuspendedStorage
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, SCHEMA, MorTable, row

OPTIONS = {
    **FAST,
    "pyhudi.storage.fsync": "none",
    "hoodie.write.lock.provider": "FileSystemBasedLockProvider",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "2",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.compact.inline.max.delta.commits": "1",
}
ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
TIMELINE = r"^\.hoodie(/timeline)?$"


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory, version: int) -> Path:
    """A table with base files, log files and a compaction, of which nothing was cleaned or archived."""
    mor = MorTable(tmp_path_factory.mktemp("grown") / "t", version, options=OPTIONS)
    mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    for n in range(1, 5):
        write(mor, n)
        if n == 2:
            mor.table.services.compact()
    return mor.root


@pytest.fixture
def mor(grown: Path, tmp_path: Path, version: int) -> MorTable:
    return MorTable(Path(shutil.copytree(grown, tmp_path / "t")), version, options=OPTIONS)


def write(mor: MorTable, n: int) -> None:
    mor.delta([row("a0", "a", n, f"v{n}"), row(f"b{n % 3}", "b", n, f"w{n}")])


def suspended(mor: MorTable, operation: str, path: str, meanwhile: Callable[[], object]) -> Any:
    """Return the services of the table in a process that is suspended there."""
    storage = SuspendedStorage(mor.client.storage, operation, path, meanwhile)
    opened: Any = storage
    return HudiTable(opened, Options.parse(mor.options)).services


def listed(mor: MorTable) -> dict[str, Any]:
    """Return the rows by listing the storage."""
    table = HudiTable.for_path(str(mor.root), {**mor.options, "hoodie.metadata.enable": "false"})
    return {r["id"]: r for r in table.scan(columns=["id", "p", "o", "v"]).to_arrow().to_pylist()}


def check(mor: MorTable, rows: dict[str, Any]) -> None:
    assert mor.rows() == rows
    assert listed(mor) == rows
    harmless = {"of another size"} | ({"not in the metadata table"} if mor.version < 8 else set())
    assert not set(mor.table.validate_metadata()["problem"].to_pylist()) - harmless


def known_instants(mor: MorTable) -> set[str]:
    active = mor.client.active_timeline()
    archived = read_archived_timeline(active.storage, active.layout)["requested"].to_pylist()
    return {i.requested for i in active.timeline} | set(archived)


def test_archived_instants_of_another_process_stay(mor: MorTable, version: int) -> None:
    """From version 8 on, each archival replaces the list of archive files."""
    if version < 8:
        pytest.skip("an archive file of version 6 has a number of its own")
    written = known_instants(mor)

    def archive_more() -> None:
        for n in range(5, 8):
            write(mor, n)
            mor.table.services.compact()
        mor.table.services.clean()
        written.update(known_instants(mor))
        assert len(mor.table.services.archive().instants) > 5

    with pytest.raises(LockError, match="no longer held"):
        suspended(mor, "write", r"history/\d+_\d+_0\.parquet$", archive_more).archive()
    assert written <= known_instants(mor)
    mor.table.services.archive()
    assert written <= known_instants(mor)
    check(mor, mor.rows())


def test_a_write_with_a_savepoint_is_not_archived(mor: MorTable) -> None:
    (instant,) = mor.client.active_timeline().timeline.writes().instants[1:2]
    started = suspended(mor, "list", TIMELINE, lambda: mor.table.services.savepoint(instant.requested))
    with pytest.raises(LockError, match="no longer held"):
        started.archive()
    assert instant.requested in mor.client.active_timeline().timeline.writes()
    assert mor.table.services.restore(instant.requested)


def test_a_savepoint_whose_files_were_cleaned_is_not_completed(mor: MorTable) -> None:
    def clean_its_files() -> None:
        write(mor, 5)
        mor.table.services.compact()
        assert mor.table.services.clean(ONE_VERSION)

    with pytest.raises(LockError, match="no longer held"):
        suspended(mor, "create", r"savepoint\.inflight$", clean_its_files).savepoint()
    assert not mor.table.services.savepoints().num_rows
    check(mor, mor.rows())
    mor.table.services.savepoint()
    check_savepoints(mor, 1)


def test_a_clean_of_files_with_a_new_savepoint_is_not_planned(mor: MorTable) -> None:
    (instant,) = mor.client.active_timeline().timeline.writes().instants[1:2]
    started = suspended(mor, "list", TIMELINE, lambda: mor.table.services.savepoint(instant.requested))
    with pytest.raises(LockError, match="no longer held"):
        started.clean()
    assert not mor.client.active_timeline().timeline.of_actions(Action.CLEAN)
    mor.table.services.clean()
    check_savepoints(mor, 1)


def check_savepoints(mor: MorTable, count: int) -> None:
    """The savepoints have their files."""
    saved = read_savepoints(mor.client.active_timeline())
    assert len(saved) == count
    for paths in saved.values():
        assert len(paths)
        assert all((mor.root / path).exists() for path in paths.to_pylist())


def test_a_later_attempt_at_a_compaction_stays_completed(mor: MorTable) -> None:
    """Whoever rolls back the attempt that died wakes up when another process has rolled it back, too, and the next
    attempt is done."""
    plan = mor.table.services.schedule_compaction()
    assert plan.instant is not None
    dead = PlannedTransaction.start_attempt(
        mor.client, PlanAttempt(plan.action, plan.instant, "COMPACT", "dead"), mor.options
    )
    assert dead is not None
    dead.to_inflight()

    def compact() -> None:
        assert mor.table.services.run_compaction().instants == (plan.instant,)
        assert mor.table.services.clean(ONE_VERSION)
        write(mor, 5)

    with pytest.raises(LockError, match="no longer held"):
        suspended(mor, "delete_tree", r"\.temp/", compact).rollback(plan.instant)
    assert mor.client.active_timeline().timeline.is_completed(plan.instant)
    assert mor.rows()["a0"]["v"] == "v5"
    check(mor, mor.rows())
    assert not mor.client.active_timeline().timeline.pending()


def test_a_restore_is_completed_once(mor: MorTable) -> None:
    last = mor.client.active_timeline().timeline.writes().last
    assert last is not None
    rows = mor.rows()
    mor.delta([row("a1", "a", 60, "gone")])

    def go_on() -> None:
        mor.table.services.restore()
        write(mor, 70)

    with pytest.raises(LockError, match="no longer held"):
        suspended(mor, "create", r"^\.hoodie/(timeline/)?[\d_]+\.rollback$", go_on).restore(last.requested)
    files = [path.name for path in (mor.root / ".hoodie").rglob("*.restore")]
    assert len(files) == 1, files
    after = {"a0": row("a0", "a", 70, "v70"), "b1": row("b1", "b", 70, "w70")}
    check(mor, {**rows, **after})


def test_an_upgrade_loses_no_write(mor: MorTable, version: int) -> None:
    if version > 6:
        pytest.skip("from version 6 on the timeline moves")
    with pytest.raises(LockError, match="no longer held"):
        suspended(mor, "make_dirs", "timeline/history$", lambda: write(mor, 70)).upgrade(9)
    assert mor.client.config.version == version
    rows = mor.rows()
    assert rows["a0"]["v"] == "v70"
    check(mor, rows)
    mor.table.services.upgrade(9)
    mor.version = 9
    check(mor, rows)


def test_the_timeline_of_a_table_that_was_downgraded_is_not_taken_for_a_rest(mor: MorTable, version: int) -> None:
    if version < 8:
        pytest.skip("it would be in the same folder")
    rows = mor.rows()

    def downgrade() -> None:
        mor.table.services.downgrade(6, lossy=True)

    with pytest.raises(LockError, match="no longer held"):
        suspended(mor, "read", r"\.hoodie/hoodie\.properties$", downgrade).upgrade(version)
    mor.version = 6
    check(mor, rows)


def test_a_table_that_was_written_to_is_not_removed_as_empty(tmp_path: Path) -> None:
    mor = MorTable(tmp_path / "t", options=OPTIONS)
    rows = [row("a0", "a", 0, "x"), row("b0", "b", 0, "x")]
    slow = SuspendedStorage(mor.client.storage, "list", TIMELINE, lambda: mor.load(rows))
    with pytest.raises(LockError, match="no longer held"):
        remove_empty_table(slow, mor.options, folder_was_empty=True)
    check(mor, {one["id"]: one for one in rows})


def test_an_index_that_lacks_a_write_is_not_declared(mor: MorTable) -> None:
    started = suspended(mor, "close_output", "metadata/bloom_filters/.*", lambda: write(mor, 70))
    with pytest.raises(LockError, match="no longer held"):
        started.build_index("bloom_filters")
    assert "bloom_filters" not in mor.client.config.metadata_partitions
    check(mor, mor.rows())
    mor.table.services.build_index("bloom_filters")
    check(mor, mor.rows())


def test_a_write_does_not_begin_with_a_time_that_has_passed(mor: MorTable) -> None:
    """Archival may have passed it, so that readers would take its files for committed ones."""
    rows = mor.rows()
    slow = SuspendedStorage(mor.client.storage, "list", TIMELINE, lambda: write(mor, 70))
    with pytest.raises(LockError, match="no longer held"):
        MorTable(mor.root, mor.version, options=OPTIONS, storage=slow).begin()
    assert not mor.client.active_timeline().timeline.pending()
    check(mor, {**rows, "a0": row("a0", "a", 70, "v70"), "b1": row("b1", "b", 70, "w70")})


def test_a_compaction_of_the_metadata_table_that_lacks_a_write_is_not_published(mor: MorTable, version: int) -> None:
    """In version 6 it runs under the lock; log files of writes meanwhile belong to the slice that it merges."""
    if version > 6:
        pytest.skip("it runs without the lock")
    new = row("c0", "c", 0, "x")
    slow = SuspendedStorage(
        mor.client.storage,
        "close_output",
        r"metadata/files/.*001\.hfile$",
        lambda: mor.load([new], {"c": "cccccccc-0000-4000-8000-000000000001-0"}),
    )
    rows, writer = mor.rows(), MorTable(mor.root, version, options=OPTIONS, storage=slow)
    for n in range(70, 80):
        rows["a0"] = row("a0", "a", n, "y")
        writer.delta([rows["a0"]])
        if slow.was_suspended:
            break
    assert slow.was_suspended
    check(mor, {**rows, "c0": new})


def test_a_partition_that_is_written_to_is_not_dropped_as_empty(mor: MorTable) -> None:
    """A write has begun, and finishes while the clean deletes the folders that it has found empty."""
    mor.load([row("c0", "c", 0, "x")], {"c": "cccccccc-0000-4000-8000-000000000001-0"})
    replace_partition(mor, "c")
    write(mor, 5)
    rows, new = mor.rows(), row("c1", "c", 0, "y")
    started = suspended(mor, "list", "^c$", lambda: mor.load([new], {"c": "cccccccc-0000-4000-8000-000000000002-0"}))
    with pytest.raises(LockError, match="no longer held"):
        started.clean()
    mor.table.services.clean()  # the metadata table does not know yet what is deleted
    check(mor, {**rows, "c1": new})


def replace_partition(mor: MorTable, partition: str) -> None:
    """Delete a partition."""
    group = {"partition": partition, "file_id": "cccccccc-0000-4000-8000-000000000001-0"}
    replaced = pa.Table.from_pylist([group], schema=REPLACED_SCHEMA)
    metadata = CommitMetadata("DELETE_PARTITION", extra={"schema": to_avro(SCHEMA, "t")}, replaced=replaced)
    with Transaction.begin(mor.client, Action.REPLACE_COMMIT, "DELETE_PARTITION", mor.options) as tx:
        tx.to_inflight(metadata)
        assert isinstance(tx.commit(metadata), Committed)
