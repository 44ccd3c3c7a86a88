"""Reading many small files at the same time, on threads, because each request mostly waits for the storage."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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


def read_ahead(
    function: Callable[[_Item], _Result], items: Iterable[_Item], threads: int = THREADS
) -> Iterator[_Result]:
    """Yield the results of a function, which reads a file or folder, for all items in order.

    At most ``threads`` results wait, so the memory is bounded, and a caller that stops early has read few in vain. The
    first is read alone, because many callers need no other.

    Args:
        function: Called on several threads; for the first item on the thread of the caller.
        items: The items.
        threads: Maximum number of threads.
    """
    left = iter(items)
    for first in left:
        yield function(first)
        break
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[_Result]] = deque()
        try:
            for item in left:
                waiting.append(pool.submit(function, item))
                if len(waiting) == threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def read_each(function: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[tuple[_Item, _Result]]:
    """Yield each item with the result of a function, which reads a file or folder; several are read at a time, as by
    `read_ahead`."""
    return read_ahead(lambda item: (item, function(item)), items)
