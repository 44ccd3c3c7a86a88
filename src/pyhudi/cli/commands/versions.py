"""``pyhudi upgrade`` and ``downgrade``: the version of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import pyhudi
from pyhudi.cli.effects import Confirmation, with_confirmation, with_spark
from pyhudi.cli.output import Output, OutputFormat
from pyhudi.cli.parameters import with_output, with_table
from pyhudi.cli.results import facts_of, print_result
from pyhudi.cli.structure import Command
from pyhudi.errors import ConfigError
from pyhudi.table.config.version_support import parse_version

if TYPE_CHECKING:
    IntType = click.ParamType[int]
else:  # generic from click 8.2 on
    IntType = click.ParamType


class TableVersion(IntType):
    """Version of a table, by its number or its name in Apache Hudi (``EIGHT``)."""

    name = "version"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        try:
            return parse_version(str(value))
        except ConfigError as error:
            self.fail(str(error), param, ctx)


@click.command("upgrade", cls=Command)
@with_table
@click.option(
    "--to", type=TableVersion(), default=9, show_default=True, metavar="VERSION", help="Table version: 6, 8 or 9."
)
@with_confirmation
@with_spark
@with_output
def upgrade(table: pyhudi.HudiTable, *, out: Output, to: int, confirmation: Confirmation) -> None:
    """Upgrade a table to a later version. Writers should be stopped.

    Python: HudiTable.for_path(PATH).services.upgrade(9, dry_run=…)
    """

    def show(plan_out: Output) -> bool:
        return _print_plan(table.services.upgrade(to, dry_run=True), plan_out)

    if confirmation.ask(f"Upgrade the table to version {to}?", show, out):
        print_result(table.services.upgrade(to), out)


@click.command("downgrade", cls=Command)
@with_table
@click.option("--to", type=TableVersion(), required=True, metavar="VERSION", help="Table version: 6 or 8.")
@click.option("--lossy", is_flag=True, help="Drop indexes and older snapshots that the version does not support.")
@with_confirmation
@with_spark
@with_output
def downgrade(table: pyhudi.HudiTable, *, out: Output, to: int, lossy: bool, confirmation: Confirmation) -> None:
    """Downgrade a table to an earlier version. Writers should be stopped.

    Python: HudiTable.for_path(PATH).services.downgrade(8, lossy=…, dry_run=…)
    """

    def show(plan_out: Output) -> bool:
        return _print_plan(table.services.downgrade(to, lossy=lossy, dry_run=True), plan_out)

    if confirmation.ask(f"Downgrade the table to version {to}?", show, out):
        print_result(table.services.downgrade(to, lossy=lossy), out)


def _print_plan(plan: Any, out: Output) -> bool:
    """Print the steps of a plan, and return whether there are any."""
    if out.form is not OutputFormat.TABLE:
        out.facts(facts_of(plan))
    elif plan:
        out.line(f"version {plan.version} to {plan.to}:")
        for step in plan.steps():
            out.line(f"  {step}")
    else:
        out.note(f"(nothing to do: the table has version {plan.version})")
    return bool(plan)
