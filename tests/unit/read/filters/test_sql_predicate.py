"""What follows from SQL conditions for the files that can be left out."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.metadata.indexes.expression_index_definition import Expression
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.filters.sql_predicate import equivalent_conditions, implied_predicate
from pyhudi.read.filters.terms import Term

SCHEMA = pa.schema(
    [
        ("a", pa.int32()),
        ("b", pa.string()),
        ("d", pa.float64()),
        ("m", pa.decimal128(12, 2)),
        ("n", pa.decimal128(38, 4)),
        ("day", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("flag", pa.bool_()),
        ("x", pa.struct([("y", pa.int64()), ("Z", pa.string())])),
        ("q.r", pa.int64()),
        ("q", pa.struct([("r", pa.int64())])),
        ("between", pa.int64()),
    ]
)

FOLLOWS: dict[str, list[list[tuple[str, str, Any]]]] = {
    "a > 3": [[("a", ">", 3)]],
    "A >= -3 and `b` = 'x'": [[("a", ">=", -3), ("b", "=", "x")]],
    "3 < a": [[("a", ">", 3)]],
    "a = (-3) and ((a)) in ((1), (-2)) or (b) = (')')": [[("a", "=", -3), ("a", "in", (1, -2))], [("b", "=", ")")]],
    "a = 1 or a = 2 and b <> 'y'": [[("a", "=", 1)], [("a", "=", 2), ("b", "!=", "y")]],
    "(a = 1 or a = 2) and b != 'y'": [[("a", "=", 1), ("b", "!=", "y")], [("a", "=", 2), ("b", "!=", "y")]],
    "not (a > 3 or b = 'x')": [[("a", "<=", 3), ("b", "!=", "x")]],
    "not (a > 3 and b = 'x')": [[("a", "<=", 3)], [("b", "!=", "x")]],
    "a between 2 and 5 and d < 1.5": [[("a", ">=", 2), ("a", "<=", 5), ("d", "<", 1.5)]],
    "a not between 2 and 5": [[("a", "<", 2)], [("a", ">", 5)]],
    "a in (1, 2, null)": [[("a", "in", (1, 2))]],
    "a not in (1, 2)": [[("a", "not in", (1, 2))]],
    "b like 'p%'": [[("b", ">=", "p"), ("b", "<", "q")]],
    "b like 'p_r'": [[("b", ">=", "p"), ("b", "<", "q")]],
    "b like 'pr'": [[("b", "=", "pr")]],
    "b not like 'pr'": [[("b", "!=", "pr")]],
    "b is null": [[("b", "=", None)]],
    "b is not null": [[("b", "!=", None)]],
    "not b is null": [[("b", "!=", None)]],
    "a <=> 3": [[("a", "=", 3)]],
    "flag": [[("flag", "=", True)]],
    "not flag and flag = false": [[("flag", "!=", True), ("flag", "=", False)]],
    "x.Y = 4 and x.z = 'w'": [[("x.y", "=", 4), ("x.Z", "=", "w")]],
    "day >= date '2024-01-31'": [[("day", ">=", dt.date(2024, 1, 31))]],
    "m = 1.50": [[("m", "=", Decimal("1.50"))]],
    "a > 2.5 and a < 7.5": [[("a", ">", 2), ("a", "<", 8)]],
    "d > 0.1F": [[("d", ">", 0.10000000149011612)]],
    "n <= -1234567890123456789012345678901234.5678": [
        [("n", "<=", Decimal("-1234567890123456789012345678901234.5678"))]
    ],
    "a > 3L and d = 1e3": [[("a", ">", 3), ("d", "=", 1000.0)]],
    # of what is not understood nothing follows, of what is beside it something does
    "year(t) = 2024 and a > 3": [[("a", ">", 3)]],
    "a > 3 and (length(b) > 2 or case_of(b, 'and (') = 1)": [[("a", ">", 3)]],
    "a + 1 > 3 and a > 3": [[("a", ">", 3)]],
    "(a) + (1) > 3 and a = -(3) and a > (3)": [[("a", ">", 3)]],
    "t > '2024-01-01' and a > 3": [[("a", ">", 3)]],
    "a > 3 and b rlike 'x' and b like '%x'": [[("a", ">", 3)]],
    "`between` = 3": [[("between", "=", 3)]],
}


@pytest.mark.parametrize("text", FOLLOWS)
def test_what_follows(text: str):
    expected = tuple(tuple(Term(*term) for term in group) for group in FOLLOWS[text])
    assert implied_predicate(text, SCHEMA) == expected
    RowFilter(anyof=expected).arrow(SCHEMA)


NOTHING = (
    "",
    "true",
    "a > 3 or length(b) > 2",
    "not (a > 3 and length(b) > 2)",
    "a = '3'",  # Spark casts
    "a = '3.5'",
    "a = 1e0",
    "b = 3",
    "d = 'NaN'",
    "m = 1.555",
    "t > '2024-01-01'",  # in the time zone of the session
    "t > timestamp '2024-01-01 00:00:00'",
    "t > date '2024-01-01'",
    "day > '2024-01-01'",
    "day > date '2024-13-01'",
    "flag = 'true'",
    "flag = 1",
    "b = 'it''s'",
    "b = 'a' 'b'",
    r"b = 'a\'b'",
    r"b like 'a\_b%'",
    'b = "x"',  # a column, by a setting
    "b like '%x'",
    "b like 'p%' escape '/'",
    "b like any ('p%')",
    "b not like 'p%'",
    "b ilike 'p%'",
    "not (a <=> 3)",
    "a in (1, b)",
    "a in (select 1)",
    "a not in (null)",
    "a = null",
    "a is distinct from 3",
    "flag is true",
    "a = b",
    "a = 3 = true",
    "a = 3 -- and b = 'x'\n or true",
    "a = 3 /* x */",
    "case when a = 3 then true else false end",
    "q.r = 3",
    "nothing = 3",
    "x.nothing = 3",
    "x['y'] = 3",
    "a::string = 'x'",
    "a = 3 and (b = 'x'",
    "a = 3)",
    "a >",
    "and a = 3",
    "a between 3",
    "a = 99999999999999999999",
    "a < 12345678901234567890123456789012.5",
    "a > 99999999999999999999.5",
    "a < 1e30BD",
    "a < 1e-30BD",  # Spark may round it
    "b = '${x}'",  # a setting of the session
    "a = 3 and ${c}",
)


@pytest.mark.parametrize("text", NOTHING)
def test_nothing_follows(text: str):
    assert implied_predicate(text, SCHEMA) is None


NOT_ALL = (
    "b like 'p_r'",
    "n <= -1234567890123456789012345678901234.5678 and n + 1 < 0",
    "year(t) = 2024 and a > 3",
    "a > 3 and (length(b) > 2 or case_of(b, 'and (') = 1)",
    "a + 1 > 3 and a > 3",
    "(a) + (1) > 3 and a = -(3) and a > (3)",
    "t > '2024-01-01' and a > 3",
    "a > 3 and b rlike 'x' and b like '%x'",
)


@pytest.mark.parametrize("text", [text for text in FOLLOWS if text not in NOT_ALL])
def test_what_is_understood_whole(text: str):
    assert equivalent_conditions(text, SCHEMA) == implied_predicate(text, SCHEMA)


@pytest.mark.parametrize("text", [*NOTHING, *NOT_ALL, "not a in (1, null)", "not (a > 3 and length(b) > 2)"])
def test_what_is_not_understood_whole(text: str):
    assert equivalent_conditions(text, SCHEMA) is None


ON_NUMBERS = ["a = 1", "a > 1", "a <= 1.5", "a in (0, 2)", "a not in (1, 2)", "a is null", "a <=> null", "a <=> 1"]
ON_OTHERS = ["b = 'x'", "b like 'x%'", "b <> 'xy'", "b is not null", "d > 0.5", "d <> 1", "flag", "not flag"]
WORDS = st.sampled_from([*ON_NUMBERS, *ON_OTHERS, "a between 1 and 2"])
TEXTS = st.recursive(
    WORDS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda one: f"not ({one})"),
    ),
    max_leaves=5,
)
VALUES = {
    "a": pa.array([None, 0, 1, 2], pa.int32()),
    "b": pa.array([None, "x", "xy", "y"]),
    "d": pa.array([None, 0.5, 1.0, float("nan")]),
    "flag": pa.array([None, True, False, True]),
}


@given(TEXTS)
def test_rows_of_what_is_understood_whole(text: str):
    """As another engine that knows SQL finds them."""
    picks = list(itertools.product(range(4), repeat=len(VALUES)))
    table = pa.table(
        {name: column.take(pa.array([p[i] for p in picks])) for i, (name, column) in enumerate(VALUES.items())}
    )
    table = table.append_column("row", pa.array(range(table.num_rows)))
    groups = equivalent_conditions(text, table.schema)
    if groups is None:
        assert re.search("not.*(like|<=>)", text)
        return
    mine = table.filter(RowFilter(anyof=groups).arrow(table.schema))["row"].to_pylist()
    there = text.replace("<=>", "IS NOT DISTINCT FROM")
    found = duckdb.from_arrow(table).filter(there).project("row").fetchall()
    assert mine == sorted(row for (row,) in found)


def test_texts_that_have_no_text_behind_them():
    assert implied_predicate("b like '\uffff%'", SCHEMA) == ((Term("b", ">=", "\uffff"),),)


def test_conditions_of_many_parts():
    one = " and ".join(f"(a = {n} or b = 'x{n}')" for n in range(12))
    groups = implied_predicate(one, SCHEMA)
    assert groups is not None
    assert len(groups) <= 64
    assert implied_predicate(" or ".join(f"a = {n}" for n in range(100)), SCHEMA) is None


EXPRESSIONS = {
    "year": [("t", {})],
    "from_unixtime": [("a", {"format": "yyyy-MM-dd"}), ("a", {})],
    "lower": [("b", {})],
    "trim": [("b", {})],
    "ltrim": [("b", {"trimString": "x"})],
    "substring": [("b", {"pos": "1", "len": "3"})],
    "regexp_extract": [("b", {"pattern": "a(b)", "idx": "1"})],
    "date_add": [("day", {"days": "-3"})],
}
KNOWN = {
    (one := Expression.from_options(function, column, options)): one.type_of(SCHEMA.field(column).type)
    for function, found in EXPRESSIONS.items()
    for column, options in found
}


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("year(T) = 2020", [[("year(t)", "=", 2020)]]),
        ("2020 < YEAR(`t`) and a > 3", [[("year(t)", ">", 2020), ("a", ">", 3)]]),
        ("not year(t) <= 2019", [[("year(t)", ">", 2019)]]),
        (
            "year(t) between 2019 and 2020 or lower(b) = 'y'",
            [[("year(t)", ">=", 2019), ("year(t)", "<=", 2020)], [("lower(b)", "=", "y")]],
        ),
        ("from_unixtime(a, 'yyyy-MM-dd') >= '2020'", [[("from_unixtime(a, 'yyyy-MM-dd')", ">=", "2020")]]),
        ("from_unixtime(a) < '2020'", [[("from_unixtime(a, 'yyyy-MM-dd HH:mm:ss')", "<", "2020")]]),
        ("lcase(b) like 'x%'", [[("lower(b)", ">=", "x"), ("lower(b)", "<", "y")]]),
        ("trim(b) = 'a'", [[("trim(b, ' ')", "=", "a")]]),
        ("trim(both from b) = 'a'", [[("trim(b, ' ')", "=", "a")]]),
        ("trim(leading 'x' from b) = 'a'", [[("ltrim(b, 'x')", "=", "a")]]),
        ("ltrim('x', b) is not null", [[("ltrim(b, 'x')", "!=", None)]]),
        ("substr(b, 1, 3) in ('a', 'b')", [[("substring(b, 1, 3)", "in", ("a", "b"))]]),
        ("regexp_extract(b, 'a(b)') is null", [[("regexp_extract(b, 'a(b)', 1)", "=", None)]]),
        ("date_add(day, -3) > date '2020-01-01'", [[("date_add(day, -3)", ">", dt.date(2020, 1, 1))]]),
        # other expressions, and what Spark casts for
        ("year(day) = 2020", None),
        ("year(t) + 1 = 2020", None),
        ("year(t) = '2020'", None),
        ("lower(upper(b)) = 'x'", None),
        ("ltrim(b, 'x') = 'a'", None),
        ("ltrim('y', b) = 'a'", None),
        ("substring(b, 1) = 'a'", None),
        ("from_unixtime(a, 'yyyy') = '2020'", None),
        ("from_unixtime(a, b) = '2020'", None),
        ("month(t) = 3", None),
    ],
)
def test_expressions_that_are_known(text: str, groups: list[list[tuple[str, str, Any]]] | None) -> None:
    found = implied_predicate(text, SCHEMA, KNOWN)
    assert found == (None if groups is None else tuple(tuple(Term(*term) for term in group) for group in groups))
    assert "(" not in str([term.column for group in implied_predicate(text, SCHEMA) or () for term in group])


@pytest.mark.parametrize("start", ["(", "not (", "((a = 2) or "])
def test_conditions_nested_deeper_than_python_recurses(start):
    text = start * 500 + "a = 1" + ")" * 500 + " and b = 'x'"
    assert implied_predicate(text, SCHEMA) == ((Term("b", "=", "x"),),)
    assert equivalent_conditions(text, SCHEMA) is None
