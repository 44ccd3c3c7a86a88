"""Grouping of the rows of a task that are sorted by the number of their file group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from operator import itemgetter

import numpy as np
import pyarrow as pa


def group_runs(batches: Iterable[pa.RecordBatch], number: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield slices of batches whose rows belong to one group, with its number (the column *number*)."""
    for batch in batches:
        groups = batch.column(number).to_numpy()
        if not len(groups):
            continue
        for start, end in pairwise([0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]):
            yield int(groups[start]), batch.slice(start, end - start)


def by_group(batches: Iterable[pa.RecordBatch], number: str) -> Iterator[tuple[int, pa.Table]]:
    """Yield the number of each group (the column *number*, ascending) and its rows, in one chunk. Memory: one group."""
    for group, parts in groupby(group_runs(batches, number), itemgetter(0)):
        yield group, pa.Table.from_batches([part for _, part in parts]).combine_chunks()
