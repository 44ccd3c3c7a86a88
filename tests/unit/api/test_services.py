"""Services that need no Spark, through `HudiTable.services`."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pyhudi.errors import AlreadyExistsError, ConfigError, TransactionError
from pyhudi.timeline.markers import IOType, Markers
from pyhudi.transaction.locks.lock_audit import AUDIT_FOLDER, AuditState, LockAudit
from tests.unit.services.merge_on_read_table import FILE_IDS, MorTable, row


@pytest.fixture
def made(tmp_path: Path) -> MorTable:
    mor = MorTable(tmp_path / "t")
    mor.load([row(f"{p}0", p, 0, "x") for p in FILE_IDS])
    return mor


def test_the_metadata_table_is_deleted_and_built(made: MorTable) -> None:
    services = made.table.services
    had = services.delete_metadata_table()
    assert "files" in had
    assert not made.table.config.metadata_partitions
    assert not services.delete_metadata_table()
    built = services.create_metadata_table({"hoodie.metadata.index.column.stats.enable": "false"})
    assert "files" in built
    assert "column_stats" not in built
    assert tuple(made.table.config.metadata_partitions) == built
    assert not len(made.table.validate_metadata())
    rows = {row["partition"]: row for row in made.table.inspect.metadata_partitions().to_pylist()}
    assert set(rows) == set(built)
    assert rows["files"]["file_groups"] == 1
    with pytest.raises(AlreadyExistsError, match="delete_metadata_table"):
        services.create_metadata_table()


def test_the_audit_of_the_lock(made: MorTable) -> None:
    services = made.table.services
    assert not services.is_lock_audited()
    services.set_lock_audit(enabled=True)
    assert services.is_lock_audited()
    for started, owner in ((100, "one"), (150, "two")):
        audit = LockAudit(made.client.storage, owner, started)
        audit.record(AuditState.START, started, started + 1000, held=True)
        audit.record(AuditState.END, started + 100, started + 1000, held=False)
    report = services.validate_lock_audit()
    assert report.holdings == 2
    assert len(report.errors) == 1
    old = time.time() - 3 * 24 * 3600
    for file in (made.root / AUDIT_FOLDER).iterdir():
        os.utime(file, (old, old))
    assert services.delete_lock_audits(2, dry_run=True) == 2
    assert services.delete_lock_audits(2) == 2
    assert services.validate_lock_audit().holdings == 0
    with pytest.raises(ConfigError, match="days must be 1 or more"):
        services.delete_lock_audits(0)
    services.set_lock_audit(enabled=False)
    assert not services.is_lock_audited()


def test_markers_of_finished_writes_are_deleted(made: MorTable) -> None:
    done = made.table.history()["requested"][0].as_py()
    markers = Markers(made.client.storage, done)
    markers.create("a", "f.parquet", IOType.CREATE)
    made.table.services.delete_markers(done)
    assert not list((made.root / ".hoodie" / ".temp").rglob("*f.parquet*"))
    pending = made.begin()
    with pytest.raises(TransactionError, match="roll it back"):
        made.table.services.delete_markers(pending.instant)
