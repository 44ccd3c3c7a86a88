"""Scripts of Spark 4 (``BEGIN … END``), as the statements, queries and expressions in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

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
        if cursor.word(1) == ":" and cursor.word(2) in _LABELLED:  # a label, and no parameter
            cursor.at += 2
        else:
            yield from _PARSERS.get(cursor.word(), _statement)(cursor)


def _statement(cursor: Cursor) -> Iterator[str]:
    """Yield a statement, which takes the rest of the text."""
    yield cursor.rest()


def _keyword(cursor: Cursor) -> Iterator[str]:
    """Skip a word with no query in it."""
    cursor.at += 1
    return iter(())


def _without_query(cursor: Cursor) -> Iterator[str]:
    """Skip a statement with no query in it."""
    cursor.rest()
    return iter(())


def _block(cursor: Cursor) -> Iterator[str]:
    cursor.expect("BEGIN")
    cursor.take("NOT", "ATOMIC")
    return _parts(cursor.rest())  # sqlglot keeps the rest of some statements after BEGIN as one token


def _condition(cursor: Cursor) -> Iterator[str]:
    """Yield the query of a condition."""
    word = cursor.word()
    end = _ENDS_OF_CONDITIONS[word]
    cursor.at += 1
    yield _query_of(cursor.until(end))
    cursor.take(end)
    if word == "UNTIL":
        cursor.rest()


def _case(cursor: Cursor) -> Iterator[str]:
    cursor.expect("CASE")
    yield _query_of(cursor.until("WHEN"))


def _for(cursor: Cursor) -> Iterator[str]:
    cursor.expect("FOR")
    if cursor.word(1) == "AS":
        cursor.at += 2
    yield cursor.until("DO")
    cursor.take("DO")


def _assignment(cursor: Cursor) -> Iterator[str]:
    """Yield an assignment as a statement of the session."""
    if cursor.word(1) in ("VAR", "VARIABLE"):
        yield cursor.rest()
    else:
        cursor.expect("SET")
        yield f"SET VARIABLE {cursor.rest()}"


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


_PARSERS: Mapping[str, Callable[[Cursor], Iterator[str]]] = {
    "BEGIN": _block,
    "CASE": _case,
    "DECLARE": _declaration,
    "FOR": _for,
    "SET": _assignment,
    **dict.fromkeys(("LOOP", "REPEAT", "ELSE"), _keyword),
    **dict.fromkeys(_ENDS_OF_CONDITIONS, _condition),
    **dict.fromkeys(_WITHOUT_QUERIES, _without_query),
}
"""Parsers of the parts of a script, by their first word; anything else is a statement."""
