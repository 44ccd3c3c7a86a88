"""Scripts of Spark 4 (``BEGIN … END``), as the statements, queries and expressions in them."""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.scripts.script_nodes import Script
from pyhudi.sql.scripts.script_tree_parser import parse_tree, query_of_cursor
from pyhudi.sql.token_cursor import Cursor, NotUnderstoodError

_ENDS_OF_CONDITIONS = {"IF": "THEN", "ELSEIF": "THEN", "WHEN": "THEN", "WHILE": "DO", "UNTIL": "END"}
_STATEMENTS = (
    *("BEGIN", "SET", "IF", "CASE", "WHILE", "FOR", "LOOP", "REPEAT", "SIGNAL", "RESIGNAL", "LEAVE", "ITERATE"),
    *("SELECT", "WITH", "VALUES", "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "REPLACE", "DROP", "ALTER"),
    *("TRUNCATE", "CALL", "EXECUTE", "CACHE", "UNCACHE", "REFRESH", "COMMENT", "ANALYZE", "DECLARE", "MSCK"),
)
"""Words that begin the statement of a handler."""
_LABELLED = frozenset({"BEGIN", "WHILE", "FOR", "LOOP", "REPEAT"})
_WITHOUT_QUERIES = frozenset({"END", "LEAVE", "ITERATE", "OPEN", "FETCH", "CLOSE", "SIGNAL", "RESIGNAL", "GET"})


def parse_script(cursor: Cursor) -> Script | None:
    """Parse a script; None for anything else."""
    if not (cursor.sees("BEGIN") or (cursor.word(1), cursor.word(2)) == (":", "BEGIN")):
        return None
    parts = tuple(part for piece in _pieces(cursor) for part in _parts(piece) if part)
    cursor.at = 0
    try:
        return Script(parts, parse_tree(cursor))
    except SqlSyntaxError:
        return Script(parts)


def _pieces(cursor: Cursor) -> Iterator[str]:
    """Yield the texts between semicolons."""
    start = cursor.at
    while not cursor.done:
        if cursor.kind() == "SEMICOLON":
            yield cursor.slice(start, cursor.at)
            start = cursor.at + 1
        cursor.at += 1
    yield cursor.slice(start, cursor.at)


def _parts(text: str) -> Iterator[str]:
    """Yield the statements, and the queries of the conditions before them, of a text without semicolons; none of one
    that cannot be split into tokens."""
    try:
        cursor = Cursor(text)
    except NotUnderstoodError:
        return
    while not cursor.done:
        word = cursor.word()
        if cursor.word(1) == ":" and cursor.word(2) in _LABELLED:  # a label, and no parameter
            cursor.at += 2
        elif cursor.take("BEGIN"):
            cursor.take("NOT", "ATOMIC")
            yield from _parts(cursor.rest())  # sqlglot keeps the rest of some statements after BEGIN as one token
        elif word in ("LOOP", "REPEAT", "ELSE"):
            cursor.at += 1
        elif word in _ENDS_OF_CONDITIONS:
            cursor.at += 1
            yield _query_of(cursor.until(_ENDS_OF_CONDITIONS[word]))
            cursor.take(_ENDS_OF_CONDITIONS[word])
            if word == "UNTIL":
                return
        elif cursor.take("CASE"):
            yield _query_of(cursor.until("WHEN"))
        elif cursor.take("FOR"):
            if cursor.word(1) == "AS":
                cursor.at += 2
            yield cursor.until("DO")
            cursor.take("DO")
        elif word in _WITHOUT_QUERIES:
            return
        elif word == "DECLARE":
            yield from _declaration(cursor)
        elif word == "SET" and cursor.word(1) not in ("VAR", "VARIABLE"):
            cursor.at += 1
            yield f"SET VARIABLE {cursor.rest()}"
        else:
            yield cursor.rest()


def _query_of(expression: str) -> str:
    return f"SELECT {expression}" if expression else ""


def _declaration(cursor: Cursor) -> Iterator[str]:
    """Yield the query of a variable or cursor; of a handler none, as its statement comes next."""
    start = cursor.at
    while not cursor.done and cursor.word() not in ("HANDLER", "CURSOR"):
        cursor.at += 1
    if cursor.done:
        yield cursor.slice(start, cursor.at)
    elif cursor.take("CURSOR"):
        cursor.take("FOR")
        yield query_of_cursor(cursor, cursor.at, len(cursor.tokens))
        cursor.at = len(cursor.tokens)
    else:
        cursor.take("HANDLER", "FOR")
        while not cursor.done and cursor.word() not in _STATEMENTS:
            cursor.at += 1
