"""Reading many small files at the same time, on threads, because each request mostly waits for the storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

THREADS = 16


def concurrent_map(
    function: Callable[[_Item], _Result], items: Iterable[_Item], threads: int = THREADS
) -> list[_Result]:
    """Return the results of a function, which reads a file or folder, for all items in order.

    Args:
        function: Called on several threads; for a single item on the thread of the caller.
        items: The items.
        threads: Maximum number of threads.
    """
    work = list(items)
    if len(work) < 2:
        return [function(item) for item in work]
    with ThreadPoolExecutor(min(threads, len(work))) as pool:
        return list(pool.map(function, work))
