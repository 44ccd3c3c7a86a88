"""``pyhudi clustering``: rewriting of file groups, larger and sorted."""

from __future__ import annotations

import click

import pyhudi
from pyhudi.cli.columns import CLUSTERED, PENDING_CLUSTERED
from pyhudi.cli.effects import shown_progress, with_spark
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import InstantTime, only_if_due_option, with_output, with_table
from pyhudi.cli.results import print_plan, print_plans, print_result, with_instants
from pyhudi.cli.structure import noun

clustering = noun("clustering", "Clustering of file groups: plan, schedule, run, list.")


@clustering.command("plan")
@with_table
@only_if_due_option
@with_output
def plan(table: pyhudi.HudiTable, *, out: Output, only_if_due: bool) -> None:
    """Show the plan that a clustering would make now; nothing is changed.

    Python: HudiTable.for_path(PATH).services.cluster(dry_run=True)
    """
    made = table.services.cluster(dry_run=True, only_if_due=only_if_due)
    print_plan(made, made.inputs, CLUSTERED, out)


@clustering.command("schedule")
@with_table
@only_if_due_option
@with_output
def schedule(table: pyhudi.HudiTable, *, out: Output, only_if_due: bool) -> None:
    """Put a plan on the timeline. Its file groups cannot be written to until it is executed.

    Python: HudiTable.for_path(PATH).services.schedule_clustering()
    """
    made = table.services.schedule_clustering(only_if_due=only_if_due)
    print_plan(made, with_instants([(made.instant, made.inputs)]), PENDING_CLUSTERED, out)


@clustering.command("run")
@with_table
@click.argument("instant", type=InstantTime(), required=False)
@click.option("--pending", is_flag=True, help="Execute the plans on the timeline, and make no new one.")
@only_if_due_option
@with_spark
@with_output
def run(table: pyhudi.HudiTable, *, out: Output, instant: str | None, pending: bool, only_if_due: bool) -> None:
    """Execute the plan of INSTANT; without one, all pending plans or, if there are none, a new one.

    Python: HudiTable.for_path(PATH).services.cluster(), or .run_clustering(INSTANT)
    """
    services = table.services
    with shown_progress() as progress:
        if instant is not None or pending:
            done = services.run_clustering(instant, progress=progress)
        else:
            done = services.cluster(only_if_due=only_if_due, progress=progress)
    print_result(done, out)


@clustering.command("list")
@with_table
@with_output
def list_plans(table: pyhudi.HudiTable, *, out: Output) -> None:
    """List the pending plans and their file slices, oldest first.

    Python: HudiTable.for_path(PATH).services.pending_clusterings()
    """
    plans = table.services.pending_clusterings()
    print_plans(plans, with_instants([(made.instant, made.inputs) for made in plans]), PENDING_CLUSTERED, out)
