"""Analysis of the condition of a MERGE."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any


def equated_columns(on: str, target: str) -> frozenset[str] | None:
    """Return the columns that a condition requires to be equal on both sides, if it has no other conditions.

    Args:
        on: SQL such as ``t.id = s.id AND t.day = s.day``.
        target: Name of one side.

    Returns:
        Names in lower case; None if there is another condition, or a column with another name on the other side, or
        sqlglot is missing.
    """
    if find_spec("sqlglot") is None:
        return None
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(on, read="spark")
    except SqlglotError:
        return None
    columns: set[str] = set()
    for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
        name = _equated(part.unnest(), target.lower())
        if name is None:
            return None
        columns.add(name)
    return frozenset(columns)


def _equated(part: Any, target: str) -> str | None:
    from sqlglot import exp

    if not isinstance(part, exp.EQ):
        return None
    sides = [part.this, part.expression]
    if not all(isinstance(side, exp.Column) and len(side.parts) == 2 for side in sides):
        return None
    if len({side.name.lower() for side in sides}) > 1 or sum(side.table.lower() == target for side in sides) != 1:
        return None
    return str(part.this.name.lower())
