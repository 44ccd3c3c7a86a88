"""Statements that show or describe tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyhudi.sql.parsers.dml_parser import parse_partition
from pyhudi.sql.statements import Describe, Show, ShowTableExtended, ShowViews, Statement
from pyhudi.sql.token_cursor import NAME_KINDS, Cursor


def parse_show(cursor: Cursor) -> Statement | None:
    """Parse SHOW of one table, SHOW VIEWS and SHOW TABLE EXTENDED."""
    cursor.expect("SHOW")
    if cursor.take("VIEWS"):
        return ShowViews()
    if cursor.take("TABLE", "EXTENDED"):
        return _show_table_extended(cursor)
    for words, parse in _SHOWN.items():
        if cursor.take(*words):
            return cursor.finished(parse(cursor))
    return None


def _show_partitions(cursor: Cursor) -> Show:
    name = cursor.name()
    partition = parse_partition(cursor) if cursor.take("PARTITION") else {}
    return Show(name, "PARTITIONS", partition=partition)


def _show_create_table(cursor: Cursor) -> Show:
    name = cursor.name()
    cursor.take("AS", "SERDE")
    return Show(name, "CREATE TABLE")


def _show_properties(cursor: Cursor) -> Show:
    name = cursor.name()
    key = None
    if cursor.take("("):
        key = cursor.key()
        cursor.expect(")")
    return Show(name, "TBLPROPERTIES", key)


def _show_indexes(cursor: Cursor) -> Show:
    if not cursor.take("FROM"):
        cursor.expect("IN")
    if cursor.kind(1) in NAME_KINDS:
        cursor.take("TABLE")
    return Show(cursor.name(), "INDEXES")


_SHOWN: Mapping[tuple[str, ...], Callable[[Cursor], Show]] = {
    ("PARTITIONS",): _show_partitions,
    ("CREATE", "TABLE"): _show_create_table,
    ("TBLPROPERTIES",): _show_properties,
    ("INDEXES",): _show_indexes,
}
"""Parsers of the text after the words of what is shown."""


def _show_table_extended(cursor: Cursor) -> ShowTableExtended:
    database = cursor.name() if cursor.take("FROM") or cursor.take("IN") else None
    cursor.take("LIKE")
    pattern = cursor.string() if cursor.kind() == "STRING" else ""
    partition = parse_partition(cursor) if cursor.take("PARTITION") else {}
    return ShowTableExtended(database, pattern, partition)


def parse_describe(cursor: Cursor) -> Describe | None:
    """Parse DESCRIBE of a table; None for other objects."""
    cursor.at += 1
    if cursor.word() in ("DATABASE", "SCHEMA", "NAMESPACE", "FUNCTION", "CATALOG", "QUERY", "SELECT", "WITH", "DETAIL"):
        return None
    cursor.take("TABLE")
    extended = cursor.take("EXTENDED") or cursor.take("FORMATTED")
    if cursor.done or cursor.word() in ("(", "SELECT", "VALUES", "FROM"):
        return None
    name = cursor.name()
    if cursor.done:
        return Describe(name, extended)
    if extended and cursor.take("AS", "JSON"):
        return Describe(name, extended, as_json=True) if cursor.done else None
    if cursor.sees("PARTITION", "("):
        cursor.take("PARTITION")
        partition = parse_partition(cursor)
        return Describe(name, extended, partition=partition) if cursor.done else None
    column = ".".join(cursor.name())
    return Describe(name, extended, column) if cursor.done else None
