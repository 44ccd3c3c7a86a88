"""Empty tables are taken away under the table's lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.config import Options
from pyhudi.errors import LockError, NotAHudiTableError
from pyhudi.storage import Storage, open_storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from pyhudi.transaction.table_overwrite.table_removal import remove_after_failure, remove_empty_table
from pyhudi.transaction.transaction import Transaction
from tests.fault_injection import WRITES, Fault, FaultyStorage, Killed

QUICK = {"hoodie.write.lock.wait_time_ms": "50", "hoodie.write.lock.client.num_retries": "0"}
OPTIONS = {"hoodie.table.name": "t", "hoodie.time.generator.max_expected_clock_skew_ms": "0", **QUICK}


def made(folder: Path, version: int) -> Storage:
    opts = Options.parse({**OPTIONS, "hoodie.write.table.version": str(version)})
    storage = open_storage(folder)
    TableMetaClient.create(storage, TableConfig.for_new_table(opts), opts)
    return storage


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("provider", ["", "FileSystemBasedLockProvider", "StorageBasedLockProvider"])
def test_nobody_begins_meanwhile(tmp_path: Path, provider: str, version: int, caplog: pytest.LogCaptureFixture) -> None:
    options = {**OPTIONS, **({"hoodie.write.lock.provider": provider} if provider else {})}
    storage = made(tmp_path / "t", version)
    client = TableMetaClient.open(storage)
    with make_lock_provider(storage, options), pytest.raises(LockError):
        remove_empty_table(storage, options)
    assert TableMetaClient.open(storage)
    caplog.clear()

    class Watched(FaultyStorage):
        def delete(self, path: str) -> None:
            with pytest.raises(LockError):
                Transaction.begin(client, "commit", "UPSERT", options)
            super().delete(path)

    remove_empty_table(Watched(storage), options)
    messages = [r.message for r in caplog.records if str(tmp_path) in r.message]  # not those of other tests' locks
    assert not [message for message in messages if "lost" in message]
    with pytest.raises(NotAHudiTableError):
        TableMetaClient.open(storage)
    if not provider:
        assert not (tmp_path / "t/.hoodie").exists()
    made(tmp_path / "t", version)


def test_only_the_files_of_the_table_are_removed(tmp_path: Path) -> None:
    root = tmp_path / "t"
    storage = made(root, 9)
    for name in ("day=1/.hoodie_partition_metadata", "day=1/of_others.parquet"):
        storage.write(name, b"")
    remove_after_failure(storage, OPTIONS)
    assert [path.name for path in root.rglob("*") if path.is_file()] == ["of_others.parquet"]


def test_a_table_with_a_write_stays(tmp_path: Path) -> None:
    storage = made(tmp_path / "t", 9)
    with Transaction.begin(TableMetaClient.open(storage), "commit", "UPSERT", OPTIONS):
        remove_empty_table(storage, OPTIONS)
        assert TableMetaClient.open(storage).active_timeline().timeline.writes()


def test_it_is_an_empty_table_or_none_whenever_it_is_cut_off(tmp_path: Path) -> None:
    for nth in range(1, 30):
        folder = tmp_path / str(nth)
        storage = made(folder, 9)
        dying = FaultyStorage(storage, [Fault("*", nth, error=Killed)])
        try:
            remove_empty_table(dying, OPTIONS)
        except Killed:
            pass
        else:
            assert nth > len(WRITES)
            return
        if (folder / ".hoodie/hoodie.properties").exists():
            with Transaction.begin(TableMetaClient.open(storage), "commit", "UPSERT", OPTIONS):
                pass
        else:
            made(folder, 9)
    raise AssertionError("it never came to its end")
