"""Variable-length integers: seven bits per byte, low ones first.

Protobuf's are unsigned; Avro's have the sign in the lowest bit. Columns of Avro's are encoded at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_LIMITS = np.array([1 << (7 * k) for k in range(1, 10)], np.uint64)

Bytes = npt.NDArray[np.uint8]


def unsigned(value: int) -> bytes:
    """Return the bytes of a non-negative number."""
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(values: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return the numbers with their sign in the lowest bit."""
    return ((values << np.int64(1)) ^ (values >> np.int64(63))).view(np.uint64)


def encoded_sizes(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the number of bytes of each number, 1 to 10."""
    return np.searchsorted(_LIMITS, zigzag(values), side="right") + 1


def encode(values: npt.NDArray[np.int64]) -> tuple[Bytes, npt.NDArray[np.bool_]]:
    """Return the bytes of the numbers, one row per number, and a mask of the used bytes (the others are undefined).

    Rows are as wide as the longest number.
    """
    rest = zigzag(values)
    largest = int(rest.max()) if len(rest) else 0
    if largest < 1 << 32:
        rest = rest.astype(np.uint32)
    width = max(1, (largest.bit_length() + 6) // 7)
    data = np.empty((len(rest), width), np.uint8)
    used = np.empty((len(rest), width), np.bool_)
    used[:, 0] = True
    for k in range(width):
        data[:, k] = rest & 0x7F
        rest >>= rest.dtype.type(7)
        if k + 1 < width:
            more = rest != 0
            used[:, k + 1] = more
            data[:, k] |= more.view(np.uint8) << 7
    return data, used
