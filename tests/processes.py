"""Processes for tests of several writers."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess

_IMPORTED = ["pytest", "tests.unit.transaction.tables"]


def separate_processes() -> ForkServerContext:
    """Return a context whose processes have no memory and no locks of the calling process.

    They are forks of a server that has imported pyhudi once. A process that is spawned imports it for more than a
    second of CPU time, and so several ones start far apart.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    return context


def run_together(processes: Sequence[BaseProcess]) -> None:
    """Run processes at the same time; none may fail."""
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=120)
    assert [process.exitcode for process in processes] == [0] * len(processes)
