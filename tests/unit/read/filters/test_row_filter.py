"""Filters in their three spellings, against plain Python on the same rows."""

from __future__ import annotations

import math
import operator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import QueryError
from pyhudi.read.filters.number_comparison import as_number
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.filters.terms import Term, literal
from pyhudi.read.pruning.statistics.comparison_pruning import Bounds, cannot_match

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
        ([("n", ">", True)], [0, 1, 3]),
        ([("n", "=", 10**30)], []),
        ([("i", "<", 10**400)], [0, 1, 3]),
        ([("n", "in", [0, 1.1, Decimal("2.2"), Decimal("2.205")])], [0, 1]),
        ([("n", "not in", [0, 2.2])], [0, 3]),
        ([("n", "<", Decimal("2.205"))], [0, 1]),
        ([("n", "<", 10**20)], [0, 1, 3]),
        ([("n", "in", [10**20, Decimal("4.4")])], [3]),
        ([("f", "in", [10**20, 0.5, 2**53 + 1])], [0]),
        ([("f", "<", 10**20)], [0, 1]),
        ([("f", ">", True)], [1, 3]),
        ([("i", "=", True)], [0]),
        ([("i", "in", [True, "2"])], [0, 1]),
        ([("x.y", ">", 1)], [1]),
        ([("i", ">", 1), ("s", "=", "b")], [1]),
        ([[("i", "=", 1)], [("s", "=", "b"), ("i", "=", 2)]], [0, 1]),
        (pc.field("i") == 2, [1]),
    ],
)
def test_rows_that_a_filter_keeps(value, expected):
    assert rows(value) == expected


WHOLE = (-(2**31), -2, -1, 0, 1, 2, None, 2**31 - 1)
NUMBERS = st.one_of(
    st.sampled_from([1.5, -1.5, Decimal("1.5"), 2.0, Decimal(2), np.float32(1.5), np.int64(2), 2**31 - 0.5, 0.0]),
    st.sampled_from([10**20, -(10**20), 2**31, Decimal("1e30"), 1e300, math.inf, -math.inf, True]),
    st.integers(-3, 3),
    st.decimals(-3, 3, places=1),
)
COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@given(st.sampled_from(sorted(COMPARE)), NUMBERS)
def test_whole_numbers_are_compared_exactly(op, value):
    schema, column = pa.schema([("i", pa.int32())]), pa.array(WHOLE, pa.int32())
    term = Term("i", op, value)
    meant = [v for v in WHOLE if v is not None and COMPARE[op](v, as_number(value))]
    kept = pa.table({"i": column}).filter(RowFilter(anyof=((term,),)).arrow(schema))["i"].to_pylist()
    assert kept == meant
    # each value as a file of its own
    out = cannot_match(term, Bounds(column, column, np.zeros(len(WHOLE), bool), np.zeros(len(WHOLE), bool)))
    assert not any(gone for gone, v in zip(out, WHOLE, strict=True) if v in meant)


@given(st.sampled_from(["in", "not in"]), st.lists(NUMBERS, max_size=4))
def test_whole_numbers_in_lists_of_any_numbers(op, values):
    table = pa.table({"i": pa.array(WHOLE, pa.int32())})
    given_values = [as_number(v) for v in values]
    meant = [v for v in WHOLE if v is not None and (v in given_values) == (op == "in")]
    assert table.filter(RowFilter.parse([("i", op, values)]).arrow(table.schema))["i"].to_pylist() == meant


def test_what_is_no_number_is_greater_than_whole_numbers():
    assert rows([("i", "<", math.nan)]) == [0, 1, 3]
    assert rows([("i", ">", math.nan)]) == rows([("i", "=", math.nan)]) == []


FLOATS = [1.0, 5.0, math.nan, None, -math.inf, math.inf, -0.0]


def as_in_spark(value: float) -> tuple[bool, float]:
    """What sorts, and is equal, as numbers are to Spark."""
    return (True, 0.0) if value != value else (False, value)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("value", [5.0, 0.0, math.nan, math.inf, 2, Decimal("1.5")])
@pytest.mark.parametrize("op", sorted(COMPARE))
def test_what_is_not_a_number_is_the_greatest_one(op, value, kind, tmp_path):
    table = pa.table({"f": pa.array(FLOATS, kind), "row": range(len(FLOATS))})
    meant = [i for i, v in enumerate(FLOATS) if v is not None and COMPARE[op](as_in_spark(v), as_in_spark(value))]
    asked = RowFilter.parse([("f", op, value)])
    assert table.filter(asked.arrow(table.schema))["row"].to_pylist() == meant
    listed = RowFilter.parse([("f", "in" if op == "=" else "not in", [value, 77.0])])
    if op in ("=", "!="):
        assert table.filter(listed.arrow(table.schema))["row"].to_pylist() == meant
    if asked.is_for_row_groups(table.schema):  # whose statistics leave out what is not a number
        pq.write_table(table, tmp_path / "f.parquet", row_group_size=2)
        found = ds.dataset(tmp_path / "f.parquet").to_table(filter=asked.arrow(table.schema))
        assert found["row"].to_pylist() == meant


@pytest.mark.parametrize("value", [1.5, Decimal("1.5"), 10**10, 10**20])
def test_a_literal_is_never_cut(value):
    assert literal(value, pa.int32(), "i").as_py() == value
    noon = datetime(2024, 1, 1, 12)
    assert literal(noon, pa.date32(), "d").as_py() == noon


def short_floats(*terms) -> list[int]:
    column = pa.array([np.float32(0.1), 16777216.0, -0.0, 0.0, None], pa.float32())
    table = pa.table({"f": column, "row": range(5)})
    return table.filter(RowFilter.parse(list(terms)).arrow(table.schema))["row"].to_pylist()


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [
        ("=", 0.1, []),
        ("=", np.float32(0.1), [0]),
        ("=", float(np.float32(0.1)), [0]),
        ("=", Decimal("0.1"), []),
        (">", 0.1, [0, 1]),
        (">", np.float32(0.1), [1]),
        ("=", 16777217, [1]),
        ("=", 16777217.0, []),
        ("in", [0.1, 0], [2, 3]),
        ("in", [np.float32(0.1), np.float32(-0.0)], [0, 2, 3]),
        ("not in", [-0.0], [0, 1]),
    ],
)
def test_short_floats_are_compared_as_spark_does(op, value, expected):
    assert short_floats(("f", op, value)) == expected


def test_long_lists_of_numbers_of_several_types_leave_nothing_out_wrongly():
    least = pa.array([Decimal("1.00"), Decimal("900.00")], pa.decimal128(10, 2))
    bounds = Bounds(least, least, np.zeros(2, bool), np.zeros(2, bool))
    assert not cannot_match(Term("n", "in", (*range(300), 900.0)), bounds)[:2].any()


@pytest.mark.parametrize("separator", ["", "\x1f", "\x1f\x1e\x1d\x00"])
def test_many_combinations_of_values(separator):
    """Also texts that have the signs by which values are joined, and other comparisons beside the combinations."""
    texts = dict.fromkeys(["a", "b", "", f"a{separator}b", f"{separator}b", f"a{separator}"])
    days = [date(2024, 1, 1), date(1, 1, 1)]
    combinations = [(i, s, d) for i in (-1, 1, 2, None) for s in (*texts, None) for d in (*days, None)]
    table = pa.table(dict(zip("isd", zip(*combinations, strict=True), strict=True))).cast(
        pa.schema([("i", pa.int32()), ("s", pa.string()), ("d", pa.date32())])
    )
    wanted = {row for row in combinations if None not in row and row[0] < 2 and len(row[1]) != 1}
    unmatched = [(n, f"none{separator}", days[0]) for n in range(100)]
    alternatives = [[("s", "=", s), ("i", "=", i), ("d", "=", d)] for i, s, d in [*wanted, *unmatched]]
    others = [[("i", "=", 2), ("s", "=", "b"), ("d", ">", days[1])], [("i", "=", 1 << 40)], [("i", "=", 0.5)]]
    nulls = [[("i", "=", None), ("s", "=", "a"), ("d", "=", days[1])]]
    condition = RowFilter.parse([*alternatives, *others, *nulls]).arrow(table.schema)
    found = [tuple(row.values()) for row in table.filter(condition).to_pylist()]
    assert sorted(map(repr, found)) == sorted(map(repr, {*wanted, (2, "b", days[0]), (None, "a", days[1])}))


@pytest.mark.parametrize("asked", ["list", "alternatives", "pairs"])
def test_long_lists_prune_row_groups_by_their_range(tmp_path, asked):
    table = pa.table({"i": range(4_000), "s": [None if i == 2_000 else f"{i:04d}" for i in range(4_000)]})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=100)
    wanted = range(1_990, 2_110)
    texts = [[("s", "=", f"{i:04d}")] for i in wanted]
    pairs = [[*term, ("i", "=", i)] for term, i in zip(texts, wanted, strict=True)]
    lists = [("s", "in", [*(f"{i:04d}" for i in wanted), None])]
    condition = RowFilter.parse({"list": lists, "alternatives": texts, "pairs": pairs}[asked]).arrow(table.schema)
    (fragment,) = ds.dataset(tmp_path).get_fragments()
    assert len(fragment.split_by_row_group(condition)) == 3
    assert fragment.to_table(filter=condition)["i"].to_pylist() == [i for i in wanted if i != 2_000]
    others = table.filter(RowFilter.parse([("i", "not in", list(wanted))]).arrow(table.schema))
    assert others["i"].to_pylist() == [*range(1_990), *range(2_110, 4_000)]


@pytest.mark.parametrize("op", ["=", "!="])
def test_very_many_comparisons_that_no_list_can_hold(op):
    """A chain of so many would end the process."""
    amounts = [Decimal(number) / 4 for number in range(30_000)]
    terms = [("amount", op, amount) for amount in amounts]
    condition = RowFilter.parse([[term] for term in terms] if op == "=" else terms)
    table = pa.table({"amount": pa.array([Decimal("0.5"), Decimal("-0.5")], pa.decimal128(10, 2))})
    found = table.filter(condition.arrow(table.schema))["amount"].to_pylist()
    assert found == [Decimal("0.5") if op == "=" else Decimal("-0.5")]


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
        ([("n", "=", 10**37)], "cannot be compared with column 'n' of type decimal.*write a value"),
        ([("d", "=", math.nan)], "nan cannot be compared with column 'd'"),
        ([("n", "=", 10**80)], "on column 'n'.*at most 38 digits"),
        ([("f", "=", 10**400)], "on column 'f'.*at most 38 digits"),
        ([("i", "in", 3)], "needs a list"),
        ([("i", "in", "abc")], "needs a list"),
        ([("i", "<", None)], "never true"),
        ([("i", "=")], r"\(column, op, value\)"),
        ([["i", "=", 1]], r"\(column, op, value\)"),
        (("i", "=", 1), r"not \('i', '=', 1\); write \[\('i', '=', 1\)\]"),
        (["i", "=", 1], r"write \[\('i', '=', 1\)\]"),
        (3, "pyarrow expression or SQL"),
        ("length(s) > 2", "length.* requires Spark: use to_spark"),
        ("i = 1 AND S = 1", "requires Spark, because column 's' has type string, and 1 another one: use"),
        ("NOT (i = 2 OR 'x' > i)", "requires Spark, because column 'i' has type int32, and 'x' another one"),
        ("i IN (NULL, 1, TRUE)", "requires Spark, because column 'i' has type int32, and TRUE another one"),
        ("i BETWEEN 1 AND DATE '2024-01-01'", "because column 'i' has type int32, and 2024-01-01 another one"),
        ("I = 1 OR length(nope) > 2 OR `none` IN (1)", "no column 'none'; the table has i, "),
        (" ", "the filter is an empty text"),
        ("i = 1 AND s = Oslo", "no column 'Oslo' in the filter .*; a text is written in quotes: 'Oslo'"),
        ("(s <> Oslo OR i = 1)", "no column 'Oslo'"),
        ("i = S", "requires Spark: use"),
        ("nope IS NULL", "no column 'nope'"),
        ("current_date > d", "requires Spark"),
        ("(x.y = 1 AND nope<2)", "no column 'nope'"),
        ("s || 'a' = 'ba' AND NOT (true = i)", "requires Spark"),
    ],
)
def test_bad_filters_name_what_is_wrong(value, message):
    with pytest.raises(QueryError, match=message):
        RowFilter.parse(value).arrow(ROWS.schema)


def test_columns_that_a_filter_needs():
    assert RowFilter.parse([("x.y", ">", 1), ("i", "=", 1)]).columns(ROWS.schema) == ["i", "x"]
    assert "d" in RowFilter.parse(pc.field("d").is_null()).columns(ROWS.schema)


LOCAL = (ZoneInfo("America/Los_Angeles"), ZoneInfo("Asia/Kolkata"), UTC, timezone(timedelta(minutes=-90)))
AROUND = datetime(2024, 3, 10, 9, 59, 59, 999999, UTC)  # a second before clocks go forward in Los Angeles
TIMES = st.datetimes(datetime(2024, 3, 9), datetime(2024, 3, 12)) | st.sampled_from(
    [datetime(2024, 3, 10), datetime(2024, 3, 10, 2), datetime(2024, 3, 11), datetime(2024, 3, 10, 1, 59, 59, 999999)]
)
TIMES = TIMES.map(lambda time: time.replace(fold=0))  # of two meanings, a time without a zone has the first one


@given(
    st.sampled_from(sorted(COMPARE)), TIMES, st.sampled_from(LOCAL), st.sampled_from(["naive", "aware", "date", "text"])
)
def test_times_are_compared_in_the_zone_asked_for(op, value, zone, form):
    """An instant, a time of day, and a day, each compared with what means the same in a zone."""
    moment = datetime.combine(value, time(), zone) if form == "date" else value.replace(tzinfo=zone)
    instant = moment.astimezone(UTC)
    given_value = {"naive": value, "aware": instant, "date": value.date(), "text": str(value)}
    instants = [AROUND + timedelta(hours=h) for h in (-30, -2, 0, 1, 40)] + [
        AROUND + timedelta(microseconds=1),
        instant,
    ]
    table = pa.table(
        {
            "t": pa.array(instants, pa.timestamp("us", "UTC")),
            "ms": pa.array(
                [i.replace(microsecond=i.microsecond // 1000 * 1000) for i in instants], pa.timestamp("ms", "UTC")
            ),
            "l": pa.array([i.astimezone(zone).replace(tzinfo=None) for i in instants], pa.timestamp("us")),
            "d": pa.array([i.astimezone(zone).date() for i in instants]),
        }
    )
    wall = value if form in ("naive", "text") else instant.astimezone(zone).replace(tzinfo=None)
    for column, like in (("t", instant), ("ms", instant), ("l", wall), ("d", wall)):
        if column == "d" and form == "text":
            continue
        rows = [datetime.combine(v, time()) if column == "d" else v for v in table[column].to_pylist()]
        meant = [i for i, v in enumerate(rows) if COMPARE[op](v, like)]
        found = RowFilter.parse([(column, op, given_value[form])]).bind(table.schema, zone)
        kept = table.append_column("row", pa.array(range(len(rows)))).filter(found.arrow(table.schema))
        assert kept["row"].to_pylist() == meant, (column, str(found))
        assert found.bind(table.schema, LOCAL[1]) == found, "once it is said, no other zone changes it"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("i = 5 AND f > 0.1 AND length(s) > 2", (Term("i", "=", 5),)),
        ("s LIKE 'a%'", (Term("s", ">=", "a"), Term("s", "<", "b"))),
        ("f > 0.1", None),
        ("i = 5 OR f > 0.1", None),
        ("upper(s) = 'A'", None),
    ],
)
def test_rows_that_sql_leaves_out_beforehand(sql, expected):
    """A short float that is greater than 0.1 to Spark, as it is a long one there, is 0.1 here."""
    schema = pa.schema([("i", pa.int32()), ("f", pa.float32()), ("s", pa.string())])
    found = RowFilter(sql=sql).for_rows(schema)
    assert found == (None if expected is None else RowFilter(anyof=(expected,)))
