"""How many examples property tests try."""

from __future__ import annotations

import os

FACTOR = float(os.environ.get("PYHUDI_EXAMPLES") or 1)
"""So many times the examples (and lives of state machines) that a change is tested with."""


def examples(count: int) -> int:
    """What a test asks for instead of a fixed number of examples."""
    return max(1, round(count * FACTOR))
