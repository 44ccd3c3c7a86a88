"""Row filters: one class for the three forms of a filter, converted to the form that each reader supports.

A filter is ``[(column, op, value), …]`` (a conjunction), a list of such lists (a disjunction), a
``pyarrow.compute.Expression``, or SQL text. As in SQL, a comparison with null is not true.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import and_, or_
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import QueryError
from pyhudi.read.filters.long_expressions import combined
from pyhudi.read.filters.number_comparison import LISTS, is_nan
from pyhudi.read.filters.row_value_lists import row_value_lists
from pyhudi.read.filters.sql_predicate import equivalent_conditions, implied_predicate, literal_of_other_type
from pyhudi.read.filters.terms import OPERATORS, Term
from pyhudi.read.filters.unknown_columns import unknown_column, unquoted_text
from pyhudi.read.schema.column_paths import resolve_column, type_at

Filter: TypeAlias = pc.Expression | str | Sequence[Any]
"""Forms of a filter in the public API."""
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A parsed filter: exactly one of the three is set. ``anyof`` is a disjunction of conjunctions."""

    anyof: tuple[tuple[Term, ...], ...] = ()
    expression: pc.Expression | None = None
    sql: str | None = None

    @classmethod
    def parse(cls, value: Filter | RowFilter | None) -> RowFilter | None:
        """Parse a filter in any of its forms; None, an empty list, and one in which a list is empty mean no filter. One
        that is parsed is returned.

        Raises:
            QueryError: The filter has another form, or an operator is unknown.
        """
        if value is None or isinstance(value, RowFilter):
            return value
        if isinstance(value, str):
            if not value.strip():
                raise QueryError("the filter is an empty text; leave it out for all rows")
            return cls(sql=value)
        if isinstance(value, pc.Expression):
            return cls(expression=value)
        if isinstance(value, Mapping):
            terms = ", ".join(f"({column!r}, '=', {wanted!r})" for column, wanted in value.items())
            raise QueryError(f"a filter must be a list of (column, op, value), not {value!r}; write [{terms}]")
        if not isinstance(value, Sequence):
            raise QueryError(
                f"a filter must be a list of (column, op, value), a pyarrow expression or SQL, not {value!r}"
            )
        if not value:
            return None
        if isinstance(value[0], str):
            raise QueryError(f"a filter must be a list of (column, op, value), not {value!r}; write [{tuple(value)!r}]")
        conjunctions = [value] if isinstance(value[0], tuple) else value
        parsed = tuple(tuple(_term(term) for term in conjunction) for conjunction in conjunctions)
        return None if () in parsed else cls(anyof=parsed)

    def arrow(self, schema: pa.Schema) -> pc.Expression:
        """Return the filter as a pyarrow expression on batches of that schema.

        Raises:
            QueryError: SQL text, an unknown column, or a value that cannot be compared with the column.
        """
        if self.sql is not None:
            return self.without_sql(schema).arrow(schema)
        if self.expression is not None:
            return self.expression
        lists, others = row_value_lists(self.anyof, schema)
        alternatives = (combined(and_, (term.arrow(schema) for term in conjunction)) for conjunction in others)
        return combined(or_, (*lists, *alternatives))

    def bind(self, schema: pa.Schema, zone: dt.tzinfo = dt.UTC) -> RowFilter:
        """Return the filter adapted to the column types of that schema (`Term.bind`).

        Raises:
            QueryError: An unknown column, a value that cannot be compared with the column, or a pyarrow expression that
                cannot be evaluated.
        """
        if self.expression is not None:
            _check_expression(self.expression, schema)
        if not self.anyof:
            return self
        return RowFilter(
            anyof=tuple(
                tuple(t.bind(type_at(resolve_column(t.column, schema), schema), zone) for t in conjunction)
                for conjunction in self.anyof
            )
        )

    def without_sql(self, schema: pa.Schema) -> RowFilter:
        """Return the filter in a form that does not require Spark.

        Raises:
            QueryError: SQL text that requires Spark, or has an unknown column.
        """
        if self.sql is None:
            return self
        conjunctions = equivalent_conditions(self.sql, schema)
        if conjunctions is None:
            unknown = unknown_column(self.sql, schema)
            if unknown is not None:
                raise QueryError(f"no column {unknown!r}; the table has {', '.join(schema.names)}")
            word = unquoted_text(self.sql, schema)
            if word is not None:
                raise QueryError(
                    f"no column {word!r} in the filter {self.sql!r}; a text is written in quotes: '{word}'"
                )
            reason = literal_of_other_type(self.sql, schema)
            because = f", because {reason}" if reason else ""
            raise QueryError(
                f"the filter {self.sql!r} requires Spark{because}: use to_spark(), or write it as "
                "[(column, op, value), …] or as a pyarrow expression. Without Spark, SQL may compare columns with "
                "literals of their own type (=, <>, <, <=, >, >=, IN, BETWEEN, LIKE 'prefix%', IS NULL; AND, OR, NOT)"
            )
        return RowFilter(anyof=conjunctions).bind(schema)

    def residual(self, values: Mapping[str, Any], schema: pa.Schema) -> RowFilter | bool:
        """Return the remaining filter for rows whose columns have these values: only terms on other columns; or whether
        all rows match. A pyarrow expression is unchanged."""
        if not self.anyof:
            return self
        row = pa.table({name: pa.array([value], schema.field(name).type) for name, value in values.items()})
        known = {name for name in self._names() if resolve_column(name, schema)[0] in values}
        conjunctions = []
        for conjunction in self.anyof:
            if all(row.filter(term.arrow(schema)).num_rows for term in conjunction if term.column in known):
                conjunctions.append(tuple(term for term in conjunction if term.column not in known))
        return True if () in conjunctions else bool(conjunctions) and RowFilter(anyof=tuple(conjunctions))

    def is_for_row_groups(self, schema: pa.Schema) -> bool:
        """Return True if Arrow may prune row groups by it: their statistics omit NaN, for which all comparisons may be
        true except equality with a number and less-than."""
        return not any(
            t.value is not None
            and (t.op not in ("=", "==", "<", "<=") or is_nan(t.value))
            and pa.types.is_floating(type_at(resolve_column(t.column, schema), schema))
            for conjunction in self.anyof
            for t in conjunction
        )

    def for_pruning(self, schema: pa.Schema) -> RowFilter | None:
        """Return the condition that every matching row satisfies, in a form for pruning files.

        For SQL text, parts that are not supported (`pyhudi.read.filters.sql_predicate`) are omitted; None: no condition
        is implied.
        """
        if self.sql is None:
            return self
        conjunctions = implied_predicate(self.sql, schema)
        return None if conjunctions is None else RowFilter(anyof=conjunctions)

    def for_rows(self, schema: pa.Schema) -> RowFilter | None:
        """Return the condition implied for every row of the filter, in a form by which rows can be skipped before
        Spark evaluates the filter; None: nothing is implied.

        Comparisons of SQL with floating-point columns are not part of it: Spark compares short floats as long ones.
        """
        implied = self.for_pruning(schema)
        if self.sql is None or implied is None:
            return implied
        conjunctions = tuple(
            tuple(t for t in conjunction if not _is_floating(t, schema)) for conjunction in implied.anyof
        )
        return RowFilter(anyof=conjunctions) if conjunctions and all(conjunctions) else None

    def columns(self, schema: pa.Schema) -> list[str]:
        """Return the top-level columns of the schema that the filter needs (for a pyarrow expression: all it may
        need)."""
        if self.expression is not None:
            text = str(self.expression)
            return [name for name in schema.names if name in text]
        used = {resolve_column(name, schema)[0] for name in self._names()}
        return [name for name in schema.names if name in used]

    def _names(self) -> set[str]:
        """Return the columns of the terms, as they are written."""
        return {term.column for conjunction in self.anyof for term in conjunction}

    def __str__(self) -> str:
        if self.sql is not None:
            return self.sql
        if self.expression is not None:
            return str(self.expression)
        return " or ".join(
            "(" + " and ".join(f"{t.column} {t.op} {t.value!r}" for t in conjunction) + ")"
            for conjunction in self.anyof
        )


def _check_expression(expression: pc.Expression, schema: pa.Schema) -> None:
    """Evaluate a pyarrow expression on no rows.

    Raises:
        QueryError: It has an unknown column or an operation that the types do not have, it is no condition, or it
            refers to columns by position, which depends on the columns that are read.
    """
    if "FieldPath(" in _QUOTED.sub("", str(expression)):
        raise QueryError(f"the filter {expression} refers to a column by its position; use pc.field(name)")
    try:
        schema.empty_table().filter(expression)
    except pa.ArrowException as error:
        columns = ", ".join(f"{field.name} ({field.type})" for field in schema)
        reason = str(error).partition(f" in {schema.names[0]}:")[0]  # it may list the columns line by line
        raise QueryError(f"the filter {expression} cannot be evaluated: {reason}; the columns are {columns}") from error


def _is_floating(term: Term, schema: pa.Schema) -> bool:
    return bool(pa.types.is_floating(type_at(resolve_column(term.column, schema), schema)))


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
