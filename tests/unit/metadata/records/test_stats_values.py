"""Least and greatest values, wrapped and unwrapped."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.errors import FormatError
from pyhudi.metadata.records.metadata_record import RecordType, decode, encode, record_schema
from pyhudi.metadata.records.stats_values import is_supported, unwrap, value_type, wrap_values
from tests.unit.metadata.samples import golden_files

UTC = dt.UTC
VALUES = [
    (pa.bool_(), [True, None, False]),
    (pa.int32(), [1, None, -(2**31)]),
    (pa.int16(), [1, None, -3]),
    (pa.int64(), [2**62, None, -1]),
    (pa.float32(), [1.5, None, -0.0]),
    (pa.float64(), [1e300, None, -2.5]),
    (pa.string(), ["", None, "zé"]),
    (pa.binary(), [b"", None, b"\xff"]),
    (pa.binary(2), [b"ab", None, b"\xff\0"]),
    (pa.decimal128(20, 4), [Decimal("0.1234"), None, Decimal("-123456789.0001")]),
    (pa.decimal128(9, 0), [Decimal(128), None, Decimal(-129)]),
    (pa.date32(), [dt.date(1969, 1, 1), None, dt.date(2024, 2, 29)]),
    (pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, 1, tzinfo=UTC), None, dt.datetime(1, 1, 1, tzinfo=UTC)]),
    (pa.timestamp("us"), [dt.datetime(2024, 1, 1), None, dt.datetime(1, 1, 1)]),
]


def through_a_file(kind: pa.DataType, values: pa.Array, version: int) -> tuple[pa.Array, pa.Array | None]:
    types = value_type(kind, values.is_null()) if version >= 9 else None
    columns = {"minValue": wrap_values(values, version), "isDeleted": pa.array([False] * len(values))}
    if types is not None:
        columns["valueType"] = types
    stored = encode(RecordType.COLUMN_STATS, pa.table(columns), version)
    back = decode(stored, record_schema(version))["ColumnStatsMetadata"].combine_chunks()
    return back.field("minValue"), back.field("valueType") if version >= 9 else None


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize(("kind", "values"), VALUES, ids=str)
def test_they_come_back(kind: pa.DataType, values: list, version: int):
    array = pa.array(values, kind)
    if not is_supported(kind, version):
        with pytest.raises(FormatError, match="no statistics"):
            wrap_values(array, version)
        return
    found, known = unwrap(through_a_file(kind, array, version)[0], kind, through_a_file(kind, array, version)[1])
    assert found.equals(array)
    assert known.all()


def test_types_without_statistics():
    for kind in (pa.list_(pa.int32()), pa.struct([("a", pa.int32())]), pa.map_(pa.string(), pa.string())):
        assert not is_supported(kind, 9)
        with pytest.raises(FormatError, match="no statistics"):
            wrap_values(pa.nulls(1, kind), 9)
    assert not is_supported(pa.decimal128(20, 4), 8)
    assert is_supported(pa.decimal128(19, 4), 8)


def test_the_vector_of_a_decimal():
    wrapped = wrap_values(pa.array([Decimal("0.1234")], pa.decimal128(20, 4)), 9)
    assert wrapped.to_pylist()[0]["member5"] == {"value": b"\x04\xd2"}
    types = value_type(pa.decimal128(20, 4), pa.array([False, True])).to_pylist()
    assert types == [{"typeOrdinal": 10, "additionalInfo": "20,4"}, {"typeOrdinal": 1, "additionalInfo": None}]


@pytest.mark.parametrize(
    ("written", "value", "read", "expected"),
    [
        (pa.int32(), 5, pa.int64(), 5),
        (pa.int32(), 5, pa.float64(), 5.0),
        (pa.float32(), 0.5, pa.float64(), 0.5),
        (pa.decimal128(5, 2), Decimal("1.25"), pa.decimal128(20, 4), Decimal("1.2500")),
    ],
)
def test_columns_that_have_grown(written: pa.DataType, value: object, read: pa.DataType, expected: object):
    wrapped, types = through_a_file(written, pa.array([value], written), 9)
    found, known = unwrap(wrapped, read, types)
    assert found.to_pylist() == [expected]
    assert known.all()


@pytest.mark.parametrize(
    ("written", "value", "read"),
    [
        (pa.int32(), 5, pa.string()),
        (pa.date32(), dt.date(2024, 1, 1), pa.string()),
        (pa.date32(), dt.date(2024, 1, 1), pa.int32()),
        (pa.string(), "5", pa.int32()),
        (pa.timestamp("us", "UTC"), dt.datetime(2024, 1, 1, tzinfo=UTC), pa.int64()),
        (pa.timestamp("ms", "UTC"), dt.datetime(2024, 1, 1, tzinfo=UTC), pa.timestamp("us", "UTC")),
        (pa.decimal128(5, 2), Decimal("1.25"), pa.binary()),
        (pa.int64(), 2**40, pa.int32()),
    ],
)
def test_nothing_is_known_of_columns_of_another_type(written: pa.DataType, value: object, read: pa.DataType):
    wrapped, types = through_a_file(written, pa.array([value, None], written), 9)
    found, known = unwrap(wrapped, read, types)
    assert found.to_pylist() == [None, None]
    assert known.tolist() == [False, True]


def test_golden_statistics_are_wrapped_as_they_were():
    """Those of the columns whose type the keys of the golden tables tell."""
    kinds = {"_hoodie_record_key": pa.string(), "_hoodie_commit_time": pa.string(), "ts": pa.int64()}
    count = 0
    for file in golden_files():
        if file.partition not in ("column_stats", "partition_stats"):
            continue
        stats = decode(file.entries()["value"], file.schema)["ColumnStatsMetadata"].combine_chunks()
        for name, kind in kinds.items():
            mine = stats.filter(pc.equal(stats.field("columnName"), name))
            types = mine.field("valueType") if file.version >= 9 else None
            for side in ("minValue", "maxValue"):
                found, known = unwrap(mine.field(side), kind, types)
                if not known.all():
                    continue
                assert wrap_values(found, file.version).equals(mine.field(side))
                count += found.null_count < len(found)
                if types is not None:
                    assert value_type(kind, found.is_null()).equals(types)
    assert count > 50
