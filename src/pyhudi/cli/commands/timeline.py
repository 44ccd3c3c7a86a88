"""``pyhudi timeline``: all instants of a table."""

from __future__ import annotations

from pathlib import Path

import click
import pyarrow.compute as pc

import pyhudi
from pyhudi.cli.columns import DELETED_FILES, DELETIONS, TIMELINE, rows_where
from pyhudi.cli.instants import print_instants
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import InstantTime, Names, with_limit, with_output, with_table
from pyhudi.cli.structure import noun

timeline = noun("timeline", "Instants of a table: list, show, pending, deletions, export.")


@timeline.command("list")
@with_table
@click.option("--action", metavar="ACTION", help="Only this action, such as commit, clean or rollback.")
@click.option("--archived", is_flag=True, help="Also instants that have left the active timeline.")
@with_limit
@with_output
def list_instants(
    table: pyhudi.HudiTable, *, out: Output, action: str | None, archived: bool, limit: int | None
) -> None:
    """List instants, newest first: writes, and what table services have done.

    Python: HudiTable.for_path(PATH).history(archived=…)
    """
    out.rows(
        rows_where(table.history(archived=archived).to_arrow(), action=action),
        TIMELINE,
        limit=limit,
        nothing="no instants",
    )


@timeline.command("pending")
@with_table
@with_limit
@with_output
def pending(table: pyhudi.HudiTable, *, out: Output, limit: int | None) -> None:
    """List instants that are not completed: writes and services that run or have failed, and plans.

    Python: HudiTable.for_path(PATH).history()
    """
    history = table.history().to_arrow()
    unfinished = history.filter(pc.not_equal(history["state"], "COMPLETED"))
    out.rows(unfinished, TIMELINE, limit=limit, nothing="nothing is pending")


@timeline.command("show")
@with_table
@click.argument("instant", type=InstantTime())
@with_output
def show(table: pyhudi.HudiTable, *, out: Output, instant: str) -> None:
    """Show one instant: its times, its state, and what it has done.

    Python: HudiTable.for_path(PATH).history(archived=True)
    """
    history = table.history(archived=True).to_arrow()
    print_instants(table, history, instant, out, noun="instant", listed_by="pyhudi timeline list")


@timeline.command("deletions")
@with_table
@click.argument("instant", type=InstantTime(), required=False)
@with_limit
@with_output
def deletions(table: pyhudi.HudiTable, *, out: Output, instant: str | None, limit: int | None) -> None:
    """List cleans, rollbacks and restores, newest first; or the files that one of them, INSTANT, has deleted.

    Python: HudiTable.for_path(PATH).inspect.deletions(), or .inspect.deleted_files(INSTANT)
    """
    if instant is None:
        out.rows(table.inspect.deletions(), DELETIONS, limit=limit, nothing="no cleans, rollbacks or restores")
    else:
        out.rows(table.inspect.deleted_files(instant), DELETED_FILES, limit=limit, nothing="no files were deleted")


@timeline.command("export")
@with_table
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--actions",
    type=Names(),
    metavar="A,B",
    help="Only instants of these actions. By default clean, commit, deltacommit, rollback, savepoint and restore.",
)
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most N instants, the newest ones.")
@with_output
def export(table: pyhudi.HudiTable, *, out: Output, folder: Path, actions: list[str] | None, limit: int | None) -> None:
    """Write what the timeline stores of completed instants, archived ones included, as JSON to files in FOLDER.

    Python: HudiTable.for_path(PATH).inspect.export_instants(FOLDER, actions, limit=…)
    """
    count = table.inspect.export_instants(folder, actions, limit=limit or None, newest_first=True)
    out.facts({"folder": str(folder), "instants": count})
