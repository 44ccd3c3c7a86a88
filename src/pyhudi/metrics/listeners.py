"""Callbacks of this process, called after each action on any table."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from pyhudi.metrics.action_report import ActionReport

Listener = Callable[[ActionReport], object]
"""A function that takes the report of an action."""

_listeners: list[Listener] = []
_guard = threading.Lock()
_log = logging.getLogger("pyhudi.metrics")


def add_listener(listener: Listener) -> Listener:
    """Have a function called after each write and each table service of this process.

    It is called in the thread that did the work, after the action is completed and the table's lock is free. What it
    raises is logged, and the action stands.

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
    """Stop calling a function; nothing when it was not added."""
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
