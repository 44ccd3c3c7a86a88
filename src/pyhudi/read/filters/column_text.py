"""Conversion of conditions that are Columns to SQL text, as far as the printed form of a Column is unambiguous.

Spark prints ``(F.col("id") == 5) & (F.col("name") == "abc")`` as ``((id = 5) AND (name = abc))``. Literals have no
quotes, so a literal may look like a column, a number, or a longer condition. Hence each comparison must be enclosed
in its own parentheses and consist of one column and one word or number, separated by single blanks; text literals must
be words that Spark does not resolve as a name: of a column, an SQL variable, or a function that is called without
parentheses such as ``current_date``. Numeric literals must be whole numbers. Everything else (functions, casts, lists,
Spark Connect, whose Columns print differently) is not converted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa

_PRINTED = re.compile(r"Column<'(.*)'>", re.DOTALL)
_COMPARISON = re.compile(r"\(([^\W\d]\w*) (<=>|<=|>=|=|<|>) (-?\d+|[^\W\d]\w*)\)")
_CALLED = re.compile(r"(<=>|<=|>=|=|<|>)\(([^\W\d]\w*), (-?\d+|[^\W\d]\w*|'[^'\\]*')\)")
_CALLED_JOIN = re.compile(r"(and|or)\(")
_JOINED = re.compile(r" (AND|OR) ")
_WORDS = {"AND", "OR", "NOT", "IN", "IS", "NULL", "TRUE", "FALSE", "NAN", "INFINITY"}
IsName: TypeAlias = Callable[[str], bool]


def condition_text(condition: Any, schema: pa.Schema, is_name: IsName) -> str | None:
    """Return a condition as SQL text that is true for the same rows; None if the printed form is ambiguous,
    or nested too deep.

    Args:
        condition: A Column.
        schema: Columns of the filtered DataFrame.
        is_name: Returns true if Spark resolves a word as a name, so that it is not a text literal without quotes.
    """
    printed = _PRINTED.fullmatch(str(condition))
    if printed is None:
        return None
    try:
        parsed = _condition(printed[1], 0, schema, is_name)
    except RecursionError:  # a thousand conditions in a row
        return None
    return parsed[0] if parsed is not None and parsed[1] == len(printed[1]) else None


def _condition(text: str, at: int, schema: pa.Schema, is_name: IsName) -> tuple[str, int] | None:
    """Parse the condition that begins at an index; return its SQL text and the index after it."""
    comparison = _COMPARISON.match(text, at)
    if comparison is not None:
        name, sign, value = comparison.groups()
        literal = _literal(name, value, schema, is_name)
        return None if literal is None else (f"`{name}` {sign} {literal}", comparison.end())
    called = _CALLED.match(text, at)
    if called is not None:
        sign, name, value = called.groups()
        literal = _literal(name, value, schema, is_name)
        return None if literal is None else (f"`{name}` {sign} {literal}", called.end())
    join = _CALLED_JOIN.match(text, at)
    if join is not None:
        return _called_join(text, join, schema, is_name)
    left = _condition(text, at + 1, schema, is_name) if text.startswith("((", at) else None
    word = None if left is None else _JOINED.match(text, left[1])
    if left is None or word is None:
        return None
    right = _condition(text, word.end(), schema, is_name)
    if right is None or not text.startswith(")", right[1]):
        return None
    return f"(({left[0]}) {word[1]} ({right[0]}))", right[1] + 1


def _called_join(text: str, join: re.Match[str], schema: pa.Schema, is_name: IsName) -> tuple[str, int] | None:
    """Return the SQL text of ``and(…, …)`` or ``or(…, …)``."""
    left = _condition(text, join.end(), schema, is_name)
    if left is None or not text.startswith(", ", left[1]):
        return None
    right = _condition(text, left[1] + 2, schema, is_name)
    if right is None or not text.startswith(")", right[1]):
        return None
    return f"(({left[0]}) {join[1].upper()} ({right[0]}))", right[1] + 1


def _literal(name: str, value: str, schema: pa.Schema, is_name: IsName) -> str | None:
    """Return the SQL literal of a word that is compared with a column."""
    if name not in schema.names or value in schema.names:
        return None
    if value.startswith("'"):
        return value if pa.types.is_string(schema.field(name).type) and "${" not in value else None
    kind, is_word = schema.field(name).type, not value.lstrip("-").isdigit()
    if is_word and (value.lower() in {column.lower() for column in schema.names} or value.upper() in _WORDS):
        return None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return f"'{value}'" if is_word and not is_name(value) else None
    return value if pa.types.is_integer(kind) and not is_word else None
