"""Texts as SQL."""

from __future__ import annotations

from pyhudi.sql.string_literals import string_expression, string_literal


def test_one_literal() -> None:
    assert string_literal("it's a \\ and ${x}\n") == "'it\\'s a \\\\ and ${x}\\n'"


def test_variables_are_not_found_in_an_expression() -> None:
    assert string_expression("${x}, ${y}'s") == "'$' '{x}, $' '{y}\\'s'"
    assert string_expression("$x {y}") == "'$x {y}'"


def test_texts_where_backslashes_are_no_escapes() -> None:
    assert string_expression("$x {y}", escapes=False) == "'$x {y}'"
    for text in ("it's", "a\\", "x\ny"):
        assert string_expression(text, escapes=False) == f"CAST(X'{text.encode().hex()}' AS STRING)"
