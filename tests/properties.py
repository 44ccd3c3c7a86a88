"""How much of what they could try property tests, state machines and tests of deaths try."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence

FACTOR = float(os.environ.get("PYHUDI_EXAMPLES") or 1)
"""So many times the examples (and lives of state machines) that a change is tested with. ``make test`` takes less."""


def examples(count: int) -> int:
    """What a test asks for instead of a fixed number of examples."""
    return max(1, round(count * FACTOR))


def places(count: int) -> Sequence[int]:
    """Where a test lets something die: at 0, 1, …, count - 1. Below a factor of 1 only at every second place and at
    both ends; the name of the test says whether at odd or at even ones, so that its variants differ."""
    if FACTOR >= 1:
        return range(count)
    start = zlib.crc32(os.environ["PYTEST_CURRENT_TEST"].encode()) % 2
    return sorted({0, count - 1, *range(start, count, 2)})
