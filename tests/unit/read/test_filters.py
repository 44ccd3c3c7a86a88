"""Filters in their three spellings, against plain Python on the same rows."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from pyhudi.errors import QueryError
from pyhudi.read.filters import RowFilter

ROWS = pa.table(
    {
        "i": pa.array([1, 2, None, 4], pa.int32()),
        "s": ["a", "b", None, ""],
        "f": pa.array([0.5, 1.5, None, float("nan")], pa.float64()),
        "d": pa.array([date(2024, 1, 1), date(2024, 1, 2), None, date(2024, 2, 1)]),
        "t": pa.array([datetime(2024, 1, 1, h) for h in range(4)], pa.timestamp("us", "UTC")),
        "n": pa.array([Decimal("1.10"), Decimal("2.20"), None, Decimal("4.40")], pa.decimal128(10, 2)),
        "x": pa.array([{"y": 1}, {"y": 2}, None, {"y": None}], pa.struct([("y", pa.int64())])),
    }
)


def rows(value) -> list[int]:
    """Positions of the rows that a filter keeps."""
    table = ROWS.append_column("row", pa.array(range(len(ROWS))))
    condition = RowFilter.parse(value).arrow(ROWS.schema)
    return ds.dataset(table).to_table(filter=condition)["row"].to_pylist()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([("i", "=", 2)], [1]),
        ([("i", "==", 2)], [1]),
        ([("i", "!=", 2)], [0, 3]),
        ([("i", "<", 2)], [0]),
        ([("i", "<=", 2)], [0, 1]),
        ([("i", ">", 1.5)], [1, 3]),
        ([("i", ">=", 2)], [1, 3]),
        ([("i", "in", [1, 4, 99])], [0, 3]),
        ([("i", "in", [])], []),
        ([("i", "not in", [1])], [1, 3]),
        ([("i", "not in", [])], [0, 1, 3]),
        ([("i", "=", None)], [2]),
        ([("i", "!=", None)], [0, 1, 3]),
        ([("i", "=", "2")], [1]),
        ([("s", "in", {"a", ""})], [0, 3]),
        ([("d", ">", "2024-01-01")], [1, 3]),
        ([("d", "=", date(2024, 2, 1))], [3]),
        ([("d", "<", datetime(2024, 1, 2, 12))], [0, 1]),
        ([("d", "<=", datetime(2024, 1, 2))], [0, 1]),
        ([("d", ">", datetime(2024, 1, 2, 12))], [3]),
        ([("d", ">=", datetime(2024, 1, 2, 0, 0, 1))], [3]),
        ([("d", "=", datetime(2024, 1, 2, 12))], []),
        ([("d", "!=", datetime(2024, 1, 2, 12))], [0, 1, 3]),
        ([("d", "in", [datetime(2024, 1, 2, 1, tzinfo=timezone(timedelta(hours=1))), "2024-02-01"])], [1, 3]),
        ([("d", "not in", [datetime(2024, 1, 2), datetime(2024, 2, 1, 1)])], [0, 3]),
        ([("t", ">=", "2024-01-01 02:00:00+00:00")], [2, 3]),
        ([("n", "=", Decimal("2.2"))], [1]),
        ([("n", ">", 2)], [1, 3]),
        ([("x.y", ">", 1)], [1]),
        ([("i", ">", 1), ("s", "=", "b")], [1]),
        ([[("i", "=", 1)], [("s", "=", "b"), ("i", "=", 2)]], [0, 1]),
        (pc.field("i") == 2, [1]),
    ],
)
def test_rows_that_a_filter_keeps(value, expected):
    assert rows(value) == expected


def test_no_filter():
    assert RowFilter.parse(None) is None
    assert RowFilter.parse([]) is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([("z", "=", 1)], "no column 'z'; the table has i, s"),
        ([("x.z", "=", 1)], "no column 'x.z'"),
        ([("i", "~", 1)], "unknown operator '~'.*not in"),
        ([("i", "=", "two")], "'two' cannot be compared with column 'i' of type int32"),
        ([("i", "in", 3)], "needs a list"),
        ([("i", "in", "abc")], "needs a list"),
        ([("i", "<", None)], "never true"),
        ([("i", "=")], r"\(column, op, value\)"),
        ([["i", "=", 1]], r"\(column, op, value\)"),
        (3, "pyarrow expression or SQL"),
        ("i > 2", "only to_spark"),
    ],
)
def test_bad_filters_name_what_is_wrong(value, message):
    with pytest.raises(QueryError, match=message):
        RowFilter.parse(value).arrow(ROWS.schema)


def test_columns_that_a_filter_needs():
    assert RowFilter.parse([("x.y", ">", 1), ("i", "=", 1)]).columns(ROWS.schema) == ["i", "x"]
    assert "d" in RowFilter.parse(pc.field("d").is_null()).columns(ROWS.schema)
