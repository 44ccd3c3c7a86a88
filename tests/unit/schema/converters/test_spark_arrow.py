"""Rows in the Arrow types that Spark takes."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.errors import SchemaMismatchError
from pyhudi.schema.converters.spark_arrow import as_spark_arrow, spark_arrow_schema

MS = pa.timestamp("ms")
INSIDE = pa.struct([pa.field("at", pa.timestamp("ms", "UTC")), pa.field("n", pa.int32(), False)])
US_INSIDE = pa.struct([pa.field("at", pa.timestamp("us", "UTC")), pa.field("n", pa.int32(), False)])
AT = dt.datetime(2024, 1, 2, 3, 4, 5, 678000)
AT_UTC = AT.replace(tzinfo=dt.UTC)
BEFORE = dt.datetime(1815, 6, 18, 11, 35, 0, 1000)
TIME, MICROS = dt.time(1, 2, 3, 4000), dt.time(1, 2, 3, 4)
IN_MS, IN_US = 3_723_004, 3_723_000_004
S, S_UTC = {"at": AT_UTC, "n": 1}, {"at": None, "n": 2}

# type, values, type for Spark, values there
CASES: list[tuple[pa.DataType, list[Any], pa.DataType, list[Any]]] = [
    (MS, [AT, None, BEFORE], pa.timestamp("us"), [AT, None, BEFORE]),
    (pa.timestamp("ms", "UTC"), [AT_UTC, None, AT_UTC], pa.timestamp("us", "UTC"), [AT_UTC, None, AT_UTC]),
    (pa.time32("ms"), [TIME, None, dt.time(0)], pa.int32(), [IN_MS, None, 0]),
    (pa.time64("us"), [MICROS, None, dt.time(0)], pa.int64(), [IN_US, None, 0]),
    (INSIDE, [S, None, S_UTC], US_INSIDE, [S, None, S_UTC]),
    (
        pa.list_(pa.field("element", INSIDE, False)),
        [[S, S_UTC], None, []],
        pa.list_(pa.field("element", US_INSIDE, False)),
        [[S, S_UTC], None, []],
    ),
    (
        pa.map_(pa.string(), pa.list_(pa.time32("ms"))),
        [[("a", [TIME, None]), ("b", None)], None, [("c", [])]],
        pa.map_(pa.string(), pa.list_(pa.int32())),
        [[("a", [IN_MS, None]), ("b", None)], None, [("c", [])]],
    ),
    (
        pa.struct([("m", pa.map_(pa.string(), pa.time64("us"))), ("t", MS)]),
        [{"m": [("a", MICROS)], "t": AT}, None, {"m": None, "t": None}],
        pa.struct([("m", pa.map_(pa.string(), pa.int64())), ("t", pa.timestamp("us"))]),
        [{"m": [("a", IN_US)], "t": AT}, None, {"m": None, "t": None}],
    ),
]
IDS = [str(case[0]) for case in CASES]


@pytest.mark.parametrize(("kind", "values", "wanted", "expected"), CASES, ids=IDS)
def test_types(kind: pa.DataType, values: list[Any], wanted: pa.DataType, expected: list[Any]) -> None:
    schema = pa.schema([pa.field("k", pa.string(), False), pa.field("c", kind, metadata={"comment": "told"})])
    other = pa.schema([schema.field("k"), pa.field("c", wanted, metadata={"comment": "told"})])
    assert spark_arrow_schema(schema).equals(other, check_metadata=True)
    # offsets into buffers of both bits and bytes
    keys = [str(i) for i in range(10 * len(values))]
    batch = pa.RecordBatch.from_arrays([pa.array(keys), pa.array(values * 10, kind)], schema=schema)
    for start, length in ((0, len(keys)), (1, 2), (9, 14), (4, 0), (0, 0)):
        found = as_spark_arrow(batch.slice(start, length))
        found.validate(full=True)
        assert found.schema.equals(other, check_metadata=True)
        part = slice(start, start + length)
        assert found.to_pydict() == {"k": keys[part], "c": (expected * 10)[part]}
        assert as_spark_arrow(found) is found


@pytest.mark.parametrize("kind", [case[0] for case in CASES], ids=IDS)
def test_nulls_and_no_rows(kind: pa.DataType) -> None:
    for count in (0, 3):
        schema = pa.schema([("c", kind)])
        batch = pa.RecordBatch.from_arrays([pa.nulls(count, kind)], schema=schema)
        found = as_spark_arrow(batch)
        found.validate(full=True)
        assert found.schema == spark_arrow_schema(schema)
        assert found.column(0).to_pylist() == [None] * count


def test_fields_under_a_null_struct() -> None:
    """Structs may hold values where they are null."""
    child = pa.array([AT, AT, None], MS)
    array = pa.StructArray.from_arrays([child], ["t"], mask=pa.array([True, False, False]))
    found = as_spark_arrow(pa.RecordBatch.from_arrays([array], names=["c"]))
    assert found.column(0).to_pylist() == [None, {"t": AT}, {"t": None}]


def test_batches_without_such_columns_are_the_same() -> None:
    kinds = [
        pa.int32(),
        pa.decimal128(9, 2),
        pa.date32(),
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
        pa.null(),
        US_INSIDE,
        pa.list_(pa.field("element", pa.string(), False)),
        pa.map_(pa.string(), US_INSIDE),
    ]
    batch = pa.RecordBatch.from_arrays([pa.nulls(2, kind) for kind in kinds], names=[str(i) for i in range(len(kinds))])
    assert as_spark_arrow(batch) is batch
    nothing = pa.RecordBatch.from_arrays([], names=[])
    assert as_spark_arrow(nothing) is nothing


def test_timestamps_out_of_range() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([2**62], MS)], names=["far"])
    with pytest.raises(SchemaMismatchError, match="'far'"):
        as_spark_arrow(batch)
