"""The keyword DEFAULT in the query of an INSERT: columns of Hudi tables have no other default value than NULL."""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.parsers.common_table_expressions import parse_definitions
from pyhudi.sql.text_edits import TextEdit, with_edits
from pyhudi.sql.token_cursor import Cursor

_AFTER_ITEMS = ("FROM", "WHERE", "LATERAL", "WINDOW", "ORDER", "SORT", "LIMIT", "OFFSET")
_COMBINING = ("DISTINCT", "UNION", "EXCEPT", "MINUS", "INTERSECT", "GROUP", "HAVING", "CLUSTER", "DISTRIBUTE", "|>")
"""Words of queries in which Spark does not know DEFAULT."""


def with_null_values(query: str) -> str:
    """Return the query of an INSERT with NULL in place of DEFAULT as a value in VALUES: of the query itself, or of
    those that it selects from, also by the name of a common table expression."""
    definitions: dict[str, int] = {}
    cursor = _at_body(query, definitions)
    if cursor is None:
        return query
    while not cursor.sees("VALUES"):
        if cursor.sees("SELECT") or cursor.sees("FROM"):
            _advance(cursor, "FROM")
            if not cursor.take("FROM"):
                return query
        elif not cursor.take("TABLE"):
            start = _take_definition(cursor, definitions)
            if start is None:
                return query
            cursor.at = start
        _skip_parentheses(cursor)
    cursor.take("VALUES")
    return with_edits(query, _edits_of_rows(cursor))


def with_null_items(query: str) -> str:
    """Return the query of an INSERT with NULL in place of DEFAULT as a whole item of its select list. This is what it
    means if nothing that is selected from has a column of that name."""
    cursor = _at_body(query, {})
    if cursor is None or cursor.sees("VALUES"):
        return query
    _advance(cursor, "SELECT")
    if not cursor.take("SELECT"):
        return query
    start = cursor.at
    if _combines_rows(cursor):
        return query
    cursor.at = start
    cursor.take("ALL")
    return with_edits(query, _edits(cursor, *_AFTER_ITEMS))


def _take_definition(cursor: Cursor, definitions: dict[str, int]) -> int | None:
    """Return where the query of the common table expression at the cursor begins, and remove that from ``definitions``;
    None if there is none of that name, or it was taken before."""
    try:
        return definitions.pop(cursor.identifier().lower(), None)
    except SqlSyntaxError:
        return None


def _at_body(query: str, definitions: dict[str, int]) -> Cursor | None:
    """Return a cursor after the parentheses and each WITH before a query; None if the query has no DEFAULT, or is not
    understood. Adds the places where the queries of common table expressions begin, by name, to ``definitions``."""
    if "DEFAULT" not in query.upper():
        return None
    try:
        cursor = Cursor(query)
        _skip_parentheses(cursor)
        while cursor.sees("WITH"):  # a second one in the parentheses after the first
            definitions.update(parse_definitions(cursor).starts)
            _skip_parentheses(cursor)
    except SqlSyntaxError:
        return None
    return cursor


def _skip_parentheses(cursor: Cursor) -> None:
    while cursor.take("("):
        pass


def _advance(cursor: Cursor, *words: str) -> None:
    """Advance to one of some words, outside of parentheses, or to the end."""
    cursor.until(*words)
    while cursor.sees("FROM") and cursor.at and cursor.word(-1) == "DISTINCT":  # IS DISTINCT FROM
        cursor.at += 1
        cursor.until(*words)


def _edits_of_rows(cursor: Cursor) -> Iterator[TextEdit]:
    """Consume the rows of VALUES, which need no parentheses around a single value. Yield an edit of each DEFAULT."""
    while True:
        if cursor.take("("):
            yield from _edits(cursor)
            cursor.take(")")
        else:
            yield from _edits(cursor, ",")
        if not cursor.take(","):
            return


def _edits(cursor: Cursor, *ends: str) -> Iterator[TextEdit]:
    """Consume expressions up to one of some words. Yield an edit of each that is DEFAULT."""
    while True:
        start = cursor.at
        _advance(cursor, ",", *ends)
        if cursor.at == start + 1 and cursor.word(-1) == "DEFAULT":
            yield TextEdit.of_tokens(cursor.tokens[start], cursor.tokens[start], "NULL")
        if cursor.word() in ends or not cursor.take(","):
            return


def _combines_rows(cursor: Cursor) -> bool:
    """Return True if a query combines rows, beginning with its select list."""
    while not cursor.done:
        _advance(cursor, *_COMBINING)
        if cursor.word() in _COMBINING and cursor.word(1) != "FROM":
            return True
        cursor.at += 1
    return False
