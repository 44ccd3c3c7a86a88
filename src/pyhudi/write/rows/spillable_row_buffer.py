"""Rows that a task buffers until it has read all of them: in memory, and beyond a limit in a temporary file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.storage.spill_file import SpillFile

Index = npt.NDArray[np.int64]

_CHUNK_ROWS = 131_072


class SpillableRowBuffer:
    """Incoming rows of a write task, which can be taken by number or filtered in order. Use as a context manager, which
    deletes the file.

    For rows of many partitions that are read back partition by partition, see `PartitionSpill`, and for log records
    that are merged, `pyhudi.merge.logs.spillable_log_rows`.

    Memory: approximately ``memory_size`` bytes; rows in the file are memory-mapped.
    """

    def __init__(self, memory_size: int) -> None:
        self.memory_size = memory_size
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._size = 0
        self._batches: list[pa.RecordBatch] = []
        self._file: SpillFile | None = None
        self._ends: Index = np.zeros(0, dtype=np.int64)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        if not batch.num_rows:
            return
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        self._size += batch.nbytes
        if self._waiting_rows >= _CHUNK_ROWS:
            self._chunk()

    def finish(self) -> None:
        """End appending. Rows can be read only afterwards."""
        self._chunk()
        if self._file is not None:
            self._file.finish()
            self._batches = [self._file.batch(i) for i in range(self._file.num_batches)]
        self._ends = np.cumsum([batch.num_rows for batch in self._batches], dtype=np.int64)

    @property
    def num_rows(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column of the rows, of which there must be at least one."""
        return pa.chunked_array([batch.column(name) for batch in self._batches])

    def take(self, numbers: Index) -> pa.RecordBatch:
        """Return the rows with these numbers, of which there must be at least one, in order."""
        which = np.searchsorted(self._ends, numbers, side="right")
        parts: list[pa.RecordBatch] = []
        order: list[Index] = []
        for i in np.unique(which).tolist():
            in_batch = np.flatnonzero(which == i)
            start = int(self._ends[i]) - self._batches[i].num_rows
            parts.append(self._batches[i].take(pa.array(numbers[in_batch] - start)))
            order.append(in_batch)
        if len(parts) == 1:
            return parts[0]
        return pa.concat_batches(parts).take(pa.array(np.argsort(np.concatenate(order), kind="stable")))

    def filter(self, keep: npt.NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
        """Yield the marked rows, batch by batch."""
        start = 0
        for batch in self._batches:
            mask = keep[start : start + batch.num_rows]
            start += batch.num_rows
            if mask.all():
                yield batch
            elif mask.any():
                yield batch.filter(pa.array(mask))

    def _chunk(self) -> None:
        if not self._waiting:
            return
        chunk = self._waiting[0] if len(self._waiting) == 1 else pa.concat_batches(self._waiting)
        self._waiting, self._waiting_rows = [], 0
        if self._file is None and self._size > self.memory_size:
            self._file = SpillFile()
            for earlier in self._batches:
                self._file.append(earlier)
            self._batches = []
        if self._file is not None:
            self._file.append(chunk)
        else:
            self._batches.append(chunk)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._batches = []
        if self._file is not None:
            self._file.close()
