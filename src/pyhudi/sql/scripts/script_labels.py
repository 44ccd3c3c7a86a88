"""Names of variables with the label of their block (``label.variable``) in statements of scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pyhudi.sql.text_edits import TextEdit, with_edits
from pyhudi.sql.token_cursor import NAME_KINDS, Cursor, NotUnderstoodError, Token


def with_variables(text: str, find: Callable[[str, str], str | None]) -> str:
    """Return a statement with other names in place of variables with labels.

    A label that is also a table, alias or column of the statement is left alone: columns come first.

    Args:
        text: The statement.
        find: Returns the other name for a label and a name; None if there is no such variable.

    >>> with_variables("SELECT l.x + x, t.x FROM t", lambda label, name: "v" if label == "l" else None)
    'SELECT v + x, t.x FROM t'
    """
    try:
        tokens = Cursor(text).tokens
    except NotUnderstoodError:
        return text
    names = list(_names(tokens))
    alone = {
        tokens[start].text.lower() for start, end in names if end == start + 1 and tokens[start].kind in NAME_KINDS
    }
    edits: list[TextEdit] = []
    for start, end in names:
        if end - start < 3 or tokens[start].text.lower() in alone:
            continue
        found = find(tokens[start].text, tokens[start + 2].text)
        if found is not None:
            edits.append(TextEdit.of_tokens(tokens[start], tokens[start + 2], found))
    return with_edits(text, edits)


def _names(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield start and end of the names, words and values with dots between them."""
    start = 0
    while start < len(tokens):
        end = start + 1
        while tokens[start].kind != "STRING" and end + 1 < len(tokens) and tokens[end].kind == "DOT":
            end += 2
        yield start, end
        start = end
