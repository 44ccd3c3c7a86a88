"""Parser of the statements that may concern Hudi tables; all others are left to Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.create_parser import parse_create, parse_replace
from pyhudi.sql.ddl_parser import (
    parse_alter,
    parse_call,
    parse_describe,
    parse_drop,
    parse_refresh,
    parse_show,
    parse_truncate,
)
from pyhudi.sql.dml_parser import parse_delete, parse_insert, parse_merge, parse_update
from pyhudi.sql.statements import Insert, Name, SelectStatement, Statement
from pyhudi.sql.token_cursor import Cursor, NotUnderstoodError

_QUERIES = frozenset({"SELECT", "WITH", "FROM", "TABLE", "VALUES", "(", "EXPLAIN", "MAP", "REDUCE"})
_PARSERS: dict[str, Callable[[Cursor], Statement | None]] = {
    "CREATE": parse_create,
    "REPLACE": parse_replace,
    "INSERT": parse_insert,
    "UPDATE": parse_update,
    "DELETE": parse_delete,
    "MERGE": parse_merge,
    "ALTER": parse_alter,
    "TRUNCATE": parse_truncate,
    "DROP": parse_drop,
    "SHOW": parse_show,
    "DESCRIBE": parse_describe,
    "DESC": parse_describe,
    "REFRESH": parse_refresh,
    "CALL": parse_call,
}


_HEADS = (
    "ALTER TABLE",
    "ALTER VIEW",
    "DROP VIEW IF EXISTS",
    "DROP VIEW",
    "MERGE WITH SCHEMA EVOLUTION INTO",
    "MERGE INTO",
    "INSERT INTO TABLE",
    "INSERT INTO",
    "INSERT OVERWRITE TABLE",
    "INSERT OVERWRITE",
    "UPDATE",
    "DELETE FROM",
    "TRUNCATE TABLE",
    "DROP TABLE IF EXISTS",
    "DROP TABLE",
    "SHOW PARTITIONS",
    "SHOW CREATE TABLE",
    "SHOW TBLPROPERTIES",
)
"""Words before the name of a table."""


def parse(text: str) -> Statement | None:
    """Parse a statement.

    Returns:
        The statement; None if it does not concern Hudi tables, or is not supported, so that Spark executes it.

    Raises:
        SqlSyntaxError: A statement that may concern a Hudi table (`table_of`), or that only Hudi has (CALL, CREATE
            INDEX, …), is invalid.
    """
    try:
        cursor = Cursor(text)
    except NotUnderstoodError:
        return None
    first = cursor.word()
    if first in _QUERIES:
        return _query(cursor)
    parser = _PARSERS.get(first)
    return None if parser is None else parser(cursor)


def table_of(text: str) -> Name | None:
    """Return the table that a statement is about, also if `parse` does not support the rest of it; None if it is
    unknown, or if the statement is one that only Hudi has."""
    cursor = Cursor(text)
    if cursor.sees("WITH"):
        _definitions(cursor)
    try:
        return cursor.name() if any(cursor.take(*words.split()) for words in _HEADS) else None
    except SqlSyntaxError:
        return None


def _query(cursor: Cursor) -> Statement | None:
    start = cursor.at
    if cursor.sees("WITH"):
        found = _with_before_insert(cursor)
        if found is not None:
            return found
        cursor.at = start
    if cursor.take("EXPLAIN"):
        for mode in ("EXTENDED", "CODEGEN", "COST", "FORMATTED"):
            cursor.take(mode)
    head = cursor.slice(start, cursor.at)
    return SelectStatement(cursor.rest(), head)


def _with_before_insert(cursor: Cursor) -> Insert | None:
    """Parse ``WITH … INSERT INTO …``: an INSERT whose query begins with the definitions; None for anything else."""
    try:
        _definitions(cursor)
    except SqlSyntaxError:
        return None
    definitions = cursor.slice(0, cursor.at)
    if not cursor.sees("INSERT"):
        return None
    found = parse_insert(cursor)
    if not isinstance(found, Insert):
        return None
    has_own = found.query.lstrip("( \t\r\n").upper().startswith("WITH")
    query = f"SELECT * FROM ({found.query})" if has_own else found.query
    return replace(found, query=f"{definitions} {query}")


def _definitions(cursor: Cursor) -> None:
    """Consume WITH and what it defines."""
    cursor.expect("WITH")
    cursor.take("RECURSIVE")
    while True:
        cursor.identifier()
        if cursor.sees("("):
            content = cursor.at
            cursor.parenthesized()
            if cursor.done or cursor.word() in (",", "INSERT"):
                cursor.at = content  # AS was left out: these are no names of columns
        if cursor.take("MAX", "RECURSION", "LEVEL"):
            cursor.at += 1
        cursor.take("AS")
        cursor.parenthesized()
        if not cursor.take(","):
            return
