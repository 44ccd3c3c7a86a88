"""Rows and facts in a terminal: aligned columns, or one block of lines per row where these do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.report.number_text import bytes_text, count_text, instant_text
from pyhudi.report.row_formats import cell_texts

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

LONGEST_CELL = 200
"""Maximum number of characters of a value; the middle of a longer one is omitted."""
_GAP = 2


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """Column of a printed table.

    Attributes:
        title: Its header.
        text: Returns the cell of a row, which has the values by the names of the columns.
        is_number: Whether it is aligned to the right.
        min_width: Width of the terminal, in characters, from which it is shown.
        is_whole: Whether its cells are never broken into lines, as those of numbers.
    """

    title: str
    text: Callable[[Mapping[str, Any]], str]
    is_number: bool = False
    min_width: int = 0
    is_whole: bool = False


def text_column(name: str, title: str | None = None, *, min_width: int = 0, is_whole: bool = False) -> ShownColumn:
    """Return a column of values as texts."""
    return ShownColumn(title or name, lambda row: cell_text(row[name]), False, min_width, is_whole)


def count_column(name: str, title: str | None = None, *, min_width: int = 0) -> ShownColumn:
    """Return a column of numbers: ``1,234``."""
    return ShownColumn(title or name, lambda row: count_text(row[name]), True, min_width)


def size_column(name: str, title: str | None = None) -> ShownColumn:
    """Return a column of numbers of bytes: ``1.2 MiB``."""
    return ShownColumn(title or name, lambda row: bytes_text(row[name]), True)


def time_column(name: str, title: str | None, *, min_width: int = 0) -> ShownColumn:
    """Return a column of instants as times: ``2026-11-21 09:49:47``."""
    return ShownColumn(title or name, lambda row: instant_text(row[name] or ""), False, min_width, True)


def print_rows(rows: pa.Table, console: Console, columns: Sequence[ShownColumn] | None) -> None:
    """Print rows as a table; if it is wider than the terminal, each row as a block of lines ``column  value``.

    Args:
        rows: The rows, all of which are printed.
        console: Console of ``rich``.
        columns: The columns to print; None for all, with nulls as ``null``.
    """
    shown = _all_columns(rows.schema) if columns is None else [c for c in columns if c.min_width <= console.width]
    if not shown:
        return
    values = (_as_texts(rows) if columns is None else rows).to_pylist()
    cells = [[column.text(row) for column in shown] for row in values]
    widths = [max(_width(column.title), *(_width(row[i]) for row in cells), 0) for i, column in enumerate(shown)]
    if columns is None and sum(widths) + _GAP * (len(widths) - 1) > console.width:
        _print_blocks(shown, cells, console)
    else:
        console.print(_aligned(shown, cells))


def print_facts(facts: Iterable[tuple[str, str]], console: Console) -> None:
    """Print names and values, one per line."""
    from rich.table import Table

    grid = Table.grid(padding=(0, _GAP))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(_plain(name), _plain(value))
    console.print(grid)


def cell_text(value: object) -> str:
    """Return a value as one line of text; None is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(cell_text, value))
    return _shortened(" ".join(str(value).splitlines()))


def _all_columns(schema: pa.Schema) -> list[ShownColumn]:
    return [_column_of(field) for field in schema]


def _column_of(field: pa.Field) -> ShownColumn:
    data_type = field.type
    is_number = pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type)

    def text(row: Mapping[str, Any]) -> str:
        return "null" if row[field.name] is None else cell_text(row[field.name])

    return ShownColumn(field.name, text, is_number)


def _as_texts(rows: pa.Table) -> pa.Table:
    columns = [pa.chunked_array([cell_texts(chunk) for chunk in c.chunks], pa.string()) for c in rows.columns]
    return pa.table(columns, names=rows.column_names)


def _aligned(columns: Sequence[ShownColumn], cells: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            _plain(column.title),
            justify="right" if column.is_number else "left",
            no_wrap=column.is_number or column.is_whole,
            overflow="fold",
        )
    for row in cells:
        table.add_row(*map(_plain, row))
    return table


def _print_blocks(columns: Sequence[ShownColumn], cells: Sequence[Sequence[str]], console: Console) -> None:
    for number, row in enumerate(cells, 1):
        console.rule(f"row {number}", align="left", style="dim")
        print_facts(zip((column.title for column in columns), row, strict=True), console)


def _shortened(text: str) -> str:
    half = (LONGEST_CELL - 1) // 2
    return text if len(text) <= LONGEST_CELL else f"{text[:half]}…{text[-half:]}"


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _plain(text: str) -> Text:
    """Return a text in which rich sees no markup."""
    from rich.text import Text

    return Text(text)
