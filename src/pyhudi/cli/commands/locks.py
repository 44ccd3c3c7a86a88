"""``pyhudi locks``: the audit of the storage-based lock."""

from __future__ import annotations

import click

import pyhudi
from pyhudi.cli.effects import Confirmation, with_confirmation
from pyhudi.cli.failures import FAILED
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import with_output, with_table
from pyhudi.cli.structure import noun

locks = noun("locks", "Audit of the storage-based lock: status, enable, disable, validate, clean.")


@locks.command("status")
@with_table
@with_output
def status(table: pyhudi.HudiTable, *, out: Output) -> None:
    """Show whether holdings of the lock are recorded.

    Python: HudiTable.for_path(PATH).services.is_lock_audited()
    """
    out.facts({"audit": "on" if table.services.is_lock_audited() else "off"})


@locks.command("enable")
@with_table
@with_output
def enable(table: pyhudi.HudiTable, *, out: Output) -> None:
    """Record holdings of the lock from now on.

    Python: HudiTable.for_path(PATH).services.set_lock_audit(enabled=True)
    """
    table.services.set_lock_audit(enabled=True)
    out.facts({"audit": "on"})


@locks.command("disable")
@with_table
@with_output
def disable(table: pyhudi.HudiTable, *, out: Output) -> None:
    """Record holdings of the lock no longer; what was recorded stays.

    Python: HudiTable.for_path(PATH).services.set_lock_audit(enabled=False)
    """
    table.services.set_lock_audit(enabled=False)
    out.facts({"audit": "off"})


@locks.command("validate")
@with_table
@with_output
def validate(table: pyhudi.HudiTable, *, out: Output) -> None:
    """Check that no two writers have held the lock at the same time. The exit code is 1 if some have.

    Python: HudiTable.for_path(PATH).services.validate_lock_audit()
    """
    report = table.services.validate_lock_audit()
    errors, warnings = list(report.errors), list(report.warnings)
    lists = (("errors", errors), ("warnings", warnings))
    shown = [("holdings", f"{report.holdings:,}"), *((name, "\n".join(texts) or "none") for name, texts in lists)]
    out.facts({"holdings": report.holdings, "errors": errors, "warnings": warnings}, shown)
    if report.errors:
        click.get_current_context().exit(FAILED)


@locks.command("clean")
@with_table
@click.option(
    "--days", type=click.IntRange(min=1), required=True, metavar="N", help="Age from which files are deleted."
)
@with_confirmation
@with_output
def clean(table: pyhudi.HudiTable, *, out: Output, days: int, confirmation: Confirmation) -> None:
    """Delete old files of the audit.

    Python: HudiTable.for_path(PATH).services.delete_lock_audits(30, dry_run=…)
    """

    def show(plan_out: Output) -> bool:
        count = table.services.delete_lock_audits(days, dry_run=True)
        plan_out.facts({"files": count})
        return count > 0

    if confirmation.ask("Delete these files?", show, out):
        out.facts({"deleted files": table.services.delete_lock_audits(days)})
