"""Terms of row filters: comparisons of a column with a value, as Arrow expressions."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne, or_
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import QueryError
from pyhudi.read.filters.long_expressions import combined, is_in
from pyhudi.read.filters.number_comparison import (
    LISTS,
    as_number,
    can_be_compared,
    compared_type,
    in_whole_numbers,
    is_nan,
)
from pyhudi.read.filters.time_comparison import in_days_or_instants, is_date_or_time
from pyhudi.read.schema.column_paths import resolve_column, type_at

OPERATORS = ("=", "==", "!=", "<", "<=", ">", ">=", "in", "not in")


@dataclass(frozen=True, slots=True)
class Term:
    """One comparison. ``column`` may be a dotted path into structs; a ``value`` of None means null (``=``) or not null
    (``!=``)."""

    column: str
    op: str
    value: Any

    def arrow(self, schema: pa.Schema) -> pc.Expression:
        """Return the term as a pyarrow expression on batches of that schema."""
        path = resolve_column(self.column, schema)
        field = pc.field(*path) if len(path) > 1 else pc.field(path[0])
        if self.value is None:
            return field.is_null() if self.op in ("=", "==") else field.is_valid()
        data_type = type_at(path, schema)
        return self.bind(data_type)._compared(field, data_type)

    def bind(self, data_type: pa.DataType, zone: dt.tzinfo = dt.UTC) -> Term:
        """Return the term adapted to a column type: integers are compared with integers of their type
        (`in_whole_numbers`), dates and times with values of their type, in which values without a time zone are in
        ``zone`` (`in_days_or_instants`).

        Raises:
            QueryError: A date or time column is compared with another value.
        """
        if self.value is None:
            return self
        if pa.types.is_integer(data_type):
            op, value = in_whole_numbers(self.op, self.value, data_type)
        elif is_date_or_time(data_type):
            op, value = in_days_or_instants(self.op, self.value, data_type, zone, self.column)
        else:
            return self
        return Term(self.column, op, value)

    @property
    def values(self) -> tuple[Any, ...]:
        """Values that the column is compared with, as a list."""
        return tuple(self.value) if self.op in LISTS else (self.value,)

    @property
    def is_true_of_nan(self) -> bool:
        """True if it is true for NaN in a floating-point column, which equals itself and is greater than all numbers,
        as in Spark."""
        compares_nan = any(map(is_nan, self.values))
        if self.op in ("<", ">="):
            return self.op == ">="
        return compares_nan if self.op in ("=", "==", "in", "<=") else not compares_nan

    def _compared(self, field: pc.Expression, data_type: pa.DataType) -> pc.Expression:
        like = compared_type(data_type, [_scalar(value, self.column) for value in self.values])
        operands = [literal(value, like, self.column) for value in self.values]
        if like != data_type:
            field = field.cast(like)
        if self.op in LISTS:
            among = _among(field, operands, like)
            return among & field.is_valid() if self.op == "in" else ~among & field.is_valid()
        if pa.types.is_floating(like):
            return self._ordered(field, operands[0])
        return _COMPARE[self.op](field, operands[0])

    def _ordered(self, field: pc.Expression, value: pa.Scalar) -> pc.Expression:
        """Return a comparison of floating-point numbers with Spark's order; in Arrow NaN equals nothing and is neither
        less nor greater."""
        none = field.is_nan()
        if not is_nan(value):
            matches = _COMPARE[self.op](field, value)
            return none | matches if self.is_true_of_nan else matches
        compared = {"<=": field.is_valid(), "<": ~none, "!=": ~none, ">": none & ~none}
        return compared.get(self.op, none)


Conjunctions: TypeAlias = tuple[tuple[Term, ...], ...]
"""A disjunction of conjunctions."""


_COMPARE = {"=": eq, "==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def _among(field: pc.Expression, values: list[pa.Scalar], data_type: pa.DataType) -> pc.Expression:
    """Return an expression that is true if a column has one of some values; those of other types are compared one by
    one."""
    same = [value.as_py() for value in values if value.type == data_type]
    if pa.types.is_floating(data_type) and 0.0 in same:
        same += [0.0, -0.0]  # Equal to each other, but different values of a list.
    others = (field == value for value in values if value.type != data_type)
    return combined(or_, (is_in(field, pa.array(same, data_type)), *others))


def literal(value: Any, data_type: pa.DataType, column: str) -> pa.Scalar:
    """Return the value in the column's type if it is unchanged in it; otherwise numbers keep their own type (``int >
    1.5``). For floating-point types it is the nearest number.

    Raises:
        QueryError: The value cannot be compared with the column.
    """
    scalar = _scalar(value, column)
    number = as_number(value)
    if scalar.type == data_type or (pa.types.is_date(data_type) and pa.types.is_timestamp(scalar.type)):
        return scalar  # A time is not truncated to a day.
    try:
        if number is not None and pa.types.is_floating(data_type):
            return pa.scalar(float(number), data_type)
        if number is not None and pa.types.is_integer(data_type):
            op, whole = in_whole_numbers("=", number, data_type)
            return pa.scalar(whole, data_type) if op == "=" else scalar
        if pa.types.is_string(scalar.type) and not pa.types.is_string(data_type):
            return scalar.cast(data_type)
        return pa.scalar(scalar.as_py() if number is None else number, data_type)
    except (ValueError, TypeError, OverflowError, pa.ArrowNotImplementedError) as error:  # Also for Arrow's text types.
        if number is not None and pa.types.is_decimal(data_type):
            exact = _scalar(Decimal(number) if isinstance(number, int) else number, column)
            if can_be_compared(data_type, exact):
                return exact
        raise QueryError(
            f"{value!r} cannot be compared with column {column!r} of type {data_type}; write a value of that type"
        ) from error


def _scalar(value: Any, column: str) -> pa.Scalar:
    """Return a value in its own type; integers of more than 64 bits are decimals."""
    try:
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            return pa.scalar(Decimal(value))
        return value if isinstance(value, pa.Scalar) else pa.scalar(value)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise QueryError(
            f"{value!r} in the filter on column {column!r} has an unsupported type; use a number of at most 38 "
            "digits, a text, a date or a time"
        ) from error
