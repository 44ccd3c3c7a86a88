"""Comparison of date and time columns with values in filters, independent of the engine.

Engines differ in the interpretation of times without a time zone, and of dates compared with times. So each value is
converted to its column's type when a query is planned: instants for instant columns, days for date columns. Values
without a time zone are in a given zone: the session's if Spark plans, otherwise UTC. A date is its midnight there.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

from pyhudi.errors import QueryError
from pyhudi.read.filters.number_comparison import LISTS, in_whole_numbers

_UNITS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
"""Nanoseconds."""
_DAY = 86_400 * _UNITS["s"]
_EPOCH = dt.datetime(1970, 1, 1)


def is_date_or_time(data_type: pa.DataType) -> bool:
    """Return True for date and timestamp types."""
    return bool(pa.types.is_timestamp(data_type) or pa.types.is_date(data_type))


def in_days_or_instants(op: str, value: Any, data_type: pa.DataType, zone: dt.tzinfo, column: str) -> tuple[str, Any]:
    """Return the equivalent comparison of a date or timestamp column with values of that type, for any value (or list
    of them).

    A value with a higher resolution than the type is expressed with adjacent ones, as for integers.

    Raises:
        QueryError: A value is neither a date nor a time, nor the text of one.
    """
    try:
        if op in LISTS:
            op, converted = in_whole_numbers(op, [_units(item, data_type, zone) for item in value], pa.int64())
            return op, tuple(_typed(number, data_type) for number in converted)
        op, converted = in_whole_numbers(op, _units(value, data_type, zone), pa.int64())
        return op, converted if op in LISTS else _typed(converted, data_type)
    except (ValueError, TypeError, OverflowError, pa.ArrowNotImplementedError) as error:  # Also for Arrow's text types.
        raise QueryError(
            f"{value!r} cannot be compared with column {column!r} of type {data_type}; write a date, a time, or the "
            "text of one such as '2024-01-31' or '2024-01-31 12:00:00+00:00'"
        ) from error


def _units(value: Any, data_type: pa.DataType, zone: dt.tzinfo) -> Decimal:
    """Return a value as a number in the unit of the type since 1970: days, milliseconds, microseconds."""
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
    if pa.types.is_string(scalar.type):
        scalar = _parsed(scalar, data_type)
    if pa.types.is_date(scalar.type):
        scalar = scalar.cast(pa.timestamp("us"))
    if not pa.types.is_timestamp(scalar.type):
        raise TypeError(value)
    count = scalar.cast(pa.timestamp(scalar.type.unit)).cast(pa.int64()).as_py() * _UNITS[scalar.type.unit]
    target_zone = zone if pa.types.is_date(data_type) or data_type.tz is None else dt.UTC
    count = _moved(count, zone if scalar.type.tz is None else dt.UTC, target_zone)
    if pa.types.is_timestamp(data_type):
        return Decimal(count) / _UNITS[data_type.unit]
    days, rest = divmod(count, _DAY)
    return days + (Decimal("0.5") if rest else Decimal(0))


def _parsed(text: pa.Scalar, data_type: pa.DataType) -> pa.Scalar:
    """Parse a text as a date, or as a time with or without a time zone."""
    if pa.types.is_date(data_type):
        return text.cast(pa.date32())
    try:
        return text.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:  # Arrow parses zones only for instant columns.
        return text.cast(pa.timestamp("us", "UTC"))


def _moved(count: int, zone: dt.tzinfo, target_zone: dt.tzinfo) -> int:
    """Convert nanoseconds since 1970 in the wall-clock time of a zone to that of another one."""
    if zone is target_zone:
        return count
    micros, rest = divmod(count, _UNITS["us"])
    moment = (_EPOCH + dt.timedelta(microseconds=micros)).replace(tzinfo=zone)
    local = moment.astimezone(target_zone).replace(tzinfo=None)
    return (local - _EPOCH) // dt.timedelta(microseconds=1) * _UNITS["us"] + rest


def _typed(number: int, data_type: pa.DataType) -> Any:
    if pa.types.is_date64(data_type):
        number *= _DAY // _UNITS["ms"]
    scalar = pa.scalar(number, pa.int32() if pa.types.is_date32(data_type) else pa.int64()).cast(data_type)
    return scalar if pa.types.is_timestamp(data_type) and data_type.unit == "ns" else scalar.as_py()
