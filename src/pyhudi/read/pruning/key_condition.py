"""The condition that a filter puts on record keys, by which records are skipped before their versions are merged."""

from __future__ import annotations

from collections.abc import Collection, Hashable

import pyarrow as pa

from pyhudi.errors import QueryError
from pyhudi.merge.base_file_rows import Condition
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.filters.terms import Term
from pyhudi.read.schema.column_paths import resolve_column, type_at


def key_condition(row_filter: RowFilter, schema: pa.Schema, keys: Collection[str]) -> Condition | None:
    """Return the condition on some columns that all rows of a filter satisfy; None if there is none.

    Args:
        row_filter: A filter of terms.
        schema: The columns of the table.
        keys: Columns on which all versions of a record agree. Versions that lack them, such as partial updates, have
            nulls instead, so terms that are true of null are not used.
    """
    conjunctions = []
    for conjunction in row_filter.anyof:
        key_terms = tuple(term for term in conjunction if _is_of(term, schema, keys))
        if not key_terms:
            return None
        conjunctions.append(key_terms)
    if not conjunctions:
        return None
    try:
        key_filter = RowFilter(anyof=tuple(conjunctions)).bind(schema)
        expression = key_filter.arrow(schema)
    except QueryError:  # A value of another type: the evaluation of the filter reports it.
        return None
    return Condition(expression, tuple(key_filter.columns(schema)))


def _is_of(term: Term, schema: pa.Schema, keys: Collection[str]) -> bool:
    if term.value is None or not isinstance(term.value, Hashable):
        return False
    steps = resolve_column(term.column, schema)
    # evaluation of SQL may compare floating-point numbers in another precision
    return len(steps) == 1 and steps[0] in keys and not pa.types.is_floating(type_at(steps, schema))
