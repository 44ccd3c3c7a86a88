"""Selection of cases and checks: `make test` skips what are variants of others, `make test ALL=1` and plain pytest run
all."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

import pytest

from tests.properties import FACTOR

IN_CONNECT = bool(os.environ.get("PYHUDI_TEST_CONNECT"))
"""The session that all tests share is one of Spark Connect (``make connect``)."""
classic = pytest.mark.skipif(IN_CONNECT, reason="requires a classic session, or state that it shares with the test")
"""Mark a test as one that is not for Spark Connect."""


def seldom(case: Any) -> Any:
    """Mark a case as skipped by default: a value, a tuple of values, or a ``pytest.param``."""
    if hasattr(case, "marks"):
        return pytest.param(*case.values, marks=pytest.mark.slow, id=case.id)
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)


def every_second(cases: Sequence[Any]) -> list[Any]:
    """Mark every second case of a matrix as skipped by default."""
    return [seldom(case) if number % 2 else case for number, case in enumerate(cases)]


def every(step: int, of: Sequence[Any]) -> Sequence[Any]:
    """Return every step-th of the checks inside of a test, the first included; all of them where nothing is skipped."""
    return of if FACTOR >= 1 else of[::step]


def each_choice(*axes: Sequence[Any]) -> list[Any]:
    """Return the product of axes, with all cases marked as skipped except as many as the longest axis has values, which
    include each value of each axis. A value may be a ``pytest.param`` with an id."""
    usual = {tuple(n % len(axis) for axis in axes) for n in range(max(map(len, axes)))}
    found = []
    for places in itertools.product(*(range(len(axis)) for axis in axes)):
        choices = [axis[place] for axis, place in zip(axes, places, strict=True)]
        case = pytest.param(*(c.values[0] if hasattr(c, "marks") else c for c in choices), id=_id(choices))
        found.append(case if places in usual else seldom(case))
    return found


def _id(choices: Sequence[Any]) -> str:
    return "-".join(str(choice.id if hasattr(choice, "marks") else choice) for choice in choices)
