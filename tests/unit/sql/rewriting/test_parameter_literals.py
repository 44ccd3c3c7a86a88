"""Parameters of statements as literals."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from pyhudi.errors import QueryError
from pyhudi.sql.rewriting.parameter_literals import SqlLiteral, has_positional_parameters, with_literals

pytest.importorskip("sqlglot")


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (7, "7"),
        (-7, "(-7)"),
        (1 << 40, "1099511627776L"),
        (1.5, "1.5D"),
        (1e300, "1e+300D"),
        (float("nan"), "CAST('nan' AS DOUBLE)"),
        (Decimal("1.50"), "1.50BD"),
        (Decimal("1E+3"), "1000BD"),
        ("it's \\ :b ?", "'it\\'s \\\\ :b ?'"),
        ("${env:HOME}", "'$' '{env:HOME}'"),
        (b"\x01a", "X'0161'"),
        (SqlLiteral("-7S"), "(-7S)"),
        (dt.date(2024, 2, 29), "DATE '2024-02-29'"),
        (dt.time(9, 5, 0, 7), "TIME '09:05:00.000007'"),
        (dt.timedelta(days=40, hours=1, microseconds=5), "INTERVAL '40 01:00:00.000005' DAY TO SECOND"),
        (dt.timedelta(minutes=-90), "INTERVAL '-0 01:30:00.000000' DAY TO SECOND"),
        (dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC), "TIMESTAMP '2024-01-02 03:04:05.000006 UTC'"),
        (dt.datetime(900, 1, 2, tzinfo=dt.UTC), "TIMESTAMP '0900-01-02 00:00:00.000000 UTC'"),
    ],
)
def test_values(value: object, literal: str) -> None:
    assert with_literals("DELETE FROM t WHERE a =:b", {"b": value}) == f"DELETE FROM t WHERE a ={literal}"
    assert with_literals("DELETE FROM t WHERE a = ?", [value]) == f"DELETE FROM t WHERE a = {literal}"


def test_only_parameters_are_replaced() -> None:
    text = "INSERT INTO t SELECT ':x', `?`, CAST(:x AS STRUCT<x:INT>), v:x, f(v):x, a[:x]:x, :x, :other -- :x"
    expected = "INSERT INTO t SELECT ':x', `?`, CAST(1 AS STRUCT<x:INT>), v:x, f(v):x, a[1]:x, 1, :other -- :x"
    assert with_literals(text, {"x": 1, "INT": 2}) == expected
    assert with_literals(text, None) == text
    assert has_positional_parameters("SELECT ?")
    assert not has_positional_parameters("SELECT ':x', '?', :x -- ?")


def test_refused() -> None:
    with pytest.raises(QueryError, match=r"2 parameters.* 1 values"):
        with_literals("INSERT INTO t VALUES (?, ?)", [1])
    with pytest.raises(QueryError, match=r":x is \[1, 2\]"):
        with_literals("DELETE FROM t WHERE a IN (:x)", {"x": [1, 2]})
