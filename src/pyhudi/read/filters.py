"""Row filters: one value for the three ways to write them, turned into what each reader understands.

A filter is ``[(column, op, value), …]`` (all must hold), a list of such lists (any must hold), a
``pyarrow.compute.Expression``, or SQL text, which only Spark can evaluate. As in SQL, a comparison with null is not
true.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import QueryError

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
        kind = _type_of(path, schema)
        if pa.types.is_date(kind) and self._has_times():
            return _by_midnight(field, self.column, self.op, self.value)
        if self.op in ("in", "not in"):
            values = [literal(v, kind, self.column) for v in self.value]
            found = field.isin(pa.array([v.as_py() for v in values], values[0].type if values else kind))
            return found & field.is_valid() if self.op == "in" else ~found & field.is_valid()
        value = literal(self.value, kind, self.column)
        match self.op:
            case "=" | "==":
                return field == value
            case "!=":
                return field != value
            case "<":
                return field < value
            case "<=":
                return field <= value
            case ">":
                return field > value
            case _:
                return field >= value

    def _has_times(self) -> bool:
        values = self.value if self.op in ("in", "not in") else (self.value,)
        return any(pa.types.is_timestamp(_scalar(value, self.column).type) for value in values)


def _by_midnight(days: pc.Expression, column: str, op: str, value: Any) -> pc.Expression:
    """A comparison of dates with times: a date is its midnight in UTC."""
    midnights = days.cast(pa.timestamp("us"))
    if op in ("in", "not in"):
        found = midnights.isin(pa.array([_in_utc(one, column) for one in value], pa.timestamp("us")))
        return found & days.is_valid() if op == "in" else ~found & days.is_valid()
    time = pa.scalar(_in_utc(value, column), pa.timestamp("us"))
    match op:
        case "=" | "==":
            return midnights == time
        case "!=":
            return midnights != time
        case "<":
            return midnights < time
        case "<=":
            return midnights <= time
        case ">":
            return midnights > time
        case _:
            return midnights >= time


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
            tuple(t for t in group if is_sure(t, _type_of(resolve_column(t.column, schema), schema)))
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


def resolve_column(column: str, schema: pa.Schema) -> list[str]:
    """The path of a column: its name as it is, or the steps of a dotted path.

    Raises:
        QueryError: the schema has no such column.
    """
    if column in schema.names:
        return [column]
    steps = column.split(".")
    kind: Any = schema
    for step in steps:
        names = (
            kind.names if isinstance(kind, pa.Schema) else [f.name for f in kind] if pa.types.is_struct(kind) else []
        )
        if step not in names:
            raise QueryError(f"no column {column!r}; the table has {', '.join(schema.names)}")
        kind = kind.field(step).type
    return steps


def _type_of(path: list[str], schema: pa.Schema) -> pa.DataType:
    kind: Any = schema
    for step in path:
        kind = kind.field(step).type
    return kind


def _term(value: Any) -> Term:
    if not isinstance(value, tuple) or len(value) != 3 or not isinstance(value[0], str):
        raise QueryError(f"a filter term must be (column, op, value), not {value!r}")
    column, op, operand = value
    if op not in OPERATORS:
        raise QueryError(f"unknown operator {op!r} in the filter term {value!r}; there are {', '.join(OPERATORS)}")
    if op in ("in", "not in"):
        if isinstance(operand, str) or not hasattr(operand, "__iter__"):
            raise QueryError(f"the filter term {value!r} needs a list of values")
        operand = tuple(v for v in operand if v is not None)
    elif operand is None and op not in ("=", "==", "!="):
        raise QueryError(f"the filter term {value!r} compares with null, which is never true; use '=' or '!='")
    return Term(column, op, operand)


def literal(value: Any, kind: pa.DataType, column: str) -> pa.Scalar:
    """The value in the column's type where it fits; numbers that do not fit keep their own type (``int > 1.5``)."""
    natural = _scalar(value, column)
    try:
        if pa.types.is_string(natural.type) and not pa.types.is_string(kind):
            return natural.cast(kind)
        return pa.scalar(natural.as_py(), kind) if natural.type != kind else natural
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as e:
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if numeric and not pa.types.is_string(natural.type) and isinstance(value, int | float):
            return natural
        raise QueryError(f"{value!r} cannot be compared with column {column!r} of type {kind}") from e


def is_sure(term: Term, kind: pa.DataType) -> bool:
    """Whether a comparison is the same one for whoever evaluates it.

    A time without a zone is one of the session's zone to Spark, and UTC here; a date is compared with a time as its
    midnight, or the time is cut to a date.

    Raises:
        QueryError: it has a value that no column can have.
    """
    if term.value is None or not pa.types.is_temporal(kind):
        return True
    values = term.value if term.op in ("in", "not in") else (term.value,)
    for value in values:
        natural = _scalar(value, term.column).type
        if pa.types.is_timestamp(natural) != pa.types.is_timestamp(kind) and pa.types.is_temporal(natural):
            return False
        if pa.types.is_timestamp(natural) and (natural.tz is None) != (kind.tz is None):
            return False
    return True


def _scalar(value: Any, column: str) -> pa.Scalar:
    try:
        return value if isinstance(value, pa.Scalar) else pa.scalar(value)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as e:
        raise QueryError(f"{value!r} in the filter on column {column!r} is no value of a column type") from e
