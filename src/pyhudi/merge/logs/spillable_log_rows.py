"""Columns of log records: appended once, then selected by number; in memory or, beyond a budget, on local disk."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pyhudi.merge.batch_sizes import joined_within
from pyhudi.merge.ordering_values import Index
from pyhudi.storage.spill_file import SpillFile

JOINED_BYTES = 256 * 1024 * 1024
"""Size in bytes up to which rows in memory are combined: few batches, far below the limit of 32-bit offsets."""

NO_ROW = -1
"""Number of a row that was never stored: all its values are null."""


class SpillableLogRows:
    """Columns of log records of one schema. Once their buffers exceed ``budget`` bytes, all batches are moved to a
    temporary file in ``folder`` (None: that of the system), which is memory-mapped for reading and deleted with the
    object. Use as a context manager, or call `close`.

    Unlike `pyhudi.write.rows.spillable_row_buffer`, which keeps the incoming rows of a write task, this selects missing
    rows (`NO_ROW`) and single columns, and estimates the sizes of rows, so that a merge can bound its batches.
    """

    def __init__(self, schema: pa.Schema, budget: int, folder: str | None = None) -> None:
        self.schema = schema
        self._budget, self._folder = budget, folder
        self._batches: list[pa.RecordBatch] = []
        self._starts = [0]
        self._buffered_bytes = 0
        self._sizes: list[Index] = []
        self._places: Index = np.zeros(1, dtype=np.int64)
        self._file: SpillFile | None = None

    def __enter__(self) -> SpillableLogRows:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._starts[-1]

    def append(self, rows: pa.RecordBatch) -> Index:
        """Add rows. Return their numbers."""
        first = len(self)
        if rows.num_rows:
            self._starts.append(first + rows.num_rows)
            self._sizes.append(np.array([column.nbytes // rows.num_rows for column in rows.columns], dtype=np.int64))
            if self._file is not None:
                self._file.append(rows)
            else:
                self._batches.append(rows)
                self._buffered_bytes += rows.get_total_buffer_size()
                if self._buffered_bytes > self._budget:
                    self._spill()
        return np.arange(first, len(self), dtype=np.int64)

    def freeze(self) -> None:
        """End appending. Rows can be taken only afterwards."""
        if self._file is not None:
            self._file.finish()
            self._batches = [self._file.batch(i) for i in range(self._file.num_batches)]
        elif len(self._batches) > 1:
            self._batches = list(joined_within(self._batches, JOINED_BYTES))
        self._places = np.concatenate(([0], np.cumsum([batch.num_rows for batch in self._batches]))).astype(np.int64)

    @property
    def widest(self) -> int:
        """Return the maximum over batches of the average bytes of a row."""
        return max((int(sizes.sum()) for sizes in self._sizes), default=0)

    @property
    def row_bytes(self) -> float:
        """Return the average bytes of a row."""
        counts = np.diff(self._starts)
        return float(sum(int(s.sum()) * n for s, n in zip(self._sizes, counts, strict=True)) / max(len(self), 1))

    def bytes_of(self, column: int, numbers: Index) -> Index:
        """Estimate the bytes of a column's values in these rows by the average of their batch."""
        averages = np.array([sizes[column] for sizes in self._sizes] + [0], dtype=np.int64)
        chunk = np.searchsorted(self._starts, numbers, side="right") - 1  # -1, the last one, is `NO_ROW`.
        row_bytes: Index = averages[chunk]
        return row_bytes

    def take(self, numbers: Index) -> pa.RecordBatch:
        """Return the rows with these numbers, in this order; `NO_ROW` gives nulls."""
        columns = [self.take_column(i, numbers) for i in range(len(self.schema))]
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(numbers), pa.struct([])))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def take_column(self, column: int, numbers: Index) -> pa.Array:
        """Return one column of the rows with these numbers."""
        data_type = self.schema.field(column).type
        missing = numbers == NO_ROW
        if missing.all():
            return pa.nulls(len(numbers), data_type)
        if len(self._batches) == 1:
            return self._batches[0].column(column).take(_indices(numbers, missing))
        # Chunk by chunk, so that only requested rows are read from disk.
        chunk = np.searchsorted(self._places, numbers, side="right") - 1
        parts, places = [], []
        for i in np.unique(chunk[~missing]):
            selected = np.flatnonzero((chunk == i) & ~missing)
            parts.append(self._batches[i].column(column).take(pa.array(numbers[selected] - self._places[i])))
            places.append(selected)
        order = np.full(len(numbers), NO_ROW, dtype=np.int64)
        order[np.concatenate(places)] = np.arange(sum(map(len, places)))
        return pa.concat_arrays(parts).take(_indices(order, missing))

    def close(self) -> None:
        """Release the rows and delete the file."""
        self._batches, self._starts, self._buffered_bytes, self._sizes = [], [0], 0, []
        if self._file is not None:
            self._file.close()
            self._file = None

    def _spill(self) -> None:
        self._file = SpillFile(self._folder)
        for batch in self._batches:
            self._file.append(batch)
        self._batches, self._buffered_bytes = [], 0


def _indices(numbers: Index, missing: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> pa.Array:
    return pa.array(numbers, mask=missing) if missing.any() else pa.array(numbers)
