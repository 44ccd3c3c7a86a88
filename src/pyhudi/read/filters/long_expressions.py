"""Conjunctions and disjunctions of many Arrow expressions.

Arrow makes one chain of them and evaluates it recursively: some ten thousand overflow the stack of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

import pyarrow.compute as pc

_LONGEST_CHAIN = 1000


def combined(
    combine: Callable[[pc.Expression, pc.Expression], pc.Expression], conditions: Iterable[pc.Expression]
) -> pc.Expression:
    """Return the combination of conditions. Arrow prunes row groups by it if there are at most 1,000.

    Args:
        combine: ``operator.and_`` or ``operator.or_``.
        conditions: At least one.
    """
    chains = list(conditions)
    while len(chains) > _LONGEST_CHAIN:
        starts = range(0, len(chains), _LONGEST_CHAIN)
        # Arrow does not join chains that are negated twice.
        chains = [~~reduce(combine, chains[start : start + _LONGEST_CHAIN]) for start in starts]
    return reduce(combine, chains)
