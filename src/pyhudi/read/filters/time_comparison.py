"""Dates and times of filters as columns are compared with them, whoever compares.

Engines disagree on what a time without a zone is, and on a date beside a time. So each value is made one of its
column's type when a query is planned: instants for columns of instants, days for columns of dates. What has no zone is
meant in a given one: the session's where Spark plans, else UTC. A date is its midnight there.
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


def is_date_or_time(kind: pa.DataType) -> bool:
    """Return True if values of a type are days or points in time."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def in_days_or_instants(op: str, value: Any, kind: pa.DataType, zone: dt.tzinfo, column: str) -> tuple[str, Any]:
    """The comparison of a column of a date or timestamp type with any value (or list of them), by values of that type.

    A value that is more exact than the type is told by the ones beside it, as for whole numbers.

    Raises:
        QueryError: a value that is neither a date nor a time, nor the text of one.
    """
    try:
        if op in LISTS:
            op, found = in_whole_numbers(op, [_units(one, kind, zone) for one in value], pa.int64())
            return op, tuple(_typed(number, kind) for number in found)
        op, found = in_whole_numbers(op, _units(value, kind, zone), pa.int64())
        return op, found if op in LISTS else _typed(found, kind)
    except (ValueError, TypeError, OverflowError, pa.ArrowNotImplementedError) as e:  # of Arrow, too
        raise QueryError(
            f"{value!r} cannot be compared with column {column!r} of type {kind}; write a date, a time, or the text of "
            "one such as '2024-01-31' or '2024-01-31 12:00:00+00:00'"
        ) from e


def _units(value: Any, kind: pa.DataType, zone: dt.tzinfo) -> Decimal:
    """A value as a number of what a type counts from 1970 on: days, milliseconds, microseconds."""
    given = value if isinstance(value, pa.Scalar) else pa.scalar(value)
    if pa.types.is_string(given.type):
        given = _parsed(given, kind)
    if pa.types.is_date(given.type):
        given = given.cast(pa.timestamp("us"))
    if not pa.types.is_timestamp(given.type):
        raise TypeError(value)
    count = given.cast(pa.timestamp(given.type.unit)).cast(pa.int64()).as_py() * _UNITS[given.type.unit]
    wanted = zone if pa.types.is_date(kind) or kind.tz is None else dt.UTC
    count = _moved(count, zone if given.type.tz is None else dt.UTC, wanted)
    if pa.types.is_timestamp(kind):
        return Decimal(count) / _UNITS[kind.unit]
    days, rest = divmod(count, _DAY)
    return days + (Decimal("0.5") if rest else Decimal(0))


def _parsed(text: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    """A text as a day, or as a time with or without a zone."""
    if pa.types.is_date(kind):
        return text.cast(pa.date32())
    try:
        return text.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:  # Arrow takes zones for columns of instants alone
        return text.cast(pa.timestamp("us", "UTC"))


def _moved(count: int, zone: dt.tzinfo, wanted: dt.tzinfo) -> int:
    """Nanoseconds since 1970 on the clocks of a zone as on those of another one."""
    if zone is wanted:
        return count
    micros, rest = divmod(count, _UNITS["us"])
    there = (_EPOCH + dt.timedelta(microseconds=micros)).replace(tzinfo=zone).astimezone(wanted).replace(tzinfo=None)
    return (there - _EPOCH) // dt.timedelta(microseconds=1) * _UNITS["us"] + rest


def _typed(number: int, kind: pa.DataType) -> Any:
    if pa.types.is_date64(kind):
        number *= _DAY // _UNITS["ms"]
    found = pa.scalar(number, pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)
    return found if pa.types.is_timestamp(kind) and kind.unit == "ns" else found.as_py()
