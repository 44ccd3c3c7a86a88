"""``pyhudi clean``: deletion of files that no query needs."""

from __future__ import annotations

import click

import pyhudi
from pyhudi.cli.columns import DELETED_FILES, DELETIONS, EXPIRED_FILES, rows_where
from pyhudi.cli.effects import Confirmation, shown_progress, with_confirmation
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import InstantTime, only_if_due_option, with_limit, with_output, with_table
from pyhudi.cli.results import print_plan, print_result
from pyhudi.cli.structure import noun

clean = noun("clean", "Cleaning: run, list, show.")


@clean.command("run")
@with_table
@only_if_due_option
@with_confirmation
@with_output
def run(table: pyhudi.HudiTable, *, out: Output, confirmation: Confirmation, only_if_due: bool) -> None:
    """Delete the files that no query needs, by the policy -o hoodie.clean.policy=…

    Python: HudiTable.for_path(PATH).services.clean(dry_run=…)
    """

    def show(plan_out: Output) -> bool:
        plan = table.services.clean(dry_run=True, only_if_due=only_if_due)
        return print_plan(plan, plan.files, EXPIRED_FILES, plan_out)

    if confirmation.ask("Delete these files?", show, out):
        with shown_progress() as progress:
            done = table.services.clean(only_if_due=only_if_due, progress=progress)
        print_result(done, out)


@clean.command("list")
@with_table
@with_limit
@with_output
def list_cleans(table: pyhudi.HudiTable, *, out: Output, limit: int | None) -> None:
    """List the completed cleans of the active timeline, newest first.

    Python: HudiTable.for_path(PATH).inspect.deletions()
    """
    cleans = rows_where(table.inspect.deletions().to_arrow(), action="clean")
    out.rows(cleans, DELETIONS, limit=limit, nothing="no cleans")


@clean.command("show")
@with_table
@click.argument("instant", type=InstantTime())
@with_limit
@with_output
def show(table: pyhudi.HudiTable, *, out: Output, instant: str, limit: int | None) -> None:
    """List the files that the clean INSTANT has deleted.

    Python: HudiTable.for_path(PATH).inspect.deleted_files(INSTANT)
    """
    out.rows(table.inspect.deleted_files(instant), DELETED_FILES, limit=limit, nothing="no files were deleted")
