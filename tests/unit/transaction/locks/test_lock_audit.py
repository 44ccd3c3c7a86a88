"""The audit of the lock that is a lease in an object."""

from __future__ import annotations

import json
from pathlib import Path

from pyhudi.storage import Storage, open_storage
from pyhudi.transaction.locks.lock_audit import (
    AUDIT_FOLDER,
    AUDIT_SWITCH,
    AuditState,
    LockAudit,
    delete_old_audits,
    is_audit_enabled,
    set_audit_enabled,
    validate_audits,
)
from pyhudi.transaction.locks.storage_based_lock import StorageBasedLockProvider
from tests.fault_injection import Fault, FaultyStorage
from tests.unit.transaction.lock_suite import QUICK

NOW = 1_700_000_000_000


def _lock(storage: Storage) -> StorageBasedLockProvider:
    return StorageBasedLockProvider(storage, validity_s=300, renew_s=299, retry_policy=QUICK, clock=lambda: NOW)


def _audit(storage: Storage, owner: str, begin: int, end: int | None, expiration: int = NOW) -> None:
    audit = LockAudit(storage, owner, begin)
    audit.record(AuditState.START, begin, expiration, held=True)
    if end is not None:
        audit.record(AuditState.END, end, expiration, held=False)


def test_each_holding_has_a_file(storage: Storage) -> None:
    set_audit_enabled(storage, enabled=True)
    assert storage.read(AUDIT_SWITCH) == b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED":true}'
    with _lock(storage) as lock:
        assert lock.renew()
    (path,) = storage.list(AUDIT_FOLDER)["path"].to_pylist()
    lines = [json.loads(line) for line in storage.read(path).splitlines()]
    owner = lines[0]["ownerId"]
    assert path == f"{AUDIT_FOLDER}/{NOW}_{owner.partition(' ')[0]}.jsonl"
    common = {"ownerId": owner, "transactionStartTime": NOW, "timestamp": NOW}
    assert lines == [
        {**common, "state": "START", "lockExpiration": NOW + 300_000, "lockHeld": True},
        {**common, "state": "RENEW", "lockExpiration": NOW + 300_000, "lockHeld": True},
        {**common, "state": "END", "lockExpiration": NOW, "lockHeld": False},
    ]
    set_audit_enabled(storage, enabled=False)
    with _lock(storage):
        pass
    assert storage.list(AUDIT_FOLDER).num_rows == 1


def test_a_writer_reads_the_switch_once(storage: Storage) -> None:
    counted = FaultyStorage(storage)
    lock = _lock(counted)
    for _ in range(3):
        with lock:
            pass
    assert sum(operation == ("read", AUDIT_SWITCH) for operation in counted.operations) == 1


def test_without_a_valid_switch_nothing_is_recorded(storage: Storage) -> None:
    for content in (b"", b"[]", b"{}", b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED":"true"}'):
        storage.write(AUDIT_SWITCH, content)
        assert not is_audit_enabled(storage)
    with _lock(storage):
        pass
    assert storage.list(AUDIT_FOLDER).num_rows == 0


def test_the_lock_does_not_depend_on_its_audit(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    set_audit_enabled(storage, enabled=True)
    broken = FaultyStorage(storage, [Fault("write", path=AUDIT_FOLDER)])
    with _lock(broken) as lock:
        assert lock.held


def test_holdings_at_the_same_time(storage: Storage) -> None:
    assert validate_audits(storage).holdings == 0
    _audit(storage, "one", 100, 200)
    _audit(storage, "two", 200, 300)
    report = validate_audits(storage)
    assert (report.holdings, list(report.errors), list(report.warnings)) == (2, [], [])
    _audit(storage, "three", 400, None, expiration=600)  # Its writer has died.
    report = validate_audits(storage)
    assert (len(report.errors), len(report.warnings)) == (0, 1)
    assert report.warnings[0].startswith("400_three.jsonl has no end")
    _audit(storage, "four", 500, 700)
    _audit(storage, "five", 650, 660)
    report = validate_audits(storage)
    assert list(report.errors) == [
        "400_three.jsonl overlaps with 500_four.jsonl",
        "500_four.jsonl overlaps with 650_five.jsonl",
    ]
    storage.write(f"{AUDIT_FOLDER}/800_six.jsonl", b"no JSON")
    storage.write(f"{AUDIT_FOLDER}/900_seven.jsonl", b"")
    report = validate_audits(storage)
    assert report.holdings == 5
    assert sum("is not a valid audit" in error for error in report.errors) == 2


def test_old_files_are_deleted(storage: Storage) -> None:
    _audit(storage, "one", 100, 200)
    storage.write(f"{AUDIT_FOLDER}/readme.txt", b"")
    newest = max(storage.list(AUDIT_FOLDER)["mtime_ms"].to_pylist())
    assert delete_old_audits(storage, newest - 60_000, dry_run=False) == 0
    assert delete_old_audits(storage, newest + 1, dry_run=True) == 1
    assert storage.list(AUDIT_FOLDER).num_rows == 2
    assert delete_old_audits(storage, newest + 1, dry_run=False) == 1
    assert [path.rpartition("/")[2] for path in storage.list(AUDIT_FOLDER)["path"].to_pylist()] == ["readme.txt"]
