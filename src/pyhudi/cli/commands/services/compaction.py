"""``pyhudi compaction``: compaction and log compaction of merge-on-read tables."""

from __future__ import annotations

import click

import pyhudi
from pyhudi.cli.columns import COMPACTED, PENDING_COMPACTED
from pyhudi.cli.effects import shown_progress, with_spark
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import InstantTime, only_if_due_option, with_output, with_table
from pyhudi.cli.results import print_plan, print_plans, print_result, with_instants
from pyhudi.cli.structure import noun

compaction = noun("compaction", "Compaction of log files: plan, schedule, run, list.")
_log = click.option("--log", is_flag=True, help="Log compaction: merge log files into one, without a new base file.")


@compaction.command("plan")
@with_table
@_log
@only_if_due_option
@with_output
def plan(table: pyhudi.HudiTable, *, out: Output, log: bool, only_if_due: bool) -> None:
    """Show the plan that a compaction would make now; nothing is changed.

    Python: HudiTable.for_path(PATH).services.compact(dry_run=True)
    """
    services = table.services
    compact = services.log_compact if log else services.compact
    made = compact(dry_run=True, only_if_due=only_if_due)
    print_plan(made, made.operations, COMPACTED, out)


@compaction.command("schedule")
@with_table
@_log
@only_if_due_option
@with_output
def schedule(table: pyhudi.HudiTable, *, out: Output, log: bool, only_if_due: bool) -> None:
    """Put a plan on the timeline, which any process may execute while writers continue.

    Python: HudiTable.for_path(PATH).services.schedule_compaction()
    """
    services = table.services
    made = (services.schedule_log_compaction if log else services.schedule_compaction)(only_if_due=only_if_due)
    rows = with_instants([(made.instant, made.operations)])
    print_plan(made, rows, PENDING_COMPACTED, out)


@compaction.command("run")
@with_table
@click.argument("instant", type=InstantTime(), required=False)
@_log
@click.option("--pending", is_flag=True, help="Execute the plans on the timeline, and make no new one.")
@only_if_due_option
@with_spark
@with_output
def run(
    table: pyhudi.HudiTable, *, out: Output, instant: str | None, log: bool, pending: bool, only_if_due: bool
) -> None:
    """Execute the plan of INSTANT; without one, all pending plans, and a new one.

    Python: HudiTable.for_path(PATH).services.compact(), or .run_compaction(INSTANT)
    """
    services = table.services
    with shown_progress() as progress:
        if instant is not None or pending:
            run_plans = services.run_log_compaction if log else services.run_compaction
            done = run_plans(instant, progress=progress)
        else:
            compact = services.log_compact if log else services.compact
            done = compact(only_if_due=only_if_due, progress=progress)
    print_result(done, out)


@compaction.command("list")
@with_table
@_log
@with_output
def list_plans(table: pyhudi.HudiTable, *, out: Output, log: bool) -> None:
    """List the pending plans and their file slices, oldest first.

    Python: HudiTable.for_path(PATH).services.pending_compactions()
    """
    services = table.services
    plans = services.pending_log_compactions() if log else services.pending_compactions()
    print_plans(plans, with_instants([(made.instant, made.operations) for made in plans]), PENDING_COMPACTED, out)
