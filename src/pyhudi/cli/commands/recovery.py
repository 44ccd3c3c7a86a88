"""``pyhudi savepoint``, ``restore`` and ``rollback``."""

from __future__ import annotations

import click

import pyhudi
from pyhudi.cli.columns import COMMITS, INSTANTS, SAVEPOINTS, instant_rows, rows_where
from pyhudi.cli.effects import Confirmation, shown_progress, with_confirmation
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import InstantTime, with_limit, with_output, with_table
from pyhudi.cli.results import print_affected, print_result
from pyhudi.cli.structure import Command, noun

savepoint = noun("savepoint", "Savepoints: create, list, delete.")


@savepoint.command("create")
@with_table
@click.argument("instant", type=InstantTime(), required=False)
@click.option("--user", default="", help="User to store in the savepoint.")
@click.option("--comment", default="", help="Comment to store in the savepoint.")
@with_output
def create(table: pyhudi.HudiTable, *, out: Output, instant: str | None, user: str, comment: str) -> None:
    """Retain the files of the snapshot after the write INSTANT, by default the last one.

    Python: HudiTable.for_path(PATH).services.savepoint(INSTANT, user=…, comment=…)
    """
    print_result(table.services.savepoint(instant, user=user, comment=comment), out)


@savepoint.command("list")
@with_table
@with_limit
@with_output
def list_savepoints(table: pyhudi.HudiTable, *, out: Output, limit: int | None) -> None:
    """List savepoints, oldest first.

    Python: HudiTable.for_path(PATH).services.savepoints()
    """
    out.rows(table.services.savepoints(), SAVEPOINTS, limit=limit, nothing="no savepoints")


@savepoint.command("delete")
@with_table
@click.argument("instant", type=InstantTime())
@with_confirmation
@with_output
def delete(table: pyhudi.HudiTable, *, out: Output, instant: str, confirmation: Confirmation) -> None:
    """Delete the savepoint of the write INSTANT, so that cleaning may delete its files.

    Python: HudiTable.for_path(PATH).services.delete_savepoint(INSTANT)
    """

    def show(plan_out: Output) -> bool:
        rows = rows_where(table.services.savepoints().to_arrow(), instant=instant)
        return print_affected(rows, SAVEPOINTS, plan_out, f"no savepoint {instant}")

    if confirmation.ask("Delete this savepoint?", show, out):
        print_result(table.services.delete_savepoint(instant), out)


@click.command("restore", cls=Command)
@with_table
@click.argument("instant", type=InstantTime(), required=False)
@with_confirmation
@with_output
def restore(table: pyhudi.HudiTable, *, out: Output, instant: str | None, confirmation: Confirmation) -> None:
    """Restore a table to the snapshot after a write.

    All writes after INSTANT are undone; writers must be stopped. Without INSTANT, an interrupted restore is continued.

    Python: HudiTable.for_path(PATH).services.restore(INSTANT, dry_run=…)
    """

    def show(plan_out: Output) -> bool:
        plan = table.services.restore(instant, dry_run=True)
        plan_out.line(f"restore to {plan.to}: {len(plan):,} later instants are undone")
        plan_out.rows(instant_rows(plan.targets), INSTANTS, nothing="no later writes")
        return True

    if confirmation.ask("Undo these writes?", show, out):
        with shown_progress() as progress:
            done = table.services.restore(instant, progress=progress)
        print_result(done, out)


@click.command("rollback", cls=Command)
@with_table
@click.argument("instant", type=InstantTime())
@with_confirmation
@with_output
def rollback(table: pyhudi.HudiTable, *, out: Output, instant: str, confirmation: Confirmation) -> None:
    """Roll back a write: a pending one, or the last completed one.

    Python: HudiTable.for_path(PATH).services.rollback(INSTANT)
    """

    def show(plan_out: Output) -> bool:
        rows = rows_where(table.history().to_arrow(), requested=instant)
        return print_affected(rows, COMMITS, plan_out, f"the active timeline has no instant {instant}")

    if confirmation.ask("Roll back this write?", show, out):
        print_result(table.services.rollback(instant), out)
