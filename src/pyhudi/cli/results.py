"""Plans and results of table services, printed for people and as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import pyarrow as pa

from pyhudi.cli.output import Output, OutputFormat
from pyhudi.report.row_table import ShownColumn

_TOTALS = ("num_files", "num_rows", "bytes_written", "num_log_files", "num_replaced")
"""Properties of results that are not fields."""


def print_plan(plan: object, rows: pa.Table, columns: Sequence[ShownColumn], out: Output) -> bool:
    """Print a plan: its summary and its rows.

    Args:
        plan: The plan; its ``repr`` begins with a summary, and says why there is nothing to do.
        rows: What is planned.
        columns: Columns of a table.
        out: Output.

    Returns:
        Whether there is anything to do.
    """
    text = repr(plan)
    out.line(text.splitlines()[0] if rows.num_rows else text)
    if rows.num_rows or out.form is not OutputFormat.TABLE:
        out.rows(rows, columns, limit=None if out.form is OutputFormat.TABLE else 0)
    return bool(rows.num_rows)


def print_affected(rows: pa.Table, columns: Sequence[ShownColumn], out: Output, nothing: str) -> bool:
    """Print what a command would change, and return whether there is anything. ``nothing``: text if there is not."""
    out.rows(rows, columns, nothing=nothing)
    return bool(rows.num_rows)


def print_plans(plans: Iterable[object], rows: pa.Table, columns: Sequence[ShownColumn], out: Output) -> None:
    """Print pending plans: as a table of the file slices of all of them, below a summary of each.

    Args:
        plans: The plans.
        rows: What is planned, with the instants of the plans.
        columns: Columns of a table.
        out: Output.
    """
    for plan in plans:
        out.line(repr(plan).splitlines()[0])
    out.rows(rows, columns, limit=None, nothing="nothing is pending")


def with_instants(plans: Iterable[tuple[str | None, pa.Table]]) -> pa.Table:
    """Return the rows of several plans as one table, with the instant of each first; an empty one without plans."""
    tables = [
        rows.add_column(0, "instant", pa.array([instant] * rows.num_rows, pa.string())) for instant, rows in plans
    ]
    return pa.concat_tables(tables) if tables else pa.table({"instant": pa.array([], pa.string())})


def print_result(result: Any, out: Output, text: str | None = None) -> None:
    """Print what a service has done.

    Args:
        result: The result, a dataclass.
        out: Output.
        text: Line for people; by default what the ``repr`` of the result says.
    """
    if out.form is OutputFormat.TABLE:
        out.line(_inside(repr(result)) if text is None else text)
    else:
        out.facts(facts_of(result))


def facts_of(result: Any) -> Mapping[str, object]:
    """Return the fields of a result that are no tables, and its totals."""
    stored = {field.name: getattr(result, field.name) for field in fields(result)}
    totals = {name: getattr(result, name) for name in _TOTALS if hasattr(result, name)}
    return {name: value for name, value in (stored | totals).items() if not isinstance(value, pa.Table)}


def _inside(text: str) -> str:
    """Return the text in the brackets of ``Result(…)``."""
    head, bracket, rest = text.partition("(")
    return rest.removesuffix(")") if bracket and head.isidentifier() else text
