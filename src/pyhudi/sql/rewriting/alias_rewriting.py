"""Aliases of the target and the source of UPDATE, DELETE and MERGE: found, and left out of expressions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pyhudi.sql.statements import Name
from pyhudi.sql.subquery_tokens import has_subquery
from pyhudi.sql.text_edits import TextEdit, with_edits
from pyhudi.sql.time_travel_clause import parse_time_travel
from pyhudi.sql.token_cursor import Cursor, NotUnderstoodError, Token


def unqualified(text: str, alias: str) -> str | None:
    """Return a condition on one table without the table's name or alias before its columns; None if it has a subquery
    or a lambda function, in which the name may have another meaning."""
    try:
        tokens = Cursor(text).tokens
    except NotUnderstoodError:
        return None
    if "->" in text or has_subquery(tokens):
        return None
    edits = []
    for at, (here, dot) in enumerate(pairwise(tokens)):
        inner = at > 0 and tokens[at - 1].text == "."
        if here.kind != "STRING" and here.text.lower() == alias.lower() and dot.text == "." and not inner:
            edits.append(TextEdit.of_tokens(here, dot, ""))
    return with_edits(text, edits)


def with_short_qualifiers(text: str, name: Name, alias: str | None = None) -> str:
    """Return a text with a table's last name alone where columns are qualified by its full name.

    Args:
        text: SQL.
        name: The parts of the full name; qualifiers may leave out the first ones.
        alias: Takes the place of the last name.

    Returns:
        The text; unchanged if an alias of a subquery in it, or a table of another database, has the last name.
    """
    try:
        tokens = Cursor(text).tokens
    except NotUnderstoodError:
        return text
    if _has_another(tokens, name):
        return text
    edits = []
    for at in range(len(tokens)):
        if at and tokens[at - 1].text == ".":
            continue
        for length in range(len(name), 1, -1):
            words = [part for one in name[-length:] for part in (one.lower(), ".")]
            name_tokens = tokens[at : at + len(words)]
            if [token.text.lower() for token in name_tokens if token.kind != "STRING"] == words:
                start, last, dot = name_tokens[0].start, name_tokens[-2].start, name_tokens[-1].start
                edits.append(TextEdit(start, last, "") if alias is None else TextEdit(start, dot, alias))
                break
    return with_edits(text, edits)


def _has_another(tokens: Sequence[Token], name: Name) -> bool:
    """Return True if a name that does not qualify columns is the last part of a table's name without being its full
    name."""
    parts = [part.lower() for part in name]
    for at, token in enumerate(tokens):
        qualifies = at + 1 < len(tokens) and tokens[at + 1].text == "."
        if token.kind == "STRING" or token.text.lower() != parts[-1] or qualifies:
            continue
        before = [one.text.lower() for one in tokens[max(0, at - 2 * len(parts)) : at]]
        qualified = [parts[-1]]
        while len(before) > 1 and before[-1] == ".":
            qualified.insert(0, before[-2])
            before = before[:-2]
        if len(qualified) < 2 or qualified != parts[-len(qualified) :]:
            return True
    return False


def source_name(source: str) -> Name | None:
    """Return the name of the table that is a MERGE source, as written after USING; None if it has an alias, or is a
    query."""
    cursor = Cursor(source)
    if not cursor.tokens or cursor.word() == "(":
        return None
    name = cursor.name()
    parse_time_travel(cursor)
    return name if cursor.done else None


def source_alias(source: str) -> str | None:
    """Return the name of a MERGE source, as written after USING; None if it has none."""
    cursor = Cursor(source)
    tokens = cursor.tokens
    if not tokens:
        return None
    if cursor.word() != "(":
        name = cursor.name()
        if parse_time_travel(cursor) is not None and cursor.done:
            return name[-1]
    return None if tokens[-1].text == ")" else tokens[-1].text
