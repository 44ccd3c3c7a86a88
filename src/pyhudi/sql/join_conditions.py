"""Analysis of the condition of a MERGE."""

from __future__ import annotations

from functools import lru_cache
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
    found = equalities(on, target)
    if found is None or any(own != other for own, other in found):
        return None
    return frozenset(own for own, _ in found)


@lru_cache(maxsize=64)  # a MERGE asks several times about its condition
def equalities(on: str, target: str) -> frozenset[tuple[str, str]] | None:
    """Return the pairs of columns that a condition requires to be equal, if it has no other conditions.

    Args:
        on: SQL such as ``t.id = s.number AND t.day = s.day``.
        target: Name of one side.

    Returns:
        Names in lower case, that of the target first; None if there is another condition, or sqlglot is missing.
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
    found: set[tuple[str, str]] = set()
    for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
        pair = _equality(part.unnest(), target.lower())
        if pair is None:
            return None
        found.add(pair)
    return frozenset(found)


def _equality(part: Any, target: str) -> tuple[str, str] | None:
    from sqlglot import exp

    if not isinstance(part, exp.EQ):
        return None
    sides = [part.this, part.expression]
    if not all(isinstance(side, exp.Column) and len(side.parts) == 2 for side in sides):
        return None
    own = [side.table.lower() == target for side in sides]
    if sum(own) != 1:
        return None
    first, second = sides if own[0] else reversed(sides)
    return str(first.name.lower()), str(second.name.lower())
