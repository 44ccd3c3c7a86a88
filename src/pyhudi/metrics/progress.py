"""Progress of long operations."""

from __future__ import annotations

import logging
from collections.abc import Callable

Progress = Callable[[str, int, int], object]
"""Called with a description of the work ("delete files"), the number of completed units, and the total. Exceptions are
logged."""

_log = logging.getLogger("pyhudi.metrics")


def report_progress(progress: Progress | None, what: str, done: int, total: int) -> None:
    """Call a callback, if there is one."""
    if progress is None:
        return
    try:
        progress(what, done, total)
    except Exception as failure:
        _log.warning("the progress callback for '%s' failed: %s", what, failure, exc_info=failure)
