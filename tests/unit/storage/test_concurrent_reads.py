"""Functions that run on threads, item by item."""

from __future__ import annotations

import threading

import pytest

from pyhudi.errors import NotFoundError
from pyhudi.storage.concurrent_reads import concurrent_map, read_ahead, read_each


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


def test_reading_ahead_is_in_order_bounded_and_concurrent() -> None:
    started: list[int] = []
    together = threading.Barrier(3)

    def read(number: int) -> int:
        started.append(number)
        if 0 < number < 4:
            together.wait(timeout=60)
        return number

    results = read_ahead(read, range(100), threads=3)
    assert next(results) == 0
    assert started == [0], "the first item may be the only one that is needed"
    assert next(results) == 1
    assert set(started) <= {0, 1, 2, 3}
    results.close()
    assert list(read_ahead(str, range(10), threads=3)) == [str(number) for number in range(10)]
    assert list(read_ahead(str, [])) == []


def test_each_item_comes_with_its_result() -> None:
    assert list(read_each(str, iter([3, 1, 2]))) == [(3, "3"), (1, "1"), (2, "2")]
    assert list(read_each(str, [])) == []
