"""Delta debugging: the steps that a failure needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def minimal(steps: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> tuple[int, ...]:
    """Return steps of which none can be left out without that ``fails`` is False; the first one always stays.

    Chunks of half of the steps are left out first, then of a quarter, and so on.
    """
    first, left = steps[0], list(steps[1:])
    size = max(1, len(left) // 2)
    while left:
        smaller = next((rest for rest in _without_chunks(left, size) if fails([first, *rest])), None)
        if smaller is not None:
            left = smaller
            size = min(size, max(1, len(left)))
        elif size == 1:
            break
        else:
            size //= 2
    return (first, *left)


def _without_chunks(steps: Sequence[int], size: int) -> list[list[int]]:
    """Return the steps without each chunk of a size, the last chunk first."""
    starts = range(0, len(steps), size)
    return [[*steps[:start], *steps[start + size :]] for start in reversed(starts)]
