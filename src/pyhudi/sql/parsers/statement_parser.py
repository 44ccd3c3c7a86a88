"""Parser of the statements that may concern Hudi tables; all others are left to Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.parsers.cache_parser import (
    parse_analyze,
    parse_cache,
    parse_clear,
    parse_load,
    parse_msck,
    parse_uncache,
)
from pyhudi.sql.parsers.call_parser import parse_call
from pyhudi.sql.parsers.common_table_expressions import CommonTableExpressions, parse_definitions
from pyhudi.sql.parsers.create_parser import parse_create, parse_replace
from pyhudi.sql.parsers.ddl_parser import (
    parse_alter,
    parse_comment,
    parse_drop,
    parse_execute,
    parse_refresh,
    parse_truncate,
    parse_variable,
)
from pyhudi.sql.parsers.dml_parser import parse_delete, parse_insert, parse_merge, parse_update
from pyhudi.sql.parsers.other_formats_parser import parse_of_other_format
from pyhudi.sql.parsers.show_parser import parse_describe, parse_show
from pyhudi.sql.scripts.script_parser import parse_script
from pyhudi.sql.statements import (
    CreateTable,
    Delete,
    ExplainChange,
    Insert,
    Merge,
    MultiInsert,
    Name,
    SelectStatement,
    Statement,
    UnsupportedStatement,
    Update,
)
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
    "EXECUTE": parse_execute,
    "CACHE": parse_cache,
    "UNCACHE": parse_uncache,
    "CLEAR": parse_clear,
    "MSCK": parse_msck,
    "REPAIR": parse_msck,
    "ANALYZE": parse_analyze,
    "LOAD": parse_load,
    "COMMENT": parse_comment,
    "DECLARE": parse_variable,
    "SET": parse_variable,
}


_HEADS = (
    "ALTER TABLE",
    "ALTER VIEW",
    "DROP VIEW IF EXISTS",
    "DROP VIEW",
    "MERGE WITH SCHEMA EVOLUTION INTO",
    "MERGE INTO",
    "INSERT WITH SCHEMA EVOLUTION INTO TABLE",
    "INSERT WITH SCHEMA EVOLUTION INTO",
    "INSERT WITH SCHEMA EVOLUTION OVERWRITE TABLE",
    "INSERT WITH SCHEMA EVOLUTION OVERWRITE",
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
    foreign = parse_of_other_format(cursor)
    if foreign is not None:
        return foreign
    parser = _PARSERS.get(first)
    return parse_script(cursor) if parser is None else parser(cursor)


def table_of(text: str) -> Name | None:
    """Return the table that a statement is about, also if `parse` does not support the rest of it; None if it is
    unknown, or if the statement is one that only Hudi has."""
    cursor = Cursor(text)
    if cursor.sees("WITH"):
        parse_definitions(cursor)
    try:
        return cursor.name() if any(cursor.take(*words.split()) for words in _HEADS) else None
    except SqlSyntaxError:
        return None


def _query(cursor: Cursor) -> Statement | None:
    start = cursor.at
    if cursor.sees("WITH"):
        change = _with_before_change(cursor)
        if change is not None:
            return change
        cursor.at = start
    elif cursor.sees("FROM"):
        inserts = _inserts_after_from(cursor)
        if inserts is not None:
            return inserts
        cursor.at = start
    if cursor.take("EXPLAIN"):
        for mode in ("EXTENDED", "CODEGEN", "COST", "FORMATTED"):
            cursor.take(mode)
        head = cursor.slice(start, cursor.at)
        return _explained(cursor.rest(), head)
    return SelectStatement(cursor.rest())


def _explained(text: str, head: str) -> Statement | None:
    """Return EXPLAIN of a query, or of a statement that changes a table; None for statements that Spark describes in
    one line."""
    try:
        inner = parse(text) if text else None
    except SqlSyntaxError:
        return SelectStatement(text, head)
    if isinstance(inner, SelectStatement):
        return SelectStatement(inner.query, f"{head} {inner.head}" if inner.head else head)
    if isinstance(inner, MultiInsert):
        inner = UnsupportedStatement(inner.names[0], "", "", text)
    if isinstance(inner, Insert | Update | Delete | Merge):
        return ExplainChange(inner.name, inner, head, text)
    if isinstance(inner, CreateTable | UnsupportedStatement):
        return UnsupportedStatement(inner.name, "EXPLAIN of this statement", "EXPLAIN the query", text, head)
    return None


def _inserts_after_from(cursor: Cursor) -> Statement | None:
    """Parse ``FROM … INSERT INTO …``: an INSERT whose query begins with FROM, or several; None for anything else."""
    cursor.until("INSERT")
    source = cursor.slice(0, cursor.at)
    inserts: list[tuple[str, Insert]] = []
    while cursor.sees("INSERT"):
        start = cursor.at
        cursor.at += 1
        cursor.until("INSERT")
        text = cursor.slice(start, cursor.at)
        insert = parse_insert(Cursor(text))
        if not isinstance(insert, Insert):
            return None
        inserts.append((text, insert))
    if not inserts:
        return None
    if len(inserts) == 1:
        insert = inserts[0][1]
        return replace(insert, query=f"{source} {insert.query}")
    names = tuple(insert.name for _, insert in inserts)
    return MultiInsert(names, source, tuple(text for text, _ in inserts))


def _with_before_change(cursor: Cursor) -> Statement | None:
    """Parse INSERT, UPDATE, DELETE or MERGE after WITH, or INSERT after WITH and FROM; None for anything else."""
    try:
        expressions = parse_definitions(cursor)
    except SqlSyntaxError:
        return None
    if cursor.sees("FROM"):
        return _inserts_after_from(cursor)
    if cursor.word() in ("UPDATE", "DELETE", "MERGE"):
        return _change_with(expressions, cursor.rest())
    if not cursor.sees("INSERT"):
        return None
    insert = parse_insert(cursor)
    if not isinstance(insert, Insert):
        return None
    has_own = insert.query.lstrip("( \t\r\n").upper().startswith("WITH")
    query = f"({insert.query})" if has_own else insert.query
    return replace(insert, query=f"{expressions.text} {query}")


def _change_with(expressions: CommonTableExpressions, text: str) -> Statement | None:
    """Parse UPDATE, DELETE or MERGE, with the definitions in its subqueries and its source.

    Raises:
        SqlSyntaxError: The statement changes what WITH defines.
    """
    statement = parse(expressions.in_subqueries(text))
    if isinstance(statement, Update | Delete | Merge) and len(statement.name) == 1:
        name = statement.name[0]
        if name.lower() in expressions.starts:
            raise SqlSyntaxError(
                f"WITH defines {name!r}, so that it is no table to {type(statement).__name__.upper()}: give the "
                "definition another name"
            )
    return replace(statement, source=expressions.as_source(statement)) if isinstance(statement, Merge) else statement
