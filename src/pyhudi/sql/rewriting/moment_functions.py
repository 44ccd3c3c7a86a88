"""Functions of the time at which a statement runs, which is one for all of its rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyhudi.sql.subquery_tokens import has_subquery
from pyhudi.sql.text_edits import TextEdit, with_edits
from pyhudi.sql.token_cursor import Cursor, NotUnderstoodError

MOMENTS: Mapping[str, str] = {
    "CURRENT_TIMESTAMP": "current_timestamp()",
    "NOW": "current_timestamp()",
    "CURRENT_DATE": "current_date()",
    "CURDATE": "current_date()",
    "LOCALTIMESTAMP": "localtimestamp()",
}
"""SQL of the functions by their names in upper case."""
_WITHOUT_PARENTHESES = frozenset({"CURRENT_TIMESTAMP", "CURRENT_DATE", "LOCALTIMESTAMP"})


def with_moment_columns(text: str, columns: Mapping[str, str], names: Collection[str]) -> str:
    """Return an expression with columns in place of the functions of the time.

    An expression with a subquery is returned as it is: a column would be one of another query there.

    Args:
        text: The expression.
        columns: Columns by the SQL of functions (`MOMENTS`).
        names: Lower-case names of the columns that the expression may have, which take precedence over functions
            without parentheses.
    """
    if not any(function in text.upper() for function in MOMENTS):
        return text
    try:
        cursor = Cursor(text)
    except NotUnderstoodError:
        return text
    if has_subquery(cursor.tokens):
        return text
    edits: list[TextEdit] = []
    while not cursor.done:
        at, word = cursor.at, cursor.word()
        cursor.at += 1
        if word not in MOMENTS or (at and cursor.tokens[at - 1].text == "."):
            continue
        called = cursor.take("(", ")")
        if called or (word in _WITHOUT_PARENTHESES and word.lower() not in names and cursor.word() not in ("(", ".")):
            edits.append(TextEdit.of_tokens(cursor.tokens[at], cursor.tokens[cursor.at - 1], columns[MOMENTS[word]]))
    return with_edits(text, edits)
