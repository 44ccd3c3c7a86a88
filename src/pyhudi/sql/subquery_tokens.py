"""Subqueries in the tokens of an expression."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pyhudi.sql.token_cursor import Token

_QUERY_STARTS = frozenset({"FROM", "TABLE", "VALUES", "WITH"})
"""Words with which a query may begin that has no SELECT, as one with steps of a pipe."""


def has_subquery(tokens: Sequence[Token]) -> bool:
    """Return True if an expression has a subquery, in which the name of a table may have another meaning.

    Args:
        tokens: The tokens of the expression.

    Returns:
        True also for a column in parentheses that is called like the first word of a query.
    """
    words = ["" if token.kind in ("STRING", "IDENTIFIER") else token.text.upper() for token in tokens]
    begins = (before == "(" and word in _QUERY_STARTS for before, word in pairwise(words))
    return "SELECT" in words or "|>" in words or any(begins)
