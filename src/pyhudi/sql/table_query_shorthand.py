"""Queries in the short form: ``TABLE name`` is ``SELECT * FROM name``, which sqlglot does not know."""

from __future__ import annotations

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.token_cursor import NAME_KINDS, Cursor, NotUnderstoodError

_SETS = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS"})
_AFTER = (
    frozenset({")", ",", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "PARTITION", "LIMIT", "OFFSET", "WINDOW", "|>"})
    | _SETS
)


def expand_table_statements(query: str) -> str:
    """Return a query with SELECT in place of each ``TABLE name``; unchanged if it cannot be split into tokens.

    As the argument of a function, ``TABLE name`` and ``TABLE(name)`` become ``TABLE(SELECT * FROM name)``.
    """
    if "table" not in query.lower():
        return query
    try:
        cursor = Cursor(query)
    except NotUnderstoodError:
        return query
    text, copied = "", 0
    for at, token in enumerate(cursor.tokens):
        cursor.at = at
        if cursor.word() != "TABLE":
            continue
        argument = _is_argument(cursor)
        if not argument and not _begins_query(cursor):
            continue
        cursor.at = at + 1
        enclosed = argument and cursor.take("(")
        start = cursor.at
        try:
            cursor.name()
        except SqlSyntaxError:
            continue
        long = f"SELECT * FROM {cursor.slice(start, cursor.at)}"
        if enclosed and not cursor.take(")"):
            continue  # it is a query
        if not cursor.done and cursor.word() not in _AFTER:
            continue  # TABLE is the name of something here
        text += query[copied : token.start] + (f"TABLE({long})" if argument else long)
        copied = cursor.tokens[cursor.at - 1].end + 1
    return text + query[copied:]


def _begins_query(cursor: Cursor) -> bool:
    """Return True if a query can begin here."""
    before = cursor.word(-1) if cursor.at else "("
    if before in ("ALL", "DISTINCT"):
        return cursor.at > 1 and cursor.word(-2) in _SETS
    return before in ("(", ")") or before in _SETS


def _is_argument(cursor: Cursor) -> bool:
    """Return True if an argument of a function begins here: the first, a named one, or a later one in parentheses."""
    if not cursor.at:
        return False
    before = cursor.word(-1)
    is_positional = before == "(" or (before == "," and cursor.word(1) == "(")
    return before == "=>" or (is_positional and _in_call(cursor))


def _in_call(cursor: Cursor) -> bool:
    """Return True if the innermost parentheses around the next token are those of a function."""
    depth = 0
    for at in range(cursor.at - 1, 0, -1):
        kind = cursor.tokens[at].kind
        depth += (kind == "R_PAREN") - (kind == "L_PAREN")
        if depth < 0:
            return cursor.tokens[at - 1].kind in NAME_KINDS
    return False
