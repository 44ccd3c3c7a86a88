"""Rows in a terminal."""

from __future__ import annotations

import io

import pyarrow as pa
from rich.console import Console

from pyhudi.report.row_table import (
    ShownColumn,
    cell_text,
    count_column,
    print_facts,
    print_rows,
    size_column,
    text_column,
    time_column,
)

INSTANT = "20261121094947775"


def printed(rows: pa.Table, columns: list[ShownColumn] | None = None, width: int = 80) -> list[str]:
    out = io.StringIO()
    print_rows(rows, Console(file=out, width=width, highlight=False), columns)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_columns() -> None:
    rows = pa.table({"instant": [INSTANT], "n": [1234], "size": [2048], "tags": [["a", "b"]]})
    columns = [
        text_column("instant", is_whole=True),
        time_column("instant", "time"),
        count_column("n", "rows"),
        size_column("size"),
        text_column("tags", min_width=100),
    ]
    head, _, row = printed(rows, columns)
    assert head.split() == ["instant", "time", "rows", "size"]
    assert row.split() == [INSTANT, "2026-11-21", "09:49:47", "1,234", "2.0", "KiB"]
    assert printed(rows, columns, 100)[0].endswith("tags")


def test_all_columns_of_rows() -> None:
    rows = pa.table({"id": [1, 22], "name": ["[bold]x", None], "flag": [True, None]})
    assert printed(rows)[2:] == [" 1  [bold]x  true", "22  null     null"]


def test_rows_that_do_not_fit_are_blocks() -> None:
    rows = pa.table({f"column{n}": ["x" * 12, "y" * 12] for n in range(8)})
    lines = printed(rows, width=60)
    assert lines[0].startswith("row 1 ")
    assert lines[1] == f"column0  {'x' * 12}"
    assert len(lines) == 18
    assert all(len(line) <= 60 for line in lines)


def test_long_values_are_shortened() -> None:
    assert len(cell_text("x" * 1000)) == 199
    assert printed(pa.table({"a": ["x\ny"]}))[-1] == "x y"


def test_facts() -> None:
    out = io.StringIO()
    print_facts([("name", "trips"), ("path", "[s3]")], Console(file=out, width=80, highlight=False))
    assert [line.rstrip() for line in out.getvalue().splitlines()] == ["name  trips", "path  [s3]"]
