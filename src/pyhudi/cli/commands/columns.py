"""``pyhudi columns``: the columns of a table, and their changes without rewriting files (schema-on-read evolution)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

import pyhudi
from pyhudi.cli.effects import Confirmation, with_confirmation
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import with_output, with_table
from pyhudi.cli.results import print_result
from pyhudi.cli.structure import noun
from pyhudi.report.column_rows import column_rows
from pyhudi.report.row_table import text_column

if TYPE_CHECKING:
    from pyhudi.api.schema_update import SchemaUpdate

columns = noun("columns", "Columns of a table: list, add, rename, drop, retype, move.")
_COLUMNS = (text_column("column"), text_column("type"), text_column("nullable"), text_column("comment"))
_column = click.argument("column")


def _with_position(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a column's position."""
    for name, meaning in (("before", "Put it before this column."), ("after", "Put it after this column.")):
        function = click.option(f"--{name}", metavar="COLUMN", help=meaning)(function)
    return click.option("--first", is_flag=True, help="Put it before all others.")(function)


@columns.command("list")
@with_table
@with_output
def list_columns(table: pyhudi.HudiTable, *, out: Output) -> None:
    """List the columns of the latest snapshot, with their types in SQL.

    Python: pyhudi.report.column_rows(HudiTable.for_path(PATH).schema)
    """
    out.rows(column_rows(table.schema), _COLUMNS, nothing="no columns yet")


@columns.command("add")
@with_table
@_column
@click.argument("data_type", metavar="TYPE")
@click.option("--comment", help="Comment of the column.")
@_with_position
@with_confirmation
@with_output
def add(
    table: pyhudi.HudiTable,
    *,
    out: Output,
    column: str,
    data_type: str,
    comment: str | None,
    first: bool,
    after: str | None,
    before: str | None,
    confirmation: Confirmation,
) -> None:
    """Add a nullable column, or a field of a struct (address.zip), of a type such as bigint.

    Python: HudiTable.for_path(PATH).alter_schema().add_column(COLUMN, TYPE).commit()
    """
    update = table.alter_schema().add_column(column, data_type, comment, first=first, after=after, before=before)
    _commit(update, "Add the column?", confirmation, out)


@columns.command("rename")
@with_table
@_column
@click.argument("name")
@with_confirmation
@with_output
def rename(table: pyhudi.HudiTable, *, out: Output, column: str, name: str, confirmation: Confirmation) -> None:
    """Rename a column or a field of a struct; NAME is the last part of its path.

    Python: HudiTable.for_path(PATH).alter_schema().rename_column(COLUMN, NAME).commit()
    """
    _commit(table.alter_schema().rename_column(column, name), "Rename the column?", confirmation, out)


@columns.command("drop")
@with_table
@_column
@with_confirmation
@with_output
def drop(table: pyhudi.HudiTable, *, out: Output, column: str, confirmation: Confirmation) -> None:
    """Drop a column or a field of a struct.

    Python: HudiTable.for_path(PATH).alter_schema().drop_column(COLUMN).commit()
    """
    _commit(table.alter_schema().drop_column(column), "Drop the column?", confirmation, out)


@columns.command("retype")
@with_table
@_column
@click.argument("data_type", metavar="TYPE")
@with_confirmation
@with_output
def retype(table: pyhudi.HudiTable, *, out: Output, column: str, data_type: str, confirmation: Confirmation) -> None:
    """Change a column to a wider type, such as int to bigint.

    Python: HudiTable.for_path(PATH).alter_schema().change_type(COLUMN, TYPE).commit()
    """
    _commit(table.alter_schema().change_type(column, data_type), "Change the type?", confirmation, out)


@columns.command("move")
@with_table
@_column
@_with_position
@with_confirmation
@with_output
def move(
    table: pyhudi.HudiTable,
    *,
    out: Output,
    column: str,
    first: bool,
    after: str | None,
    before: str | None,
    confirmation: Confirmation,
) -> None:
    """Move a column or a field to another position.

    Python: HudiTable.for_path(PATH).alter_schema().move_column(COLUMN, after=…).commit()
    """
    update = table.alter_schema().move_column(column, first=first, after=after, before=before)
    _commit(update, "Move the column?", confirmation, out)


def _commit(update: SchemaUpdate, question: str, confirmation: Confirmation, out: Output) -> None:
    """Show the columns after a change, ask, and commit it."""

    def show(plan_out: Output) -> bool:
        plan_out.rows(column_rows(update.preview()), _COLUMNS)
        return True

    if confirmation.ask(question, show, out):
        done = update.commit()
        text = f"changed by {done.instant}" if done.instant else "nothing to do: the table has these columns"
        print_result(done, out, "\n".join([text, *done.warnings]))
