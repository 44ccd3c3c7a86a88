"""Arrow expressions of many conditions, and of many values.

Arrow makes one chain of conjunctions or disjunctions and evaluates it recursively: some ten thousand overflow the stack
of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

_LONGEST_CHAIN = 1000
_LONGEST_LIST = 50
"""Most values of a list by which Arrow prunes row groups (measured with 26.0.1)."""


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


def is_in(field: pc.Expression, values: pa.Array) -> pc.Expression:
    """Return whether a column has one of some values. Row groups are pruned by the values; where there are too many for
    Arrow, by their range.

    Args:
        field: The column.
        values: The values, of the column's type.
    """
    matches = field.isin(values)
    if len(values) <= _LONGEST_LIST or pa.types.is_floating(values.type):  # NaN has no place in a range.
        return matches
    bounds = pc.min_max(values)
    return matches & (field >= bounds["min"]) & (field <= bounds["max"])
