"""Values with types of Spark as SQL literals."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyhudi.errors import QueryError
from pyhudi.spark.sql.typed_values import TypedValue, with_python_types


class _Geometry(DataType):
    """A type of later versions of Spark."""

    def simpleString(self) -> str:  # noqa: N802
        return "geometry"


INNER = StructType().add("a", IntegerType()).add("b c", TimestampType())


@pytest.mark.parametrize(
    ("kind", "value", "literal"),
    [
        (IntegerType(), None, "CAST(NULL AS INT)"),
        (NullType(), None, "NULL"),
        (StringType(), "it's", "'it\\'s'"),
        (BooleanType(), False, "FALSE"),
        (IntegerType(), -7, "-7"),
        (ByteType(), 7, "7Y"),
        (LongType(), 7, "7L"),
        (DoubleType(), float("-inf"), "CAST('-inf' AS DOUBLE)"),
        (DecimalType(10, 3), Decimal("1E+2"), "CAST(100BD AS DECIMAL(10,3))"),
        (BinaryType(), bytearray(b"\x01a"), "X'0161'"),
        (DateType(), "-0044-03-15", "DATE '-0044-03-15'"),
        (TimestampType(), Decimal("-0.000001"), "TIMESTAMP '1969-12-31 23:59:59.999999 UTC'"),
        (TimestampType(), Decimal("999999999999.5"), "CAST(999999999999.5BD AS TIMESTAMP_LTZ)"),
        (TimestampNTZType(), "0900-01-02 00:00:00", "TIMESTAMP_NTZ '0900-01-02 00:00:00'"),
        (DayTimeIntervalType(0, 0), "INTERVAL '-1' DAY", "INTERVAL '-1' DAY"),
        (ArrayType(IntegerType()), [1, None], "CAST(array(1, CAST(NULL AS INT)) AS ARRAY<INT>)"),
        (ArrayType(IntegerType()), [], "CAST(array() AS ARRAY<INT>)"),
        (MapType(StringType(), LongType()), {"a": 1}, "CAST(map('a', 1L) AS MAP<STRING, BIGINT>)"),
        (
            INNER,
            (1, Decimal(0)),
            "CAST(struct(1, TIMESTAMP '1970-01-01 00:00:00.000000 UTC') AS STRUCT<`a`: INT, `b c`: TIMESTAMP_LTZ>)",
        ),
    ],
)
def test_literals(kind: DataType, value: object, literal: str) -> None:
    assert TypedValue("x", kind, value).literal() == literal


def test_a_type_without_literals() -> None:
    with pytest.raises(QueryError, match="of the type geometry"):
        TypedValue("x", ArrayType(_Geometry()), ["POINT(1 2)"]).literal()


def test_values_that_python_does_not_have_at_any_depth() -> None:
    seconds = DecimalType(20, 6)
    texts = StructType().add("d", DateType()).add("n", TimestampNTZType()).add("i", DayTimeIntervalType())
    kinds = StructType().add("m", MapType(DateType(), ArrayType(INNER))).add("t", texts)
    inner = StructType().add("a", IntegerType()).add("b c", seconds)
    held = StructType().add("m", MapType(StringType(), ArrayType(inner)))
    assert with_python_types(kinds) == held.add(
        "t", StructType().add("d", "string").add("n", "string").add("i", "string")
    )
