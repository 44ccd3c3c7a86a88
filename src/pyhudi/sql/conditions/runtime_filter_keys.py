"""Columns of a table that a query compares with those of another one, so that only rows with matching keys are
relevant.

Supported are equalities in the WHERE of the SELECT that has the table in its FROM and in the ON of its inner joins, and
``IN`` with a subquery of one column, if rows of the table without a match do not contribute to the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyhudi.sql.conditions.predicate_pushdown import QueriedTable, conjuncts, name_in_query, select_of

_PLAIN = ("expressions", "from", "from_", "where", "distinct")
"""Clauses that a subquery may have, so that its rows are those of its table that satisfy its WHERE."""


@dataclass(frozen=True, slots=True)
class JoinKey:
    """An equality of columns of two tables.

    Attributes:
        column: Column of the one table.
        other: Position in the text of the reference to the other table.
        other_column: Column of the other table.
    """

    column: str
    other: int
    other_column: str


def join_keys(table: Any) -> tuple[JoinKey, ...]:
    """Return the columns of a table whose values must be among those of a column of another table.

    Args:
        table: The table in the query's sqlglot tree (``exp.Table``).
    """
    select = select_of(table)
    if select is None:
        return ()
    other_tables = [other for other in _tables(select) if other is not table and select_of(other) is select]
    names = [name_in_query(other) for other in _tables(select)]
    if len(set(names)) < len(names):
        return ()
    keys = [
        key
        for part in _conditions(select)
        for other in other_tables
        if (key := _equality(part, table, other)) is not None
    ]
    queried = QueriedTable.in_select(table, select)
    where = select.args.get("where")
    parts = [] if where is None else list(conjuncts(where.this))
    return (*keys, *(key for part in parts if (key := _membership(part, queried)) is not None))


def _tables(select: Any) -> list[Any]:
    """Return the tables in the FROM of a SELECT, and in its joins."""
    from sqlglot import exp

    places = [select.args.get("from_") or select.args.get("from"), *(select.args.get("joins") or [])]
    return [place.this for place in places if place is not None and isinstance(place.this, exp.Table)]


def _conditions(select: Any) -> Iterator[Any]:
    """Return conditions that all rows of the FROM of a SELECT satisfy."""
    where = select.args.get("where")
    if where is not None:
        yield from conjuncts(where.this)
    for join in select.args.get("joins") or []:
        on = join.args.get("on")
        if on is not None and not join.side and not join.method and (join.kind or "INNER").upper() == "INNER":
            yield from conjuncts(on)


def _equality(part: Any, table: Any, other: Any) -> JoinKey | None:
    from sqlglot import exp

    if not isinstance(part, exp.EQ):
        return None
    mine, theirs = (QueriedTable(name_in_query(one), is_only=False) for one in (table, other))
    for left, right in ((part.this, part.expression), (part.expression, part.this)):
        column, key = mine.column(left), theirs.column(right)
        if column is not None and key is not None:
            return _key(column, other, key)
    return None


def _membership(part: Any, table: QueriedTable) -> JoinKey | None:
    """``column IN (SELECT key FROM other WHERE …)``."""
    from sqlglot import exp

    if not isinstance(part, exp.In) or part.args.get("query") is None:
        return None
    column = table.column(part.this)
    inner = part.args["query"].unnest()
    if column is None or not isinstance(inner, exp.Select) or len(inner.expressions) != 1:
        return None
    if any(value for name, value in inner.args.items() if name not in _PLAIN) or len(_tables(inner)) != 1:
        return None
    other = _tables(inner)[0]
    key = QueriedTable(name_in_query(other), is_only=True).column(inner.expressions[0].unalias())
    return None if key is None or select_of(other) is not inner else _key(column, other, key)


def _key(column: str, other: Any, key: str) -> JoinKey | None:
    start = other.parts[0].meta.get("start")
    return None if start is None else JoinKey(column, start, key)
