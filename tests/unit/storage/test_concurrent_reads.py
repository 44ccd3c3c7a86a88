"""Functions that run on threads, item by item."""

from __future__ import annotations

import threading

import pytest

from pyhudi.errors import NotFoundError
from pyhudi.storage.concurrent_reads import concurrent_map


def test_results_are_in_order_and_calls_at_the_same_time() -> None:
    together = threading.Barrier(3)

    def double(number: int) -> int:
        together.wait(timeout=60)
        return 2 * number

    assert concurrent_map(double, iter([3, 1, 2])) == [6, 2, 4]


def test_one_item_needs_no_thread() -> None:
    assert concurrent_map(lambda _: threading.current_thread(), ["one"]) == [threading.current_thread()]
    assert concurrent_map(str, []) == []


def test_errors_are_those_of_the_function() -> None:
    def read(path: str) -> bytes:
        raise NotFoundError(path)

    with pytest.raises(NotFoundError, match="a"):
        concurrent_map(read, ["a", "b"])
