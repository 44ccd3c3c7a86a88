"""Calls of ``read_blob`` in a query, which Spark does not have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.sql_parser import syntax_tree
from pyhudi.sql.text_edits import TextEdit, with_edits
from pyhudi.sql.token_cursor import Cursor, NotUnderstoodError

READ_BLOB = "read_blob"


@dataclass(frozen=True, slots=True)
class _Call:
    start: int
    end: int
    argument: str


def with_blob_calls(query: str, replacement: Callable[[str], str]) -> str:
    """Return a query with other SQL in place of calls of ``read_blob``; as it is if there are none, or it cannot be
    split into tokens. Columns of the result are called as in the query, ``read_blob(b)``.

    Args:
        query: The text.
        replacement: Returns the SQL for a blob, which is given as SQL.

    Raises:
        SqlSyntaxError: A call does not have one argument.
    """
    if READ_BLOB not in query.lower():
        return query
    try:
        cursor = Cursor(query)
    except NotUnderstoodError:
        return query
    calls = _calls(cursor)
    named = _columns(query, calls) if calls else set()
    edits: list[TextEdit] = []
    for call in calls:
        alias = f" AS `{READ_BLOB}({call.argument.replace('`', '')})`" if call.start in named else ""
        edits.append(TextEdit(call.start, call.end, replacement(call.argument) + alias))
    return with_edits(query, edits)


def _calls(cursor: Cursor) -> list[_Call]:
    calls = []
    while not cursor.done:
        if cursor.word() != READ_BLOB.upper() or cursor.word(1) != "(" or (cursor.at and cursor.word(-1) == "."):
            cursor.at += 1
            continue
        start = cursor.at
        cursor.at += 1
        argument = cursor.parenthesized()
        calls.append(_Call(cursor.tokens[start].start, cursor.tokens[cursor.at - 1].end + 1, argument))
        inner = Cursor(argument)
        inner.until(",")
        nested = READ_BLOB in argument.lower() and with_blob_calls(argument, lambda _: "") != argument
        if not argument or not inner.done or nested:
            raise SqlSyntaxError(f"{READ_BLOB} takes one argument, a column of the type BLOB, not ({argument})")
    return calls


def _columns(query: str, calls: list[_Call]) -> set[int]:
    """Return the starts of the calls that are columns of a SELECT, without an alias."""
    tree = syntax_tree(query)
    if tree is None:
        return set()
    from sqlglot import exp

    nested: set[int] = set()
    for node in tree.find_all(exp.Anonymous):
        if node.name.lower() == READ_BLOB and isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
            nested |= {call.start for call in calls for at in _places(node) if call.start < at < call.end}
    return nested


def _places(node: Any) -> list[int]:
    from sqlglot import exp

    return [part.meta["start"] for part in node.find_all(exp.Identifier) if "start" in part.meta]
