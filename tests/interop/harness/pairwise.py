"""Pairwise testing: few combinations that contain every pair of values of any two axes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any


def pairwise(
    axes: Mapping[str, Sequence[Any]],
    allowed: Callable[[dict[str, Any]], bool] = lambda _: True,
    unrelated: Collection[tuple[str, str]] = (),
) -> list[dict[str, Any]]:
    """Return combinations (axis → value) such that each allowed pair of values of two axes occurs in one of them.

    Pairs of ``unrelated`` axes need not occur. Greedy and deterministic: the next combination is one of those that add
    the
    most new pairs, the first in an order that mixes the values.
    """
    names = list(axes)
    candidates = [
        row for values in itertools.product(*axes.values()) if allowed(row := dict(zip(names, values, strict=True)))
    ]
    random.Random(6).shuffle(candidates)
    pairs = [frozenset(_pairs(row, axes, unrelated)) for row in candidates]
    open_pairs = set().union(*pairs)
    chosen = []
    while open_pairs:
        best = max(range(len(candidates)), key=lambda i: len(pairs[i] & open_pairs))
        chosen.append(candidates[best])
        open_pairs -= pairs[best]
    return chosen


def _pairs(
    row: dict[str, Any], axes: Mapping[str, Sequence[Any]], unrelated: Collection[tuple[str, str]]
) -> list[tuple[str, int, str, int]]:
    """Return the pairs as (axis, index of its value, other axis, index of its value)."""
    places = {name: axes[name].index(row[name]) for name in axes}
    pairs = (pair for pair in itertools.combinations(axes, 2) if pair not in unrelated)
    return [(one, places[one], other, places[other]) for one, other in pairs]
