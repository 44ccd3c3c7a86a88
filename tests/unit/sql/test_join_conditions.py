"""Conditions of MERGE that compare columns."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlglot")

from pyhudi.sql.join_conditions import equalities, equated_columns


@pytest.mark.parametrize(
    ("on", "columns"),
    [
        ("t.id = s.id", {"id"}),
        ("s.ID = T.id and (t.`day` = s.day)", {"id", "day"}),
        ("t.id = s.id and t.x = 1", None),
        ("t.id = s.key", None),
        ("t.id = s.id or t.a = s.a", None),
        ("t.id = t.id", None),
        ("id = s.id", None),
        ("t.id <=> s.id", None),
        ("t.s.id = s.s.id", None),
        ("t.id = = s", None),
    ],
)
def test_equated_columns(on, columns):
    assert equated_columns(on, "t") == columns


@pytest.mark.parametrize(
    ("on", "pairs"),
    [
        ("t.id = s.id and s.Key = T.number", {("id", "id"), ("number", "key")}),
        ("t.id = s.key and t.id = s.id", {("id", "key"), ("id", "id")}),
        ("t.id = s.id and s.x > 1", None),
        ("t.id = s.id + 1", None),
        ("s.id = s.key", None),
    ],
)
def test_equalities(on, pairs):
    assert equalities(on, "t") == pairs
