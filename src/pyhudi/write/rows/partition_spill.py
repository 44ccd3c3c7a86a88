"""Keeps rows of many partitions in a temporary file, to be read back partition by partition."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Codes = npt.NDArray[np.int64]


class PartitionSpill:
    """Rows set aside on local disk. Memory: one batch, and a few bytes per batch and partition."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pyhudi-spill-")
        self._path = f"{self._folder.name}/rows.arrow"
        self._writer: Any = None
        self._batches = 0
        self._places: dict[str, list[tuple[int, int, int]]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, partition: str) -> bool:
        return partition in self._places

    def add(self, rows: pa.RecordBatch, names: list[str], codes: Codes) -> None:
        """Set rows aside: row ``i`` is of the partition ``names[codes[i]]``."""
        order = np.argsort(codes, kind="stable")
        codes = codes[order]
        starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
        ends = np.append(starts[1:], len(codes))
        if self._writer is None:
            self._writer = pa.ipc.new_file(self._path, rows.schema)
        self._writer.write_batch(rows.take(pa.array(order)))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            self._places.setdefault(names[codes[start]], []).append((self._batches, start, end - start))
        self._batches += 1

    def read(self) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
        """Yield each partition with its rows; nothing can be added afterwards."""
        if self._writer is None:
            return
        self._writer.close()
        with pa.memory_map(self._path) as source, pa.ipc.open_file(source) as reader:
            for partition, places in self._places.items():
                yield partition, (reader.get_batch(i).slice(start, length) for i, start, length in places)

    def close(self) -> None:
        """Delete the file."""
        if self._writer is not None:
            self._writer.close()
        self._folder.cleanup()
