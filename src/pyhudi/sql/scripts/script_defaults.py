"""Default values of the variables of a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.text_edits import TextEdit, with_edits
from pyhudi.sql.token_cursor import Cursor


def with_default_values(text: str, default: Callable[[Sequence[str]], str | None]) -> str:
    """Return the text after SET with the default values of variables in place of DEFAULT. Spark evaluates them when SET
    is run, by the names that are in scope then.

    Args:
        text: The assignments.
        default: Returns the default value of a variable by its name; None: it is unknown.

    >>> with_default_values("a = 1, l.b = DEFAULT", lambda name: f"{name[-1]} + 1")
    'a = 1, l.b = (b + 1)'
    """
    if "DEFAULT" not in text.upper():
        return text
    cursor, edits = Cursor(text), []
    try:
        while not cursor.done:
            name = cursor.name()
            cursor.expect("=")
            token = cursor.tokens[cursor.at] if cursor.sees("DEFAULT") else None
            whole = cursor.until(",").upper() == "DEFAULT"
            value = default(name) if whole else None
            if token is not None and value is not None:
                edits.append(TextEdit.of_tokens(token, token, f"({value})"))
            cursor.take(",")
    except SqlSyntaxError:  # several variables get the row of a query
        return text
    return with_edits(text, edits)


def default_value(clauses: str) -> str:
    """Return the default value of a variable.

    Args:
        clauses: Its type and default value, as in DECLARE.

    >>> default_value("INT DEFAULT a + 1"), default_value("STRING")
    ('a + 1', 'NULL')
    """
    cursor = Cursor(clauses)
    cursor.until("=", "DEFAULT")
    if cursor.done:
        return "NULL"
    cursor.at += 1
    return cursor.rest()
