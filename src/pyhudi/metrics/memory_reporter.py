"""The reporter INMEMORY: the last value of each metric, in this process."""

from __future__ import annotations

import threading
from collections.abc import Mapping

_values: dict[str, float] = {}
_guard = threading.Lock()


def keep_in_memory(values: Mapping[str, float]) -> None:
    """Set metrics by name."""
    with _guard:
        _values.update(values)


def in_memory_metrics() -> dict[str, float]:
    """Return the last value of each metric that was reported with ``hoodie.metrics.reporter.type=INMEMORY``."""
    with _guard:
        return dict(_values)
