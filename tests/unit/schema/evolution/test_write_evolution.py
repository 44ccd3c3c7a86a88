"""Evolution on write: the rules of Apache Hudi 1.2.0 (data/promotions-1.2.0.tsv), and values that follow them."""

from __future__ import annotations

import csv
import datetime
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import SchemaError, SchemaMismatchError
from pyhudi.schema.evolution.schema_projection import conform
from pyhudi.schema.evolution.write_evolution import EvolutionOptions, promote, reconcile
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.schema.table_types import COMMENT, DEFAULT
from pyhudi.schema.type_conversion import convert, java_text

FILE = Path(__file__).parent / "data" / "promotions-1.2.0.tsv"
# no table has a column of type null
PROMOTIONS = [case for case in csv.DictReader(FILE.open(), delimiter="\t") if case["table"] != "null"]
NAMED = {
    "null": pa.null(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "local-timestamp-micros": pa.timestamp("us"),
}
DELIBERATE = {
    # a number does not become a time by itself
    ("long", "timestamp-micros"): "refused",
    ("long", "timestamp-millis"): "refused",
    ("long", "local-timestamp-micros"): "refused",
    # the unit that the table has is kept, and a value that does not fit is an error
    ("timestamp-micros", "timestamp-millis"): "timestamp-micros",
    ("timestamp-millis", "timestamp-micros"): "timestamp-millis",
}


def parse(text: str) -> pa.DataType:
    if text.startswith("["):
        return pa.list_(pa.field("element", parse(text[1:-1])))
    if text.startswith("<"):
        return pa.map_(pa.string(), parse(text[1:-1]))
    if text.startswith("{"):
        pairs = [pair.split(": ") for pair in text[1:-1].split(", ")]
        return pa.struct([(name, parse(kind)) for name, kind in pairs])
    if text.startswith("decimal"):
        precision, scale = text[8:-1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return NAMED[text]


def one(data_type: pa.DataType) -> pa.Schema:
    return pa.schema([("id", pa.string()), ("c", data_type)])


@pytest.mark.parametrize("case", PROMOTIONS, ids=lambda case: f"{case['table']}<-{case['incoming']}")
def test_types_evolve_as_in_the_original(case: dict[str, str]) -> None:
    pair = case["table"], case["incoming"]
    expected = DELIBERATE.get(pair, case["result"])
    if case["incoming"] == "null":
        expected = case["table"]  # the original refuses any column without a type; here it is nulls of the table's
    table, incoming = one(parse(case["table"])), one(parse(case["incoming"]))
    if expected == "refused":
        with pytest.raises(SchemaMismatchError, match="column 'c"):
            reconcile(table, incoming)
    else:
        assert reconcile(table, incoming) == one(parse(expected))


ABC = {"id": pa.string(), "a": pa.int32(), "b": pa.string()}
NULLS = EvolutionOptions(set_null_for_missing=True)
RECONCILE = EvolutionOptions(reconcile=True)
DROP = EvolutionOptions(allow_column_drop=True)


@pytest.mark.parametrize(
    ("incoming", "options", "expected"),
    [
        ("b a id", None, "id a b"),
        ("id c a b", None, "id a b c"),
        ("id c a b", NULLS, "id a b c"),
        ("id c a b", RECONCILE, "id c a b"),
        ("b a id", RECONCILE, "id a b"),
        ("id a", NULLS, "id a b"),
        ("id a", RECONCILE, "id a b"),
        ("id a", DROP, "id a"),
        ("id c b", NULLS, "id a b c"),
        ("id c b", RECONCILE, "id a b c"),
        ("id c b", DROP, "id b c"),
    ],
)
def test_columns_come_and_go(incoming: str, options: EvolutionOptions | None, expected: str) -> None:
    types = {**ABC, "c": pa.int64()}
    rows = pa.schema([(name, types[name]) for name in incoming.split()])
    table = add_meta_columns(pa.schema(ABC))
    assert reconcile(table, rows, options).names == expected.split()
    assert reconcile(table, add_meta_columns(rows), options).names == expected.split()


@pytest.mark.parametrize(
    ("options", "struct", "element"),
    [
        (NULLS, "{x: int, y: {p: long, q: string}, new: string}", "{u: int, v: double}"),
        (RECONCILE, "{x: int, y: {p: long, q: string}, new: string}", "{u: int, v: double}"),
        (DROP, "{y: {p: long}, new: string}", "{v: double}"),
    ],
    ids=["nulls", "reconcile", "drop"],
)
def test_nested_columns_come_and_go(options: EvolutionOptions, struct: str, element: str) -> None:
    inner = pa.struct([("p", pa.int32()), ("q", pa.string())])
    items = pa.list_(pa.field("element", pa.struct([("u", pa.int32()), ("v", pa.int32())])))
    table = pa.schema({"s": pa.struct([("x", pa.int32()), ("y", inner)]), "l": items})
    less = pa.struct([("new", pa.string()), ("y", pa.struct([("p", pa.int64())]))])
    fewer = pa.list_(pa.field("element", pa.struct([("v", pa.float64())])))
    result = reconcile(table, pa.schema({"s": less, "l": fewer}), options)
    assert _shape(result.field("s").type) == struct
    assert _shape(result.field("l").type.value_type) == element
    with pytest.raises(SchemaMismatchError) as caught:
        reconcile(table, pa.schema({"s": less, "l": fewer}))
    for path in ("s.x", "s.y.q", "l.element.u"):
        assert f"column {path!r} is missing" in str(caught.value)


def _shape(kind: pa.DataType) -> str:
    """A type in the words of the table of promotions."""
    if pa.types.is_struct(kind):
        members = (kind.field(i) for i in range(kind.num_fields))
        return "{" + ", ".join(f"{member.name}: {_shape(member.type)}" for member in members) + "}"
    return next(name for name, known in NAMED.items() if known == kind)


def test_all_that_does_not_fit_is_named() -> None:
    table = pa.schema({**ABC, "s": pa.struct([("x", pa.int32()), ("y", pa.int32())]), "low": pa.int32()})
    rows = pa.schema({"id": pa.string(), "a": pa.bool_(), "s": pa.struct([("x", pa.string())]), "Low": pa.int32()})
    with pytest.raises(SchemaMismatchError) as caught:
        reconcile(table, rows)
    text = str(caught.value)
    assert "column 'a' is int32 in the table and bool in the incoming rows; cast it to int32" in text
    assert "column 'b' is missing" in text
    assert "hoodie.write.set.null.for.missing.columns=true" in text
    assert "column 's.y' is missing" in text
    assert "column 'Low' differs from the table's 'low' only in case" in text
    with pytest.raises(SchemaMismatchError, match=r"new column 'z' .*has no type"):
        reconcile(pa.schema(ABC), pa.schema({**ABC, "z": pa.null()}))


@pytest.mark.parametrize("options", [None, EvolutionOptions(set_null_for_missing=True)], ids=["null", "missing"])
def test_a_column_that_becomes_nullable_has_the_default_null(options: EvolutionOptions | None) -> None:
    """Apache Hudi 1.2.0 writes so, and fails to read nullable columns with another default."""
    key = pa.field("id", pa.string())
    flag = pa.field("flag", pa.bool_(), nullable=False, metadata={DEFAULT: b"false", COMMENT: b"text"})
    table = pa.schema([key, flag])
    nullable = flag.remove_metadata().with_nullable(True)
    evolved = reconcile(table, pa.schema([key] if options else [key, nullable]), options)
    assert evolved.equals(pa.schema([key, nullable.with_metadata({COMMENT: b"text"})]), check_metadata=True)
    kept = reconcile(table, pa.schema([key, flag.remove_metadata()]))
    assert kept.equals(table, check_metadata=True)


def test_the_default_of_a_struct_ends_with_its_type() -> None:
    """``{"x": 7}`` is no value of a struct whose field may be null: defaults are of the first branch of a union."""
    x = pa.field("x", pa.int32(), nullable=False)
    struct = pa.field("s", pa.struct([x]), nullable=False, metadata={DEFAULT: b'{"x": 7}'})
    wider = struct.remove_metadata().with_type(pa.struct([x.with_nullable(True)]))
    assert reconcile(pa.schema([struct]), pa.schema([wider])).equals(pa.schema([wider]), check_metadata=True)
    same = reconcile(pa.schema([struct]), pa.schema([struct.remove_metadata()]))
    assert same.equals(pa.schema([struct]), check_metadata=True)


def test_nullability() -> None:
    strict = pa.schema([pa.field("id", pa.string(), False), pa.field("a", pa.int32(), False)])
    loose = pa.schema([("id", pa.string()), ("a", pa.int32())])
    more = pa.schema([*loose, pa.field("n", pa.list_(pa.field("element", pa.int32(), False)), False)])
    assert [f.nullable for f in reconcile(strict, loose)] == [True, True]
    assert [f.nullable for f in reconcile(strict, loose, NULLS)] == [False, False]
    assert [f.nullable for f in reconcile(loose, strict)] == [True, True]
    assert [f.nullable for f in reconcile(strict, pa.schema([("a", pa.int32())]), NULLS)] == [True, False]
    new = reconcile(loose, more).field("n")
    assert new.nullable
    assert new.type.value_field.nullable


DAY = datetime.date(2024, 1, 2)
MOMENT = datetime.datetime(2024, 1, 2, 3, 4, 5, 678000, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("source", "values", "target", "expected"),
    [
        (pa.int32(), [1, None], pa.int64(), [1, None]),
        (pa.int64(), [2**40 + 1], pa.float32(), [1099511627776.0]),
        (pa.int32(), [7], pa.string(), ["7"]),
        (pa.float32(), [0.1], pa.float64(), [0.1]),
        (pa.float32(), [0.1, 1e10], pa.string(), ["0.1", "1.0E10"]),
        (pa.float64(), [0.1, 1e-5, float("nan")], pa.string(), ["0.1", "1.0E-5", "NaN"]),
        (pa.date32(), [DAY], pa.string(), ["2024-01-02"]),
        (pa.date32(), [2_932_897, -719_163], pa.string(), ["+10000-01-01", "0000-12-31"]),
        (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("100.00")], pa.string(), ["1.50", "100.00"]),
        (pa.binary(), [b"xy"], pa.string(), ["xy"]),
        (pa.string(), ["é"], pa.binary(), ["é".encode()]),
        (pa.string(), ["2024-01-02"], pa.date32(), [DAY]),
        (pa.int32(), [5], pa.decimal128(9, 2), [Decimal("5.00")]),
        (pa.float64(), [5.255, -5.255], pa.decimal128(9, 2), [Decimal("5.26"), Decimal("-5.26")]),
        # values far below the last digit, and more digits than fit
        (pa.float64(), [1.2345678901234567e-7, -5e-324], pa.decimal128(9, 2), [Decimal("0.00"), Decimal("0.00")]),
        (pa.float64(), [1.2345678901234567e-25], pa.decimal128(38, 30), [Decimal("1.23457E-25")]),
        (pa.string(), ["1e-300", "0.00499999999999999999999999"], pa.decimal128(9, 2), [Decimal("0.00")] * 2),
        (pa.string(), ["-0.0050000000000000000000000000000"], pa.decimal128(9, 2), [Decimal("-0.01")]),
        (pa.string(), ["5.25", "7"], pa.decimal128(9, 2), [Decimal("5.25"), Decimal("7.00")]),
        (pa.decimal128(9, 2), [Decimal("1.50")], pa.decimal128(12, 4), [Decimal("1.5000")]),
        (pa.timestamp("ms", "UTC"), [MOMENT], pa.timestamp("us", "UTC"), [MOMENT]),
        (pa.timestamp("us", "UTC"), [MOMENT], pa.timestamp("ms", "UTC"), [MOMENT]),
        (pa.null(), [None], pa.list_(pa.int32()), [None]),
        (pa.int8(), [1], pa.int32(), [1]),
        (pa.dictionary(pa.int8(), pa.string()), ["a", None], pa.string(), ["a", None]),
    ],
    ids=str,
)
def test_values_follow(source: pa.DataType, values: list[Any], target: pa.DataType, expected: list[Any]) -> None:
    result = convert(pa.array(values, source), target)
    result.validate(full=True)
    assert result.type == target
    shown = [None if value is None else str(value) for value in result.to_pylist()]
    assert shown == [None if value is None else str(value) for value in expected]


@pytest.mark.parametrize(
    ("source", "good", "value", "target", "shown"),
    [
        (pa.string(), "2024-01-01", "nope", pa.date32(), "'nope'"),
        (pa.string(), "1.5", "nope" * 100, pa.decimal128(9, 2), f"'{'nope' * 25}'"),
        (pa.int64(), 1, 10**9, pa.decimal128(9, 2), "1000000000"),
        (pa.decimal128(7, 2), Decimal(1), Decimal("12345.67"), pa.decimal128(5, 2), "12345.67"),
        (pa.float64(), 1.0, math.nan, pa.decimal128(5, 2), "nan"),
        (pa.int64(), 1, 2**40, pa.int32(), str(2**40)),
        (pa.binary(), b"a", b"\xff", pa.string(), r"b'\xff'"),
        (
            *(pa.timestamp("us", "UTC"), MOMENT.replace(microsecond=0), MOMENT.replace(microsecond=1)),
            *(pa.timestamp("ms", "UTC"), str(MOMENT.replace(microsecond=1, tzinfo=None))),
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("before", [0, 1, 6])
def test_values_that_do_not_fit_are_named(source, good, value, target, shown, before) -> None:
    array = pa.array([None, *[good] * before, value, good, value], source).slice(1)
    with pytest.raises(SchemaMismatchError, match=re.escape(f"cannot convert the value {shown} of column 'c'")):
        convert(array, target, "c")


@pytest.mark.parametrize(
    ("source", "value", "target"),
    [
        (pa.uint64(), 1, pa.int64()),
        (pa.bool_(), True, pa.string()),
        (pa.string(), "x", pa.struct([("a", pa.int32())])),
    ],
    ids=str,
)
def test_types_that_do_not_fit_name_the_column(source: pa.DataType, value: object, target: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="column 'c'"):
        convert(pa.array([value], source), target, "c")


DEEP = pa.struct([("l", pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.int32())), ("x", pa.float32())])))])
DEEPER = pa.struct(
    [
        ("new", pa.string()),
        ("l", pa.list_(pa.field("element", pa.struct([("x", pa.float64()), ("m", pa.map_(pa.string(), pa.int64()))])))),
    ]
)
maps = st.none() | st.lists(st.tuples(st.text(max_size=2), st.none() | st.integers(0, 99)), max_size=2)
items = st.none() | st.fixed_dictionaries({"m": maps, "x": st.none() | st.just(0.5)})
deep_values = st.none() | st.fixed_dictionaries({"l": st.none() | st.lists(items, max_size=3)})


@given(st.lists(deep_values, max_size=6), st.integers(0, 6), st.integers(0, 6))
def test_nested_values_follow(values: list[Any], start: int, length: int) -> None:
    def deeper(value: Any) -> Any:
        if value is None:
            return None
        inner = value["l"]
        return {"new": None, "l": inner and [i and {"x": i["x"], "m": i["m"]} for i in inner]}

    array = pa.array(values, DEEP).slice(start, length)
    result = convert(array, DEEPER)
    result.validate(full=True)
    assert result.to_pylist() == [deeper(value) for value in array.to_pylist()]


def test_conform() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"gone": [1], "b": pa.array([2], pa.int32()), "a": pa.array(["x"], pa.large_string())}
    )
    schema = pa.schema([("a", pa.string()), ("new", pa.list_(pa.int32())), ("b", pa.int64())])
    assert conform(batch, schema).to_pylist() == [{"a": "x", "new": None, "b": 2}]
    assert conform(batch, schema).schema == schema
    strict = pa.schema([pa.field("a", pa.string(), nullable=False), pa.field("new", pa.int32(), nullable=False)])
    with pytest.raises(SchemaMismatchError, match=r"'new' of this table is not nullable.*1 of 1 rows"):
        conform(batch, strict)
    # of a column that was added with a default, as Avro readers fill files without it
    added = pa.schema([strict.field("a"), pa.field("new", pa.int32(), nullable=False, metadata={DEFAULT: b"7"})])
    assert conform(batch, added).to_pylist() == [{"a": "x", "new": 7}]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_java_text_is_the_same_number(value: float) -> None:
    (text,) = java_text(pa.array([value])).to_pylist()
    assert float(text) == value
    plain = value == 0 or 1e-3 <= abs(value) < 1e7
    assert ("E" in text) is not plain
    assert "." in text


def test_java_text() -> None:
    values = [5.0, 1e7, 9999999.0, 0.001, 0.00099, -0.0, 1.2345678901234568e17, float("inf"), float("-inf"), None]
    expected = [
        "5.0",
        "1.0E7",
        "9999999.0",
        "0.001",
        "9.9E-4",
        "-0.0",
        "1.2345678901234568E17",
        "Infinity",
        "-Infinity",
    ]
    assert java_text(pa.array(values)).to_pylist() == [*expected, None]


def test_promote_keeps_the_wider_number() -> None:
    numbers = [pa.int32(), pa.int64(), pa.float32(), pa.float64()]
    for i, a in enumerate(numbers):
        for j, b in enumerate(numbers):
            assert promote(a, b) == numbers[max(i, j)]
