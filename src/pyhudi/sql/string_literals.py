"""Texts as SQL."""

from __future__ import annotations


def string_literal(text: str) -> str:
    """Return a text as one literal, as clauses such as COMMENT and TBLPROPERTIES take it. Spark replaces variables
    (``${…}``) in it, unless ``spark.sql.variable.substitute`` is false."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def string_expression(text: str, *, escapes: bool = True) -> str:
    """Return a text as an expression in which Spark replaces no variables: it does not find them in two literals that
    it puts together.

    Args:
        text: The text.
        escapes: Backslashes in literals are escapes, unless ``spark.sql.parser.escapedStringLiterals`` is set.
    """
    if not escapes and any(sign in text for sign in "\\'\n"):
        return f"CAST(X'{text.encode().hex()}' AS STRING)"
    return string_literal(text).replace("${", "$' '{")
