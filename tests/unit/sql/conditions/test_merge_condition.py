"""Conditions of MERGE that compare columns."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlglot")

from pyhudi.sql.conditions.merge_condition import (
    MergeSides,
    equalities,
    equality_text,
    equated_columns,
    value_of_source,
)

SIDES = MergeSides.from_columns("T", ["id", "day", "number", "Payload"], ["ID", "day", "key", "After", "s2"], "s")


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
    assert equated_columns(on, SIDES) == columns


@pytest.mark.parametrize(
    ("on", "pairs"),
    [
        ("t.id = s.id and s.Key = T.number", {("id", "id"), ("number", "key")}),
        ("t.id = s.key and t.id = s.id", {("id", "key"), ("id", "id")}),
        ("t.id = s.id and s.x > 1", None),
        ("t.id = s.id + 1", None),
        ("s.id = s.key", None),
        ("t.id = other.id", {("id", "id")}),  # fails when Spark resolves it
        ("t.id = after.id", None),  # fields of structs, which may have the names of columns
        ("t.id = Payload.id", None),
        ("t.id = s.after", {("id", "after")}),
        ("t.id = s.unknown", None),
        ("t.unknown = s.id", None),
    ],
)
def test_equalities(on, pairs):
    assert equalities(on, SIDES) == pairs


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("s.Key", "`key`"),
        ("`s`.`day`", "`day`"),
        ("round(s.key, 2)", "round(s.key, 2)"),
        ("null", "null"),
        ("t.day", None),
        ("day", None),  # of either side
        ("s.day + t.number", None),
        ("s.after.day", None),  # a field
        ("s.unknown", None),
        ("(SELECT max(s.day) FROM s)", None),
        ("s.day +", None),
        ("if(s.day = 1, s.day, " * 200 + "null" + ")" * 200, None),  # too deep for sqlglot
    ],
)
def test_values_of_the_source(text, value):
    assert value_of_source(text, SIDES, inserts=False) == value


@pytest.mark.parametrize(
    ("text", "updated", "inserted"),
    [
        ("KEY", "`key`", "`key`"),
        ("after is null", "after is null", "after is null"),
        ("day", None, "`day`"),  # in an insert the table has no row
        ("number", None, None),
        ("unknown", None, None),
    ],
)
def test_names_without_qualifier(text, updated, inserted):
    assert value_of_source(text, SIDES, inserts=False) == updated
    assert value_of_source(text, SIDES, inserts=True) == inserted


def test_names_that_the_source_has_twice():
    """As a join of tables has, whose columns only their qualifiers tell apart."""
    joined = MergeSides.from_columns("t", ["id"], ["id", "fare", "Fare"])
    found = [value_of_source(text, joined, inserts=True) for text in ("a.id", "a.fare", "b.fare")]
    assert found == ["`id`", None, None]
    assert equalities("t.id = a.fare", joined) is None


def test_the_name_of_the_source_comes_before_its_columns():
    named = MergeSides.from_columns("t", ["id"], ["id", "event"], "event")
    assert equalities("t.id = event.id", named) == equalities("`t`.`id` = `event`.`id`", named) == {("id", "id")}
    assert equalities("t.id = event.id", MergeSides.from_columns("t", ["id"], ["id", "event"])) is None
    assert equalities("t.id = s.id", MergeSides.from_columns("t", ["id"], ["id", "event"])) == {("id", "id")}


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        ("=(t.id, s.id)", "`t`.`id` = `s`.`id`"),
        ("=(t.größe, s.select)", "`t`.`größe` = `s`.`select`"),
        (
            "and(=(t.id, s.id), and(=(t.a, s.b), =(s.c, t.c)))",
            "`t`.`id` = `s`.`id` AND `t`.`a` = `s`.`b` AND `s`.`c` = `t`.`c`",
        ),
        ("t.id = s.id AND t.a = s.a", "t.id = s.id AND t.a = s.a"),
        ("=(t.id, 's.id')", None),  # a text
        ("(t.id = s.id)", None),  # Spark 3.5, where it may be one
        ("==(t.id, s.id)", None),  # Spark Connect, likewise
        ("or(=(t.id, s.id), =(t.a, s.a))", None),
        ("and(=(t.id, s.id), >(t.a, 1))", None),
        ("<=>(t.id, s.id)", None),
        ("and(true, =(t.id, s.id))", None),
        ("=(id, s.id)", None),
        ("=(db.t.id, s.id)", None),
        ("!(=(t.id, s.id))", None),
    ],
)
def test_columns_that_equate_columns_as_spark_4_prints_them(printed, text):
    assert equality_text(f"Column<'{printed}'>") == text
