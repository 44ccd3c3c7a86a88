"""Cleanup at the end of a write. Failures are logged and otherwise ignored: the next writer cleans up the rest."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from pyhudi.timeline.instant import Instant

_log = logging.getLogger(__name__)


def run_cleanup_steps(instant: Instant, steps: Iterable[Callable[[], object]]) -> list[str]:
    """Execute all steps, even after failures.

    Returns:
        One warning per failed step.
    """
    warnings: list[str] = []
    for step in steps:
        try:
            step()
        except Exception as failure:
            warnings.append(f"leftovers of {instant} remain for the next writer: {failure}")
            _log.warning("%s", warnings[-1])
    return warnings
