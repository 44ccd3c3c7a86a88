"""Texts as SQL."""

from __future__ import annotations


def string_literal(text: str) -> str:
    """Return a text as one literal, as clauses such as COMMENT and TBLPROPERTIES take it. Spark replaces variables
    (``${…}``) in it, unless ``spark.sql.variable.substitute`` is false."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def string_expression(text: str) -> str:
    """Return a text as an expression in which Spark replaces no variables: it does not find them in two literals that
    it puts together."""
    return string_literal(text).replace("${", "$' '{")
