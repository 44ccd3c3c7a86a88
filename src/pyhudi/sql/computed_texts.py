"""Names in the text literals of scripts that compute the statements they execute."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.parsers.statement_parser import parse
from pyhudi.sql.scripts.script_nodes import Script
from pyhudi.sql.statements import ExecuteImmediate, Name
from pyhudi.sql.token_cursor import Cursor, literal_text

_NAME_PARTS = ("VAR", "IDENTIFIER")
_MAX_PARTS = 3


def names_in_computed_texts(script: Script) -> tuple[Name, ...]:
    """Return the names in the text literals of a script that executes computed texts (``EXECUTE IMMEDIATE``): those of
    tables that it may use. None of a script whose texts are literals.

    Args:
        script: The script, with values in place of its parameters.
    """
    if not any(map(_executes_computed_text, script.parts)):
        return ()
    literals = {literal for part in script.parts for literal in _text_literals(part)}
    return tuple(dict.fromkeys(name for literal in sorted(literals) for name in _names(literal)))


def _executes_computed_text(part: str) -> bool:
    try:
        statement = parse(part)
    except SqlSyntaxError:
        return False
    return isinstance(statement, ExecuteImmediate) and literal_text(statement.text) is None


def _text_literals(part: str) -> Iterator[str]:
    return (token.text for token in _cursor(part).tokens if token.kind == "STRING")


def _names(text: str) -> Iterator[Name]:
    """Return the identifiers of a text, which may be a part of a statement, with the dots between them."""
    cursor = _cursor(text)
    while not cursor.done:
        if cursor.kind() not in _NAME_PARTS:
            cursor.at += 1
            continue
        parts = [cursor.identifier()]
        while cursor.sees(".") and cursor.kind(1):
            parts.append(cursor.tokens[cursor.at + 1].text)
            cursor.at += 2
        if len(parts) <= _MAX_PARTS:
            yield tuple(parts)


def _cursor(text: str) -> Cursor:
    try:
        return Cursor(text)
    except SqlSyntaxError:  # a quote that a later part closes
        return Cursor(re.split("['\"`]", text, maxsplit=1)[0])
