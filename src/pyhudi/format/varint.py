"""Avro's variable-length integers, vectorised: seven bits a byte, low ones first, the sign in the lowest bit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_LIMITS = np.array([1 << (7 * k) for k in range(1, 10)], np.uint64)


def zigzag(values: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return the numbers with their sign in the lowest bit."""
    return ((values << np.int64(1)) ^ (values >> np.int64(63))).view(np.uint64)


def encoded_sizes(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return how many bytes each number takes, 1 to 10."""
    return np.searchsorted(_LIMITS, zigzag(values), side="right") + 1
