"""SQL texts as Columns."""

from __future__ import annotations

import pytest

from pyhudi.spark import column_names
from pyhudi.spark.column_names import expression


@pytest.mark.parametrize(
    "text",
    [
        "id > 0",
        "id > 0 AND",
        "id IN (SELECT id FROM s) -- or (",
        "v = ')' /* ) */ OR `a)` = \")\" OR v = 'it\\'s )' OR v = r'\\'",
        "exists(a, x -> x BETWEEN 1 AND 2)\nAND CASE WHEN a IS NOT NULL THEN true END",
        "(SELECT max(id) FROM s) = id",
        "from = 1 AND",
        "values.a > 1",
        "table <=> 'a'",
        "selected",
        "map(1, 2)[1] = 2",
    ],
)
def test_expressions_are_in_parentheses(monkeypatch, text):
    """In them Spark takes no word for an alias."""
    monkeypatch.setattr(column_names.F, "expr", str)
    assert expression(text) == f"({text}\n)"


@pytest.mark.parametrize(
    "text",
    [
        "n = 1) OR (n > 0",
        "n IN (1)) OR (n > 0",
        "(n = 1",
        "SELECT max(id) FROM s",
        "/* all */ select 1",
        "-- all\nWITH s AS (SELECT 1) SELECT * FROM s",
        "VALUES (1)",
        "TABLE `s`",
        "FROM s",
    ],
)
def test_what_parentheses_would_make_valid_is_refused_as_it_is(monkeypatch, text):
    monkeypatch.setattr(column_names.F, "expr", str)
    assert expression(text) == text
