"""Union of bloom filters: the filter of a file that consists of others, without processing their keys."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyhudi.format.bloom_filter import DYNAMIC, BloomFilter

Bits = npt.NDArray[np.uint8]


class BloomFilterUnion:
    """Merges filters of the same kind and size into one that contains the keys of all.

    Vectors of dynamic filters that are not full are merged as long as all their keys fit into one, so the union is as
    precise as a filter built from the keys. Beyond ``max_keys`` keys vectors are merged regardless, just as filters
    that are built add further keys to existing vectors.
    """

    def __init__(self, max_keys: int) -> None:
        self._max_keys = max_keys
        self._first: BloomFilter | None = None
        self._rows: list[Bits] = []
        self._count = 0  # Keys of the last row.
        self._beyond = 0

    def add(self, other: BloomFilter) -> bool:
        """Add a filter. Return False, without changes, if it differs in kind or size from the previous ones."""
        if self._first is None:
            self._first = other
            self._rows = [np.zeros_like(other.rows[-1])]
        elif _shape(self._first) != _shape(other):
            return False
        for row in other.rows[:-1]:
            if self._has_room():
                self._rows.insert(-1, row.copy())
            else:
                self._spread(row)
        last = other.rows[-1]
        if other.kind != DYNAMIC or self._count + other.last_row_count <= other.entries_per_row or not self._count:
            np.bitwise_or(self._rows[-1], last, out=self._rows[-1])
            self._count += other.last_row_count
        elif self._has_room():
            self._rows.append(last.copy())
            self._count = other.last_row_count
        else:
            self._spread(last)
        return True

    def finish(self) -> BloomFilter | None:
        """Return the union; None without filters."""
        first = self._first
        if first is None:
            return None
        return BloomFilter(first.kind, first.hashes, first.bits, tuple(self._rows), first.entries_per_row, self._count)

    def _has_room(self) -> bool:
        assert self._first is not None
        return len(self._rows) < -(-self._max_keys // self._first.entries_per_row)

    def _spread(self, row: Bits) -> None:
        target = self._rows[self._beyond % len(self._rows)]
        np.bitwise_or(target, row, out=target)
        self._beyond += 1


def _shape(one: BloomFilter) -> tuple[str, int, int, int]:
    return one.kind, one.hashes, one.bits, one.entries_per_row
