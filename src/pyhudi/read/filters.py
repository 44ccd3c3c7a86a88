"""Row filters: one value for the three ways to write them, turned into what each reader understands.

A filter is ``[(column, op, value), …]`` (all must hold), a list of such lists (any must hold), a
``pyarrow.compute.Expression``, or SQL text, which only Spark can evaluate. As in SQL, a comparison with null is not
true.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import eq, ge, gt, le, lt, ne, or_
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import QueryError
from pyhudi.read.columnpaths import resolve_column, type_of
from pyhudi.read.numbers import LISTS, can_be_compared, compared_type, in_whole_numbers, is_nan, number_of

Filter: TypeAlias = pc.Expression | str | Sequence[Any]
"""What the public API takes as a filter."""

OPERATORS = ("=", "==", "!=", "<", "<=", ">", ">=", "in", "not in")


@dataclass(frozen=True, slots=True)
class Term:
    """One comparison. ``column`` may be a dotted path into structs; a ``value`` of None asks for null (``=``) or not
    null (``!=``)."""

    column: str
    op: str
    value: Any

    def arrow(self, schema: pa.Schema) -> pc.Expression:
        """As an expression on batches of that schema."""
        path = resolve_column(self.column, schema)
        field = pc.field(*path) if len(path) > 1 else pc.field(path[0])
        if self.value is None:
            return field.is_null() if self.op in ("=", "==") else field.is_valid()
        kind = type_of(path, schema)
        return self.on(kind)._compared(field, kind)

    def on(self, kind: pa.DataType) -> Term:
        """The same comparison, of a column of that type: whole numbers are compared with whole numbers of their type
        alone (`in_whole_numbers`)."""
        if self.value is None or not pa.types.is_integer(kind):
            return self
        op, value = in_whole_numbers(self.op, self.value, kind)
        return Term(self.column, op, value)

    @property
    def values(self) -> tuple[Any, ...]:
        """What the column is compared with; a single value also as one of a list."""
        return tuple(self.value) if self.op in LISTS else (self.value,)

    @property
    def is_true_of_nan(self) -> bool:
        """Whether it is true of what is not a number (NaN), in a column of floating-point numbers: that is equal to
        itself, and greater than all numbers, as in Spark."""
        asked = any(map(is_nan, self.values))
        if self.op in ("<", ">="):
            return self.op == ">="
        return asked if self.op in ("=", "==", "in", "<=") else not asked

    def _compared(self, field: pc.Expression, kind: pa.DataType) -> pc.Expression:
        naturals = [_scalar(value, self.column) for value in self.values]
        if pa.types.is_date(kind) and any(pa.types.is_timestamp(natural.type) for natural in naturals):
            # a date is its midnight in UTC
            like: pa.DataType = pa.timestamp("us")
            given = [pa.scalar(_in_utc(value, self.column), like) for value in self.values]
        else:
            like = compared_type(kind, naturals)
            given = [literal(value, like, self.column) for value in self.values]
        if like != kind:
            field = field.cast(like)
        if self.op in LISTS:
            found = _among(field, given, like)
            return found & field.is_valid() if self.op == "in" else ~found & field.is_valid()
        if pa.types.is_floating(like):
            return self._ordered(field, given[0])
        return _COMPARE[self.op](field, given[0])

    def _ordered(self, field: pc.Expression, value: pa.Scalar) -> pc.Expression:
        """Of floating-point numbers; Arrow finds what is not a number neither equal to anything nor less or greater."""
        none = field.is_nan()
        if not is_nan(value):
            found = _COMPARE[self.op](field, value)
            return none | found if self.is_true_of_nan else found
        compared = {"<=": field.is_valid(), "<": ~none, "!=": ~none, ">": none & ~none}
        return compared.get(self.op, none)


_COMPARE = {"=": eq, "==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def _among(field: pc.Expression, values: list[pa.Scalar], kind: pa.DataType) -> pc.Expression:
    """Where a column has one of some values; those of other types are compared one by one."""
    same = [value.as_py() for value in values if value.type == kind]
    if pa.types.is_floating(kind) and 0.0 in same:
        same += [0.0, -0.0]  # equal to each other, but not the same value of a list
    others = (field == value for value in values if value.type != kind)
    return reduce(or_, others, field.isin(pa.array(same, kind)))


def _in_utc(value: Any, column: str) -> dt.datetime:
    """A date or a time as the time in UTC, which one without a zone is of; a date is its midnight."""
    natural = _scalar(value, column)
    if not pa.types.is_timestamp(natural.type):
        return dt.datetime.combine(literal(value, pa.date32(), column).as_py(), dt.time())
    found: dt.datetime = natural.cast(pa.timestamp("us", natural.type.tz)).as_py()
    return found if found.tzinfo is None else found.astimezone(dt.UTC).replace(tzinfo=None)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A parsed filter: exactly one of the three is set. ``anyof`` is a disjunction of conjunctions."""

    anyof: tuple[tuple[Term, ...], ...] = ()
    expression: pc.Expression | None = None
    sql: str | None = None

    @classmethod
    def parse(cls, value: Filter | None) -> RowFilter | None:
        """Read a filter in any of its spellings; None and an empty list mean no filter.

        Raises:
            QueryError: it is none of them, or an operator is unknown.
        """
        if value is None:
            return None
        if isinstance(value, str):
            return cls(sql=value)
        if isinstance(value, pc.Expression):
            return cls(expression=value)
        if not isinstance(value, Sequence):
            raise QueryError(
                f"a filter must be a list of (column, op, value), a pyarrow expression or SQL, not {value!r}"
            )
        if not value:
            return None
        if isinstance(value[0], str):
            raise QueryError(f"a filter must be a list of (column, op, value), not {value!r}; write [{tuple(value)!r}]")
        groups = [value] if isinstance(value[0], tuple) else value
        return cls(anyof=tuple(tuple(_term(term) for term in group) for group in groups))

    def arrow(self, schema: pa.Schema) -> pc.Expression:
        """As a pyarrow expression on batches of that schema.

        Raises:
            QueryError: SQL text, an unknown column, or a value that cannot be compared with the column.
        """
        if self.sql is not None:
            raise QueryError(
                f"the filter {self.sql!r} is SQL, which only to_spark() can evaluate; write it as "
                "[(column, op, value), …] or as a pyarrow expression"
            )
        if self.expression is not None:
            return self.expression
        return reduce(
            lambda a, b: a | b,
            (reduce(lambda a, b: a & b, (term.arrow(schema) for term in group)) for group in self.anyof if group),
        )

    def on(self, schema: pa.Schema) -> RowFilter:
        """The same filter of columns of that schema (`Term.on`)."""
        if not self.anyof:
            return self
        return RowFilter(
            anyof=tuple(
                tuple(t.on(type_of(resolve_column(t.column, schema), schema)) for t in group) for group in self.anyof
            )
        )

    def is_for_row_groups(self, schema: pa.Schema) -> bool:
        """Whether Arrow may leave out row groups by it: their statistics do not tell of what is not a number, of which
        all comparisons may be true but equality with a number, and being less than one."""
        return not any(
            t.value is not None
            and (t.op not in ("=", "==", "<", "<=") or is_nan(t.value))
            and pa.types.is_floating(type_of(resolve_column(t.column, schema), schema))
            for group in self.anyof
            for t in group
        )

    def for_pruning(self, schema: pa.Schema) -> RowFilter | None:
        """What must be true of every row of the filter, in a form that tells which files can be left out.

        Of SQL text that is as much as can be understood of it (`pyhudi.read.sql`); None: nothing.
        """
        if self.sql is None:
            return self
        from pyhudi.read.sql import necessary

        groups = necessary(self.sql, schema)
        return None if groups is None else RowFilter(anyof=groups)

    def sure(self, schema: pa.Schema) -> RowFilter | None:
        """The filter without the terms that not everybody understands alike (`is_sure`), which leaves out no row more
        than it; None: nothing is left of it."""
        if self.expression is not None or self.sql is not None:
            return self
        groups = tuple(
            tuple(t for t in group if is_sure(t, type_of(resolve_column(t.column, schema), schema)))
            for group in self.anyof
        )
        return RowFilter(anyof=groups) if all(groups) else None

    def columns(self, schema: pa.Schema) -> list[str]:
        """Top-level columns of the schema that the filter needs (for a pyarrow expression: all it may need)."""
        if self.expression is not None:
            text = str(self.expression)
            return [name for name in schema.names if name in text]
        used = {resolve_column(term.column, schema)[0] for group in self.anyof for term in group}
        return [name for name in schema.names if name in used]

    def __str__(self) -> str:
        if self.sql is not None:
            return self.sql
        if self.expression is not None:
            return str(self.expression)
        return " or ".join(
            "(" + " and ".join(f"{t.column} {t.op} {t.value!r}" for t in group) + ")" for group in self.anyof
        )


def _term(value: Any) -> Term:
    if not isinstance(value, tuple) or len(value) != 3 or not isinstance(value[0], str):
        raise QueryError(f"a filter term must be (column, op, value), not {value!r}")
    column, op, operand = value
    if op not in OPERATORS:
        raise QueryError(f"unknown operator {op!r} in the filter term {value!r}; there are {', '.join(OPERATORS)}")
    if op in LISTS:
        if isinstance(operand, str) or not hasattr(operand, "__iter__"):
            raise QueryError(f"the filter term {value!r} needs a list of values")
        operand = tuple(v for v in operand if v is not None)
    elif operand is None and op not in ("=", "==", "!="):
        raise QueryError(f"the filter term {value!r} compares with null, which is never true; use '=' or '!='")
    return Term(column, op, operand)


def literal(value: Any, kind: pa.DataType, column: str) -> pa.Scalar:
    """The value in the column's type where it is the same in it; else numbers, and times compared with dates, keep
    their own type (``int > 1.5``). In types of floating point it is the nearest number.

    Raises:
        QueryError: it cannot be compared with the column.
    """
    natural = _scalar(value, column)
    number = number_of(value)
    if natural.type == kind or (pa.types.is_date(kind) and pa.types.is_timestamp(natural.type)):
        return natural
    try:
        if number is not None and pa.types.is_floating(kind):
            return pa.scalar(float(number), kind)
        if number is not None and pa.types.is_integer(kind):
            op, whole = in_whole_numbers("=", number, kind)
            return pa.scalar(whole, kind) if op == "=" else natural
        if pa.types.is_string(natural.type) and not pa.types.is_string(kind):
            return natural.cast(kind)
        return pa.scalar(natural.as_py() if number is None else number, kind)
    except (ValueError, TypeError, OverflowError, pa.ArrowNotImplementedError) as e:  # of Arrow, too
        if number is not None and pa.types.is_decimal(kind):
            exact = _scalar(Decimal(number) if isinstance(number, int) else number, column)
            if can_be_compared(kind, exact):
                return exact
        raise QueryError(
            f"{value!r} cannot be compared with column {column!r} of type {kind}; write a value of that type"
        ) from e


def is_sure(term: Term, kind: pa.DataType) -> bool:
    """Whether a comparison is the same one for whoever evaluates it.

    A time without a zone is one of the session's zone to Spark, and UTC here; a date is compared with a time as its
    midnight, or the time is cut to a date.

    Raises:
        QueryError: it has a value that no column can have.
    """
    if term.value is None or not pa.types.is_temporal(kind):
        return True
    for value in term.values:
        natural = _scalar(value, term.column).type
        if pa.types.is_timestamp(natural) != pa.types.is_timestamp(kind) and pa.types.is_temporal(natural):
            return False
        if pa.types.is_timestamp(natural) and (natural.tz is None) != (kind.tz is None):
            return False
    return True


def _scalar(value: Any, column: str) -> pa.Scalar:
    """A value in its own type; whole numbers of more than 64 bits are decimals."""
    try:
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            return pa.scalar(Decimal(value))
        return value if isinstance(value, pa.Scalar) else pa.scalar(value)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as e:
        raise QueryError(
            f"{value!r} in the filter on column {column!r} is no value of a column type; write a number of at most 38 "
            "digits, a text, a date or a time"
        ) from e
