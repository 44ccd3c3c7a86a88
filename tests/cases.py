"""Cases of parametrized tests that `make test` leaves to `make test ALL=1`: variants of what other cases test, too."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest


def seldom(case: Any) -> Any:
    """A case that is left out: a value, a tuple of values, or a ``pytest.param``."""
    if hasattr(case, "marks"):
        return pytest.param(*case.values, marks=pytest.mark.slow, id=case.id)
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)


def every_second(cases: Sequence[Any]) -> list[Any]:
    """The cases of a matrix, of which every second one is left out."""
    return [seldom(case) if number % 2 else case for number, case in enumerate(cases)]


def each_choice(*axes: Sequence[Any]) -> list[Any]:
    """The product of axes, of which as many cases are kept as the longest axis has choices: every choice of every axis
    is in one of them. A choice is a value, or a ``pytest.param`` of one value with an id."""
    usual = {tuple(n % len(axis) for axis in axes) for n in range(max(map(len, axes)))}
    found = []
    for places in itertools.product(*(range(len(axis)) for axis in axes)):
        choices = [axis[place] for axis, place in zip(axes, places, strict=True)]
        case = pytest.param(*(c.values[0] if hasattr(c, "marks") else c for c in choices), id=_id(choices))
        found.append(case if places in usual else seldom(case))
    return found


def _id(choices: Sequence[Any]) -> str:
    return "-".join(str(choice.id if hasattr(choice, "marks") else choice) for choice in choices)
