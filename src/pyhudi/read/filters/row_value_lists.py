"""Many alternatives that compare the same columns with values, as one expression: ``(a, b) IN ((1, 'x'), …)``.

Arrow evaluates expressions recursively: one alternative each would take seconds for thousands of them, and more than
about ten thousand would overflow the stack of the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import is_text
from pyhudi.read.filters.long_expressions import is_in
from pyhudi.read.filters.terms import Term, literal
from pyhudi.read.schema.column_paths import resolve_column, type_at

Conjunction: TypeAlias = tuple[Term, ...]

_FEWEST = 64
"""Least number of alternatives that become one expression."""
_SEPARATORS = ("\x1f", "\x1e", "\x1d", "\x00")


def row_value_lists(
    anyof: Sequence[Conjunction], schema: pa.Schema
) -> tuple[list[pc.Expression], Sequence[Conjunction]]:
    """Return the alternatives of a filter that compare the same columns for equality as one expression for each set of
    columns, and the other alternatives.

    Args:
        anyof: The alternatives.
        schema: Columns of the batches that the filter is evaluated on.

    Raises:
        QueryError: An unknown column, or a value that cannot be compared with its column.
    """
    if len(anyof) < _FEWEST:
        return [], anyof
    kinds: dict[str, pa.DataType] = {}
    groups: dict[tuple[str, ...], list[tuple[Conjunction, list[pa.Scalar]]]] = {}
    others: list[Conjunction] = []
    for conjunction in anyof:
        terms = sorted(conjunction, key=lambda term: term.column)
        values = [_value(term, kinds, schema) for term in terms]
        names = tuple(term.column for term in terms)
        if not names or None in values or len(set(names)) < len(names):
            others.append(conjunction)
        else:
            groups.setdefault(names, []).append((conjunction, values))
    expressions = []
    for names, rows in groups.items():
        expression = _among(names, [values for _, values in rows], schema) if len(rows) >= _FEWEST else None
        if expression is None:
            others += [conjunction for conjunction, _ in rows]
        else:
            expressions.append(expression)
    return expressions, others


def _value(term: Term, kinds: dict[str, pa.DataType], schema: pa.Schema) -> pa.Scalar | None:
    """Return the value that a column must have; None for other comparisons, and for types whose equal values may have
    different texts."""
    if term.column not in kinds:
        kinds[term.column] = type_at(resolve_column(term.column, schema), schema)
    kind = kinds[term.column]
    if term.value is None or not (pa.types.is_integer(kind) or pa.types.is_date32(kind) or is_text(kind)):
        return None
    bound = term.bind(kind)
    if bound.op not in ("=", "=="):
        return None
    value = literal(bound.value, kind, term.column)
    return value if value.type == kind else None


def _among(names: Sequence[str], rows: Sequence[Sequence[pa.Scalar]], schema: pa.Schema) -> pc.Expression | None:
    """Return the expression that some columns have the values of one of the rows; None if texts have all separators.

    The condition on each column alone, which the exact one implies, prunes partitions and row groups.
    """
    paths = [resolve_column(name, schema) for name in names]
    kinds = [type_at(path, schema) for path in paths]
    columns = [
        pa.array([value.as_py() for value in values], kind)
        for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]
    fields = [pc.field(*path) if len(path) > 1 else pc.field(path[0]) for path in paths]
    each = reduce(and_, (is_in(field, column.unique()) for field, column in zip(fields, columns, strict=True)))
    if len(names) == 1:
        return each
    texts = [_as_texts(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    separator = next((sign for sign in _SEPARATORS if not any(_contains(text, sign) for text in texts)), None)
    if separator is None:
        return None
    # A row of the table whose texts have the separator has more of them than any of these.
    joined = pc.binary_join_element_wise(*map(_as_texts, fields, kinds), separator)
    return each & joined.isin(pc.binary_join_element_wise(*texts, separator))


def _contains(texts: pa.StringArray, sign: str) -> bool:
    return bool(pc.any(pc.match_substring(texts, sign)).as_py())


def _as_texts(values: Any, data_type: pa.DataType) -> Any:
    """Return an array, or the expression of a column, as texts that are equal exactly if the values are."""
    return (values.cast(pa.int32()) if pa.types.is_date32(data_type) else values).cast(pa.string())
