"""Comparison of columns with numbers in filters: exact, and in the types in which Spark compares.

A value need not have its column's type: an integer column may be compared with a fraction, or with a number out of its
range. Such a comparison is expressed with integers in the range.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Number: TypeAlias = int | float | Decimal

_MAX_DIGITS = 38
LISTS = ("in", "not in")
"""Operators whose value is a list."""
_NONE, _ALL = ("in", ()), ("not in", ())
"""Comparisons that no value satisfies, and that every non-null value satisfies."""


def as_number(value: Any) -> Number | None:
    """Return a value as a Python number; None for other values. True is 1."""
    plain = value.as_py() if isinstance(value, pa.Scalar) else value
    if isinstance(plain, np.number | np.bool_):
        plain = plain.item()
    if isinstance(plain, bool):
        return int(plain)
    return plain if isinstance(plain, int | float | Decimal) else None


def is_nan(value: Any) -> bool:
    """Return True if a value is NaN."""
    number = as_number(value)
    return number is not None and number != number


def in_whole_numbers(op: str, value: Any, data_type: pa.DataType) -> tuple[str, Any]:
    """Return the equivalent comparison of an integer column with integers of that type, for any value (or list of
    them).

    NaN is greater than all numbers, as in Spark; values of other types are unchanged.
    """
    low, high = _range(data_type)
    if op in LISTS:
        return op, tuple(one for element in value for one in _as_equal(element, low, high))
    number = as_number(value)
    if number is None:
        return op, value
    if op in ("=", "==", "!="):
        equal = _as_equal(value, low, high)
        return (op, equal[0]) if equal else (_ALL if op == "!=" else _NONE)
    downwards = op in ("<", "<=")
    if number != number or number > high:
        return _ALL if downwards else _NONE
    if number < low:
        return _NONE if downwards else _ALL
    whole = math.floor(number)
    if whole == number:
        return op, whole
    return ("<", whole + 1) if downwards else (">", whole)


def _as_equal(value: Any, low: int, high: int) -> tuple[Any, ...]:
    """Return the value of an integer type that equals a value, or none."""
    number = as_number(value)
    if number is None:
        return (value,)
    if number != number:  # NaN.
        return ()
    if not low <= number <= high or math.floor(number) != number:
        return ()
    return (int(number),)


def _range(data_type: pa.DataType) -> tuple[int, int]:
    if pa.types.is_unsigned_integer(data_type):
        return 0, (1 << data_type.bit_width) - 1
    half = 1 << (data_type.bit_width - 1)
    return -half, half - 1


def can_be_compared(data_type: pa.DataType, value: pa.Scalar) -> bool:
    """Return True if a decimal column can be compared with a number: a decimal type must hold both."""
    if not pa.types.is_decimal(value.type):
        return bool(pa.types.is_floating(value.type))
    scale = max(data_type.scale, value.type.scale)
    return bool(
        scale + max(data_type.precision - data_type.scale, value.type.precision - value.type.scale) <= _MAX_DIGITS
    )


def compared_type(data_type: pa.DataType, values: list[pa.Scalar]) -> pa.DataType:
    """Return the type in which Spark compares a column with values: float32 with float64 and decimals as float64.
    (Integers are converted to float32.)"""
    if pa.types.is_float32(data_type) and any(
        pa.types.is_float64(v.type) or pa.types.is_decimal(v.type) for v in values
    ):
        return pa.float64()
    return data_type
