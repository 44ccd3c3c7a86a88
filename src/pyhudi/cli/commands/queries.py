"""``pyhudi scan``, ``changes`` and ``lookup``: rows of a table, without Spark."""

from __future__ import annotations

import click
import pyarrow as pa
from click import UsageError

import pyhudi
from pyhudi.cli.output import Output, OutputFormat
from pyhudi.cli.parameters import Names, with_limit, with_output, with_table
from pyhudi.cli.structure import Command

_columns = click.option("--columns", type=Names(), metavar="A,B", help="Only these columns, in this order.")
_meta = click.option("--meta", is_flag=True, help="Show the columns _hoodie_… in a table, too.")
_END = "Time of the end, inclusive; the latest instant if there is none."


@click.command("scan", cls=Command)
@with_table
@click.option("--where", metavar="CONDITION", help="Only rows that meet it, such as \"fare > 30 AND city = 'Oslo'\".")
@_columns
@click.option(
    "--as-of", metavar="TIME", help="Snapshot of this instant or time: 20261121094947775, '2026-11-21 09:49'."
)
@click.option("--begin", metavar="TIME", help="Rows written after this time (incremental query).")
@click.option("--end", metavar="TIME", help=_END)
@click.option("--read-optimized", is_flag=True, help="Base files alone, without log files.")
@click.option("--count", is_flag=True, help="Print the number of rows.")
@click.option("--explain", is_flag=True, help="Print which files would be read, and why the others are not.")
@_meta
@with_limit
@with_output
def scan(
    table: pyhudi.HudiTable,
    *,
    out: Output,
    where: str | None,
    columns: list[str] | None,
    as_of: str | None,
    begin: str | None,
    end: str | None,
    read_optimized: bool,
    count: bool,
    explain: bool,
    meta: bool,
    limit: int | None,
) -> None:
    """Print rows of a snapshot, or of a range of commits.

    JSON and CSV are written as they are read. A table leaves out the columns _hoodie_…, unless --meta or --columns
    name them.

    Python: HudiTable.for_path(PATH).scan("fare > 30", ["id"], as_of=…).to_batches()
    """
    query = table.scan(where, columns, as_of=as_of, begin=begin, end=end, read_optimized=read_optimized)
    if explain:
        click.echo(query.plan().explain())
    elif count:
        out.facts({"rows": query.count()})
    else:
        out.rows(_rows(query, out, hide=not meta and columns is None), limit=limit)


@click.command("changes", cls=Command)
@with_table
@click.option("--begin", metavar="TIME", default="earliest", show_default=True, help="Time of the start, exclusive.")
@click.option("--end", metavar="TIME", help=_END)
@with_limit
@with_output
def changes(table: pyhudi.HudiTable, *, out: Output, begin: str, end: str | None, limit: int | None) -> None:
    """Print inserted, updated and deleted records.

    Each comes with its images before and after (change data). The table must log changes (hoodie.table.cdc.enabled).

    Python: HudiTable.for_path(PATH).changes("earliest").to_batches()
    """
    out.rows(table.changes(begin, end).to_batches(), limit=limit, nothing="no changes")


@click.command("lookup", cls=Command)
@with_table
@click.argument("keys", nargs=-1, required=True, metavar="KEY…")
@click.option("--by", metavar="COLUMN", help="Look the values up in this column instead of the record key.")
@_columns
@_meta
@with_limit
@with_output
def lookup(
    table: pyhudi.HudiTable,
    *,
    out: Output,
    keys: tuple[str, ...],
    by: str | None,
    columns: list[str] | None,
    meta: bool,
    limit: int | None,
) -> None:
    """Print the rows with these record keys, found by indexes.

    Python: HudiTable.for_path(PATH).lookup(["7"])
    """
    rows = table.lookup(keys, columns) if by is None else table.lookup(_typed(table, by, keys), columns, by=by)
    hide = out.form is OutputFormat.TABLE and not meta and columns is None
    out.rows(rows.select(_shown(rows.schema)) if hide else rows, limit=limit)


def _rows(query: pyhudi.Scan, out: Output, *, hide: bool) -> pa.RecordBatchReader:
    """Return the rows of a scan; of a table for people, without the meta columns."""
    if out.form is not OutputFormat.TABLE or not hide:
        return query.to_batches()
    return query.select(*_shown(query.plan().output_schema)).to_batches()


def _typed(table: pyhudi.HudiTable, column: str, texts: tuple[str, ...]) -> list[object]:
    """Return values of a column from their texts.

    Raises:
        UsageError: A text is no value of the column.
    """
    schema = table.schema
    if column not in schema.names:
        return list(texts)  # the lookup says which columns there are
    data_type = schema.field(column).type
    try:
        return list(pa.array(texts, pa.string()).cast(data_type).to_pylist())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"the column {column} has the type {data_type}: {error}") from error


def _shown(schema: pa.Schema) -> list[str]:
    """Return the columns that a table for people has, unless it is asked for more."""
    return [name for name in schema.names if not name.startswith("_hoodie_")]
