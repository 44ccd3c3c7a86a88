"""Arrow tables with a readable display: aligned columns in a terminal, an HTML table in a notebook."""

from __future__ import annotations

import html
import shutil
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa

ROWS_SHOWN = 20
_ROWS_IN_A_PAGE = 50
_MOMENT = ["created", "ms"]
"""Words of the name of a column of epoch milliseconds."""
_WIDEST = 40
"""Maximum number of characters of one value in a terminal."""
_HEAD = 10
"""Target number of characters per line of a column name; longer words are not broken."""
_GAP = "  "
_BLOCKS = 3
"""Maximum number of blocks below each other that a terminal shows of a table."""


class ResultTable:
    """Information about a table (its instants, files, partitions) as an Arrow table with a readable display.

    Behaves like a ``pyarrow.Table``; methods that return a table return a ``ResultTable``. ``pa.table(x)`` and
    :meth:`to_arrow` return the Arrow table, for functions that require one. Polars, DuckDB and other libraries that
    accept Arrow data accept a ``ResultTable``.
    """

    __slots__ = ("_table",)

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def to_arrow(self) -> pa.Table:
        """Return the Arrow table."""
        return self._table

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_table":
            raise AttributeError(name)
        attribute = getattr(self._table, name)
        return _wrapped(attribute) if callable(attribute) else attribute

    def __getitem__(self, key: Any) -> Any:
        item = self._table[key]
        return ResultTable(item) if isinstance(item, pa.Table) else item

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __eq__(self, other: object) -> bool:
        return bool(self._table.equals(other._table if isinstance(other, ResultTable) else other))

    __hash__ = None  # type: ignore[assignment]  # as that of an Arrow table

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._table), "to_arrow"})

    def __reduce__(self) -> tuple[type[ResultTable], tuple[pa.Table]]:
        return (ResultTable, (self._table,))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __dataframe__(self, *args: Any, **kwargs: Any) -> Any:
        return self._table.__dataframe__(*args, **kwargs)

    def __repr__(self) -> str:
        return as_text(self._table, shutil.get_terminal_size((120, ROWS_SHOWN)).columns)

    def _repr_html_(self) -> str:
        return as_html(self._table)


def as_text(table: pa.Table, width: int) -> str:
    """Return a table as lines of at most ``width`` characters. Columns without values are omitted. Columns that do not
    fit follow in further blocks, each with the first column; if even these do not fit, they are listed below."""
    shown = table.slice(0, ROWS_SHOWN)
    names = {name: _head(name) for name in _filled(table)}
    heads = max(map(len, names.values()), default=1)
    columns = [_column([""] * (heads - len(head)) + head, shown[name]) for name, head in names.items()]
    blocks = _blocks(columns, width)
    hidden = len(columns) - sum(map(len, blocks)) + max(len(blocks) - 1, 0)
    lines = [line for block in blocks for line in (*_lines(block, heads), "")]
    return "\n".join([*lines[:-1], _footer(table, shown.num_rows, _filled(table)[len(columns) - hidden :])])


def _blocks(columns: list[list[str]], width: int) -> list[list[list[str]]]:
    """Return the columns by block; all blocks begin with the first column."""
    blocks = [columns[:1]] if columns else []
    for column in columns[1:]:
        if _width([*blocks[-1], column]) <= width:
            blocks[-1].append(column)
        elif _width([columns[0], column]) <= width and len(blocks) < _BLOCKS:
            blocks.append([columns[0], column])
        else:
            break
    return blocks


def _width(columns: list[list[str]]) -> int:
    return sum(len(column[0]) for column in columns) + len(_GAP) * (len(columns) - 1)


def _lines(columns: list[list[str]], heads: int) -> list[str]:
    lines = [_GAP.join(cells).rstrip() for cells in zip(*columns, strict=True)]
    while heads > 1 and not lines[0]:  # names of other blocks have more lines
        lines, heads = lines[1:], heads - 1
    lines.insert(heads, _GAP.join("─" * len(cells[0]) for cells in columns))
    return lines


def as_html(table: pa.Table) -> str:
    """Return a table as HTML, without columns that have no values."""
    shown, names = table.slice(0, _ROWS_IN_A_PAGE), _filled(table)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_text(row[name]))}</td>" for name in names) + "</tr>"
        for row in shown.select(names).to_pylist()
    )
    note = html.escape(_footer(table, shown.num_rows, []))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{note}</p>"


def _wrapped(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        plain = [a.to_arrow() if isinstance(a, ResultTable) else a for a in args]
        value = method(*plain, **{k: v.to_arrow() if isinstance(v, ResultTable) else v for k, v in kwargs.items()})
        return ResultTable(value) if isinstance(value, pa.Table) else value

    call.__name__, call.__doc__ = getattr(method, "__name__", "call"), method.__doc__
    return call


def _filled(table: pa.Table) -> list[str]:
    """Return the columns that have a value; all of a table without rows."""
    return [n for n in table.column_names if not table.num_rows or table[n].null_count < table.num_rows]


def _head(name: str) -> list[str]:
    """Return the name of a column in lines, broken at underscores, so that numeric columns are not wider than their
    values."""
    lines: list[str] = []
    for word in name.split("_"):
        if lines and len(lines[-1]) + 1 + len(word) <= _HEAD:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _column(head: list[str], values: pa.ChunkedArray) -> list[str]:
    """Return the cells of a column, its name first, padded to the same width."""
    moments = " ".join(head).split() == _MOMENT
    texts = [*head, *(_cut(_moment(value) if moments else _text(value)) for value in values.to_pylist())]
    width = max(map(len, texts))
    numbers = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    return [text.rjust(width) if numbers else text.ljust(width) for text in texts]


def _moment(millis: int | None) -> str:
    """Return epoch milliseconds as local time."""
    return "" if millis is None else datetime.fromtimestamp(millis / 1000).isoformat(" ", "seconds")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    return " ".join(str(value).splitlines())


def _cut(text: str) -> str:
    """Shorten a text by removing its middle, because file names differ at both ends."""
    half = (_WIDEST - 1) // 2
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1 - half]}…{text[-half:]}"


def _footer(table: pa.Table, shown: int, omitted: list[str]) -> str:
    rows = f"{table.num_rows:,} row{'' if table.num_rows == 1 else 's'}"
    if shown < table.num_rows:
        rows += f", of which the first {shown} are shown"
    return f"({rows})" if not omitted else f"({rows}; more columns: {', '.join(omitted)})"
