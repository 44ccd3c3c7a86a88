"""CALL of the procedures of the audit of locks."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from pyhudi.errors import QueryError

pytest.importorskip("sqlglot")


def test_audit_of_locks(spark, tmp_path):
    path = str(tmp_path / "audited")

    def call(procedure, **arguments):
        values = {
            name: f"'{value}'" if isinstance(value, str) else str(value).lower() for name, value in arguments.items()
        }
        named = ", ".join(f"{name} => {value}" for name, value in ({"path": f"'{path}'"} | values).items())
        (row,) = spark.sql(f"CALL {procedure}({named})").collect()
        assert row[0] == path
        return tuple(row)[1:]

    options = {
        "hoodie.table.name": "audited",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "StorageBasedLockProvider",
    }
    rows = spark.range(3)
    rows.write.format("hudi").options(**options).save(path)
    locks = f"file://{path}/.hoodie/.locks"
    assert call("show_audit_lock_status") == (False, f"{locks}/audit_enabled.json", f"{locks}/audit")
    assert call("validate_audit_lock")[:3] == ("PASSED", 0, 0)
    with pytest.raises(QueryError, match="state is one of enabled, disabled, not 'on'"):
        call("set_audit_lock", state="on")
    assert call("set_audit_lock", state="ENABLED")[0] == "enabled"
    assert call("show_audit_lock_status")[0] is True
    rows.write.format("hudi").options(**options).mode("append").save(path)
    deadline = time.monotonic() + 10  # The lock is released when the clock skew has passed, after the write.
    while call("validate_audit_lock")[0] != "PASSED" and time.monotonic() < deadline:
        time.sleep(0.05)
    verdict, transactions, issues, _ = call("validate_audit_lock")
    assert (verdict, issues) == ("PASSED", 0)
    files = list(Path(path, ".hoodie", ".locks", "audit").glob("*.jsonl"))
    assert len(files) == transactions > 0
    line = json.loads(files[0].read_text().splitlines()[0])
    files[0].write_text(json.dumps(line) + "\n")
    assert call("validate_audit_lock")[0] in ("WARNING", "FAILED")  # The writer has not released the lock.
    with pytest.raises(QueryError, match="age_days must be 1 or more"):
        call("cleanup_audit_lock", age_days=0)
    assert call("cleanup_audit_lock", dry_run=True)[:3] == (0, True, 7)
    assert call("set_audit_lock", state="disabled")[0] == "disabled"
    rows.write.format("hudi").options(**options).mode("append").save(path)
    assert len(list(Path(path, ".hoodie", ".locks", "audit").glob("*.jsonl"))) == transactions
