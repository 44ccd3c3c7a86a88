"""``pyhudi archive``: archival of old instants."""

from __future__ import annotations

import pyhudi
from pyhudi.cli.columns import INSTANTS, instant_rows
from pyhudi.cli.effects import Confirmation, shown_progress, with_confirmation
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import only_if_due_option, with_output, with_table
from pyhudi.cli.results import print_plan, print_result
from pyhudi.cli.structure import noun

archive = noun("archive", "Archival of the timeline: run.")


@archive.command("run")
@with_table
@only_if_due_option
@with_confirmation
@with_output
def run(table: pyhudi.HudiTable, *, out: Output, confirmation: Confirmation, only_if_due: bool) -> None:
    """Move old instants from the active timeline to the archived one; they can no longer be rolled back.

    Python: HudiTable.for_path(PATH).services.archive(dry_run=…)
    """

    def show(plan_out: Output) -> bool:
        plan = table.services.archive(dry_run=True, only_if_due=only_if_due)
        rows = instant_rows((instant.requested, instant.action) for instant in plan.instants)
        return print_plan(plan, rows, INSTANTS, plan_out)

    if confirmation.ask("Archive these instants?", show, out):
        with shown_progress() as progress:
            done = table.services.archive(only_if_due=only_if_due, progress=progress)
        print_result(done, out)
