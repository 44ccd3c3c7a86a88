"""Temporary file for rows of many partitions, which are read back partition by partition."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.storage.spill_file import SpillFile

Codes = npt.NDArray[np.int64]


class PartitionSpill:
    """Rows spilled to local disk. Memory: one batch, and a few bytes per batch and partition.

    A `SpillableRowBuffer` keeps the rows of one partition in memory while they fit, and selects them by number. These
    rows are too many to keep, and are read only once, in order of their partitions. Both use a `SpillFile`.
    """

    def __init__(self) -> None:
        self._file = SpillFile()
        self._places: dict[str, list[tuple[int, int, int]]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, partition: str) -> bool:
        return partition in self._places

    def add(self, rows: pa.RecordBatch, names: list[str], codes: Codes) -> None:
        """Spill rows: row ``i`` belongs to the partition ``names[codes[i]]``."""
        order = np.argsort(codes, kind="stable")
        codes = codes[order]
        starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
        ends = np.append(starts[1:], len(codes))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            self._places.setdefault(names[codes[start]], []).append((self._file.num_batches, start, end - start))
        self._file.append(rows.take(pa.array(order)))

    def read(self) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
        """Yield each partition with its rows. Nothing can be added afterwards."""
        self._file.finish()
        for partition, places in self._places.items():
            yield partition, (self._file.batch(i).slice(start, length) for i, start, length in places)

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
