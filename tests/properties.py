"""Number of examples of property tests, state machines and crash tests."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence

FACTOR = float(os.environ.get("PYHUDI_EXAMPLES") or 1)
"""Factor applied to the number of examples. ``make test`` sets a smaller one."""

_STEP = 3


def examples(count: int) -> int:
    """Return the number of examples of a test, scaled by the factor."""
    return max(1, round(count * FACTOR))


def places(count: int, step: int = 1) -> Sequence[int]:
    """Return the operations at which a crash test kills its process: 0, 1, …, count - 1. With a factor below 1 only
    every third one and both ends; the name of the test selects the first, so variants of a test differ. ``step``: in a
    costly test, only every step-th operation, with a factor below 1 every third of these."""
    if FACTOR >= 1:
        return range(0, count, step)
    start = zlib.crc32(os.environ["PYTEST_CURRENT_TEST"].encode()) % _STEP
    return sorted({0, count - 1, *range(start * step, count, _STEP * step)})
