"""Instants of a table, looked up by their requested times."""

from __future__ import annotations

import pyarrow as pa

import pyhudi
from pyhudi.cli.columns import instant_facts, rows_where
from pyhudi.cli.output import Output
from pyhudi.errors import InstantNotFoundError


def print_instants(
    table: pyhudi.HudiTable, history: pa.Table, instant: str, out: Output, *, noun: str, listed_by: str
) -> None:
    """Print all that is known of the instants with a requested time.

    Args:
        table: The table.
        history: Rows of its history to look in.
        instant: The requested time.
        out: Output.
        noun: What such rows are called.
        listed_by: Command that lists them.

    Raises:
        InstantNotFoundError: There are none.
    """
    rows = rows_where(history, requested=instant).to_pylist()
    if not rows:
        raise InstantNotFoundError(f"{table.path} has no {noun} {instant!r}; `{listed_by}` shows those that it has")
    for row in rows:
        out.facts(row, instant_facts(row))
