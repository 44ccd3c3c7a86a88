"""Cases of parametrized tests that `make test` leaves to `make test ALL=1`: variants of what other cases test, too."""

from __future__ import annotations

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
