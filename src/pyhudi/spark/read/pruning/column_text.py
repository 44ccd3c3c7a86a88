"""Conditions that are Columns, as SQL text, as far as what Spark prints of a Column tells without doubt.

Spark prints ``(F.col("id") == 5) & (F.col("name") == "abc")`` as ``((id = 5) AND (name = abc))``: texts have no
quotes, so that a literal may look like a column, a number, or a longer condition. Hence every comparison must stand
alone in its parentheses and have one column and one word or number, with single blanks between; texts must be words
that are no columns, and numbers are compared with whole numbers only. Of anything else (functions, casts, lists, Spark
Connect, whose Columns print otherwise) nothing is told.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

_PRINTED = re.compile(r"Column<'(.*)'>", re.DOTALL)
_COMPARISON = re.compile(r"\(([^\W\d]\w*) (<=>|<=|>=|=|<|>) (-?\d+|[^\W\d]\w*)\)")
_CALLED = re.compile(r"(<=>|<=|>=|=|<|>)\(([^\W\d]\w*), (-?\d+|[^\W\d]\w*|'[^'\\]*')\)")
_CALLED_JOIN = re.compile(r"(and|or)\(")
_JOINED = re.compile(r" (AND|OR) ")
_WORDS = {"AND", "OR", "NOT", "IN", "IS", "NULL", "TRUE", "FALSE"}


def condition_text(condition: Any, schema: pa.Schema) -> str | None:
    """Return a condition as SQL text that is true for the same rows; None if that cannot be told.

    Args:
        condition: A Column.
        schema: Columns of the DataFrame that it is about.
    """
    printed = _PRINTED.fullmatch(str(condition))
    if printed is None:
        return None
    found = _condition(printed[1], 0, schema)
    return found[0] if found is not None and found[1] == len(printed[1]) else None


def _condition(text: str, at: int, schema: pa.Schema) -> tuple[str, int] | None:
    """The condition that begins at a place, and where it ends."""
    comparison = _COMPARISON.match(text, at)
    if comparison is not None:
        name, sign, value = comparison.groups()
        literal = _literal(name, value, schema)
        return None if literal is None else (f"`{name}` {sign} {literal}", comparison.end())
    called = _CALLED.match(text, at)
    if called is not None:
        sign, name, value = called.groups()
        literal = _literal(name, value, schema)
        return None if literal is None else (f"`{name}` {sign} {literal}", called.end())
    join = _CALLED_JOIN.match(text, at)
    if join is not None:
        return _called_join(text, join, schema)
    left = _condition(text, at + 1, schema) if text.startswith("((", at) else None
    word = None if left is None else _JOINED.match(text, left[1])
    if left is None or word is None:
        return None
    right = _condition(text, word.end(), schema)
    if right is None or not text.startswith(")", right[1]):
        return None
    return f"(({left[0]}) {word[1]} ({right[0]}))", right[1] + 1


def _called_join(text: str, join: re.Match[str], schema: pa.Schema) -> tuple[str, int] | None:
    """``and(…, …)`` or ``or(…, …)``."""
    left = _condition(text, join.end(), schema)
    if left is None or not text.startswith(", ", left[1]):
        return None
    right = _condition(text, left[1] + 2, schema)
    if right is None or not text.startswith(")", right[1]):
        return None
    return f"(({left[0]}) {join[1].upper()} ({right[0]}))", right[1] + 1


def _literal(name: str, value: str, schema: pa.Schema) -> str | None:
    """The literal that a word is when it is compared with a column."""
    if name not in schema.names or value in schema.names:
        return None
    if value.startswith("'"):
        return value if pa.types.is_string(schema.field(name).type) and "${" not in value else None
    kind, is_word = schema.field(name).type, not value.lstrip("-").isdigit()
    if is_word and (value.lower() in {column.lower() for column in schema.names} or value.upper() in _WORDS):
        return None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return f"'{value}'" if is_word else None
    return value if pa.types.is_integer(kind) and not is_word else None
