"""Few combinations that still hold every pair of values of any two axes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def pairwise(
    axes: Mapping[str, Sequence[Any]], allowed: Callable[[dict[str, Any]], bool] = lambda _: True
) -> list[dict[str, Any]]:
    """Rows (axis → value) such that each pair of values of two axes that can occur at all occurs in one of them.

    Greedy and deterministic: the next row is the first of those that bring the most new pairs.
    """
    names = list(axes)
    candidates = [
        row for values in itertools.product(*axes.values()) if allowed(row := dict(zip(names, values, strict=True)))
    ]
    pairs = [frozenset(_pairs(row, axes)) for row in candidates]
    open_pairs = set().union(*pairs)
    chosen = []
    while open_pairs:
        best = max(range(len(candidates)), key=lambda i: len(pairs[i] & open_pairs))
        chosen.append(candidates[best])
        open_pairs -= pairs[best]
    return chosen


def _pairs(row: dict[str, Any], axes: Mapping[str, Sequence[Any]]) -> list[tuple[int, int, int, int]]:
    """Pairs as (axis, place of its value, other axis, place of its value)."""
    places = [(number, axes[name].index(row[name])) for number, name in enumerate(axes)]
    return [(*one, *other) for one, other in itertools.combinations(places, 2)]
