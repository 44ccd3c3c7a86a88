"""Batch sizes of a merge: bounded by rows, and by bytes for wide rows.

Arrow's text and binary columns hold at most 2 GiB, and a merge holds a batch several times. So a batch of rows of
several hundred KB each should have hundreds of them, not as many as one of narrow rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

BATCH_ROWS = 65_536
"""Number of rows that are merged at a time."""

BATCH_BYTES = 128 * 1024 * 1024
"""Approximate bytes of rows that are merged at a time; a single row may be larger."""


@dataclass(frozen=True, slots=True)
class MergeMemory:
    """Limits of the memory of a merge.

    Attributes:
        budget: Bytes for log records, ``hoodie.memory.merge.max.size``; more are spilled.
        spill_folder: Folder of spilled records; None: the usual one for temporary files.
        batch_bytes: Approximate bytes of rows that are merged at a time.
    """

    budget: int = 1024 * 1024 * 1024
    spill_folder: str | None = None
    batch_bytes: int = BATCH_BYTES


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits of the batches in which a file is read.

    Attributes:
        rows: Maximum number of rows.
        num_bytes: Approximate maximum size in bytes; a single row may be larger.
        row_bytes: Estimated size of a row in bytes, if it is known to be larger than the file suggests, which stores
            repeated values once.
    """

    rows: int
    num_bytes: int
    row_bytes: float

    def rows_of(self, row_bytes: float) -> int:
        """Return the number of rows per batch; ``row_bytes`` is the size of a row according to the file."""
        return rows_within(self.num_bytes, max(row_bytes, self.row_bytes), self.rows)


def rows_within(limit: int, row_bytes: float, max_rows: int) -> int:
    """Return the number of rows of that size that fit into the bytes: at most ``max_rows``, at least one."""
    return max(1, min(max_rows, int(limit / max(row_bytes, 1.0))))


def pieces(batch: pa.RecordBatch, limit: int) -> Iterator[pa.RecordBatch]:
    """Split a batch into batches of at most the given number of bytes, or of a single row, without copying."""
    if batch.num_rows < 2 or batch.nbytes <= limit:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from pieces(batch.slice(0, middle), limit)
    yield from pieces(batch.slice(middle), limit)


def bounded_runs(sizes: npt.NDArray[np.float64], limit: int, max_rows: int) -> Iterator[slice]:
    """Split rows of these sizes into runs bounded in bytes and rows, of at least one row."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = ends[start - 1] if start else 0.0
        end = int(np.searchsorted(ends, before + limit, side="right"))
        end = min(max(end, start + 1), start + max_rows, len(sizes))
        yield slice(start, end)
        start = end


def joined_within(batches: list[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in few batches: adjacent ones are combined up to ``limit`` bytes. Consumes the list, so that
    parts are released once they are combined."""
    batches.reverse()
    while batches:
        together = [batches.pop()]
        size = together[0].nbytes
        while batches and (size := size + batches[-1].nbytes) <= limit:
            together.append(batches.pop())
        yield together[0] if len(together) == 1 else pa.concat_batches(together)
