"""Progress of long work."""

from __future__ import annotations

import logging
from collections.abc import Callable

Progress = Callable[[str, int, int], object]
"""Called with what is being done ("delete files"), how much of it is done, and how much there is in all. What it raises
is logged."""

_log = logging.getLogger("pyhudi.metrics")


def report_progress(progress: Progress | None, what: str, done: int, total: int) -> None:
    """Call a callback, if there is one."""
    if progress is None:
        return
    try:
        progress(what, done, total)
    except Exception as failure:
        _log.warning("the progress of '%s' was not taken: %s", what, failure, exc_info=failure)
