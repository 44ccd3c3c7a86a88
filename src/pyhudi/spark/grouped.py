"""Rows of a task that come sorted by the number of their file group: one group after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa


def by_group(batches: Iterable[pa.RecordBatch], number: str) -> Iterator[tuple[int, pa.Table]]:
    """Each group's number (the column *number*, ascending) and rows, in one chunk. Memory: one group."""
    held: list[pa.RecordBatch] = []
    current = 0
    for batch in batches:
        groups = batch.column(number).to_numpy()
        if not len(groups):
            continue
        for start, end in pairwise([0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]):
            if held and groups[start] != current:
                yield current, pa.Table.from_batches(held).combine_chunks()
                held = []
            current = int(groups[start])
            held.append(batch.slice(start, end - start))
    if held:
        yield current, pa.Table.from_batches(held).combine_chunks()
