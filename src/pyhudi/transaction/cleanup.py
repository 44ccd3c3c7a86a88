"""Cleanup at the end of a write. Its failures are logged and stop nothing: the next writer cleans up what is left."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyhudi.timeline.heartbeat import Heartbeat
    from pyhudi.timeline.instant import Instant

_log = logging.getLogger(__name__)


def clean_up(entry: Instant, steps: Iterable[Callable[[], object]]) -> list[str]:
    """Take every step, also after one has failed.

    Returns:
        One warning for each step that has failed.
    """
    warnings: list[str] = []
    for step in steps:
        try:
            step()
        except Exception as failure:
            warnings.append(f"traces of {entry} are left to the next writer: {failure}")
            _log.warning("%s", warnings[-1])
    return warnings


def stop_heartbeat(heartbeat: Heartbeat) -> None:
    """Stop a heartbeat, so that others may roll the write back."""
    try:
        heartbeat.stop()
    except Exception as failure:  # the file stays and ages
        _log.warning("the heartbeat of %s is left behind: %s", heartbeat.instant, failure)
