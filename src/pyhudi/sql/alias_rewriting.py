"""Small changes of SQL texts."""

from __future__ import annotations

from pyhudi.sql.time_travel import parse_time_travel
from pyhudi.sql.token_cursor import Cursor, NotUnderstoodError


def unqualified(text: str, alias: str) -> str | None:
    """Return a condition on one table without the table's name or alias before its columns; None if it has a subquery
    or a lambda function, in which the name may have another meaning."""
    try:
        tokens = Cursor(text).tokens
    except NotUnderstoodError:
        return None
    if "->" in text or any(token.text.upper() == "SELECT" and token.kind != "STRING" for token in tokens):
        return None
    for at in range(len(tokens) - 2, -1, -1):
        here, dot = tokens[at], tokens[at + 1]
        inner = at > 0 and tokens[at - 1].text == "."
        if here.kind != "STRING" and here.text.lower() == alias.lower() and dot.text == "." and not inner:
            text = text[: here.start] + text[dot.end + 1 :]
    return text


def source_alias(source: str) -> str | None:
    """Return the name of a MERGE source, as written after USING; None if it has none."""
    cursor = Cursor(source)
    tokens = cursor.tokens
    if not tokens:
        return None
    if cursor.word() != "(":
        name = cursor.name()
        if parse_time_travel(cursor) != (None, None) and cursor.done:
            return name[-1]
    return None if tokens[-1].text == ")" else tokens[-1].text
