"""Calls of Apache Hudi's table functions in queries."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.token_cursor import Cursor

TABLE_FUNCTIONS = frozenset(
    {"hudi_table_changes", "hudi_query_timeline", "hudi_metadata", "hudi_filesystem_view", "hudi_query"}
)
VECTOR_FUNCTIONS = frozenset({"hudi_vector_search", "hudi_vector_search_batch"})
"""Table functions whose arguments are expressions."""


@dataclass(frozen=True, slots=True)
class TableFunctionCall:
    """A call of a table function.

    Attributes:
        name: Name of the function, in lower case.
        start: Start in the text.
        end: End in the text.
        arguments: Values of the arguments, or their SQL (`VECTOR_FUNCTIONS`).
        alias_at: Position for an alias; None if the query has one.
    """

    name: str
    start: int
    end: int
    arguments: tuple[str, ...]
    alias_at: int | None


def table_function_calls(cursor: Cursor) -> list[TableFunctionCall]:
    """Return the calls of Hudi's table functions in a query.

    Raises:
        SqlSyntaxError: An argument is not a literal.
    """
    calls = []
    for at, token in enumerate(cursor.tokens[:-1]):
        if cursor.tokens[at + 1].text != "(":
            continue
        name = token.text.lower()
        if name in TABLE_FUNCTIONS or name in VECTOR_FUNCTIONS:
            cursor.at = at + 1
            values = _expressions(cursor) if name in VECTOR_FUNCTIONS else _arguments(token.text, cursor)
            kind = "" if cursor.done else cursor.tokens[cursor.at].kind
            end = cursor.tokens[cursor.at - 1].end + 1
            alias_at = None if kind in ("ALIAS", "VAR", "IDENTIFIER") else end
            calls.append(TableFunctionCall(name, token.start, end, values, alias_at))
    return calls


def _arguments(name: str, cursor: Cursor) -> tuple[str, ...]:
    values: list[str] = []
    cursor.expect("(")
    while not cursor.take(")"):
        if cursor.done:
            cursor.fail("')'")
        kind = cursor.tokens[cursor.at].kind
        if kind not in ("STRING", "NUMBER") and cursor.word() not in ("TRUE", "FALSE"):
            raise SqlSyntaxError(f"arguments of {name} must be literals, not {cursor.tokens[cursor.at].text!r}")
        values.append(cursor.literal())
        if not cursor.take(",") and not cursor.sees(")"):
            cursor.fail("',' or ')'")
    return tuple(values)


def _expressions(cursor: Cursor) -> tuple[str, ...]:
    """Return the SQL of arguments, with their names if they have some: ``k => 10``."""
    texts: list[str] = []
    cursor.expect("(")
    while not cursor.take(")"):
        text = cursor.until(",")
        if cursor.done or not text:
            cursor.fail("an argument or ')'")
        texts.append(text)
        if not cursor.take(",") and not cursor.sees(")"):
            cursor.fail("',' or ')'")
    return tuple(texts)
