"""Heartbeats of a lock that expires without them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_log = logging.getLogger(__name__)


class LockHeartbeat:
    """Thread that renews a lock until it is ended or the lock is lost.

    Args:
        renew: Renews the lock. Returns False if it is lost.
        interval_s: Seconds between two renewals.
        name: The lock, for warnings.
    """

    def __init__(self, renew: Callable[[], bool], interval_s: float, name: str) -> None:
        self._renew, self._interval_s, self._name = renew, interval_s, name
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pyhudi-lock-heartbeat", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(self._interval_s):
            try:
                if not self._renew():
                    return
            except Exception as error:
                _log.warning("could not renew %s: %s", self._name, error)

    def end(self) -> None:
        """End the thread. The requests that it sends have time limits."""
        self._ended.set()
        self._thread.join()
