"""Callbacks of this process, called after each action on any table."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from pyhudi.metrics.action_report import ActionReport

Listener = Callable[[ActionReport], object]
"""A function that receives the report of an action."""

_listeners: list[Listener] = []
_guard = threading.Lock()
_log = logging.getLogger("pyhudi.metrics")


def add_listener(listener: Listener) -> Listener:
    """Register a function to be called after each write and each table service of this process.

    It is called in the thread of the action, after the action is completed and the lock of the table is released.
    Exceptions are logged and do not affect the action.

    Args:
        listener: The function.

    Returns:
        The function, so that this can be used as a decorator.
    """
    with _guard:
        if listener not in _listeners:
            _listeners.append(listener)
    return listener


def remove_listener(listener: Listener) -> None:
    """Unregister a function. Does nothing if it is not registered."""
    with _guard:
        if listener in _listeners:
            _listeners.remove(listener)


def notify(report: ActionReport) -> None:
    """Call all listeners."""
    with _guard:
        listeners = tuple(_listeners)
    for listener in listeners:
        try:
            listener(report)
        except Exception as failure:
            _log.warning("a listener of %s failed: %s", report.action, failure, exc_info=failure)
