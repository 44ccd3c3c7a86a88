"""Procedures of the audit of the storage-based lock."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.errors import QueryError
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.storage.clock import now_ms
from pyhudi.transaction.locks.lock_audit import (
    AUDIT_FOLDER,
    AUDIT_SWITCH,
    delete_old_audits,
    is_audit_enabled,
    set_audit_enabled,
    validate_audits,
)

_STATES = {"enabled": True, "disabled": False}
_DAY_MS = 24 * 60 * 60 * 1000


def set_audit_lock(spark: SparkSession, arguments: Arguments) -> Rows:
    """Turn the audit on or off (``state``)."""
    state = str(arguments.text("state")).lower()
    if state not in _STATES:
        raise QueryError(f"state is one of {', '.join(_STATES)}, not {state!r}")
    set_audit_enabled(arguments.client(spark).storage, enabled=_STATES[state])
    return [(_named(arguments), state, f"the audit of the lock is {state}")]


def show_audit_lock_status(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show whether the audit is turned on, and where its files are."""
    storage = arguments.client(spark).storage
    paths = (storage.uri(AUDIT_SWITCH), storage.uri(AUDIT_FOLDER))
    return [(_named(arguments), is_audit_enabled(storage), *paths)]


def validate_audit_lock(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show whether two writers have held the lock at the same time (FAILED), or one has not released it (WARNING)."""
    report = validate_audits(arguments.client(spark).storage)
    verdict = "FAILED" if report.errors else "WARNING" if report.warnings else "PASSED"
    issues = [*report.errors, *report.warnings]
    details = "; ".join(issues) or f"{report.holdings} transactions do not overlap"
    return [(_named(arguments), verdict, report.holdings, len(issues), details)]


def cleanup_audit_lock(spark: SparkSession, arguments: Arguments) -> Rows:
    """Delete the files that are older than a number of days (``age_days``), or count them (``dry_run``)."""
    days, dry_run = int(arguments.number("age_days") or 0), arguments.flag("dry_run")
    if days <= 0:
        raise QueryError(f"age_days must be 1 or more, not {days}")
    before_ms = now_ms() - days * _DAY_MS
    count = delete_old_audits(arguments.client(spark).storage, before_ms, dry_run=dry_run)
    done = "would be deleted" if dry_run else "deleted"
    return [(_named(arguments), count, dry_run, days, f"{count} files older than {days} days {done}")]


def _named(arguments: Arguments) -> str:
    """Return the table as the call names it."""
    return str(arguments.values.get("table") or arguments.values.get("path"))


PROCEDURES: dict[str, Procedure] = {
    "set_audit_lock": set_audit_lock,
    "show_audit_lock_status": show_audit_lock_status,
    "validate_audit_lock": validate_audit_lock,
    "cleanup_audit_lock": cleanup_audit_lock,
}
