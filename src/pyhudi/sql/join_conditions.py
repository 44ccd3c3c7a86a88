"""What follows from the condition of a MERGE."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any


def equated_columns(on: str, target: str) -> frozenset[str] | None:
    """Return the columns that a condition says are equal on both sides, if it says nothing else.

    Args:
        on: SQL such as ``t.id = s.id AND t.day = s.day``.
        target: The name of one side.

    Returns:
        Names in lower case; None if there is another condition, a column of another name on the other side, or no
        sqlglot to tell.
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
    found: set[str] = set()
    for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
        name = _equated(part.unnest(), target.lower())
        if name is None:
            return None
        found.add(name)
    return frozenset(found)


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
