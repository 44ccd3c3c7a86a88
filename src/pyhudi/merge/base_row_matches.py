"""Base rows of a file slice, matched with the records of its logs by position or by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptTableError
from pyhudi.merge.file_slice import FileSlice
from pyhudi.merge.logs.merged_log_records import MergedLogRecords
from pyhudi.merge.ordering_values import Index

MAX_BATCH_ROWS = 524_288
_LOOKUPS = 8
"""Rows for each key of the logs whose keys are looked up at a time: each look-up hashes all keys of the logs first."""
_MATCHED_BYTES = 64 * 1024 * 1024
"""Approximate maximum size of these rows."""


@dataclass(frozen=True, slots=True)
class BasePart:
    """Base rows of a slice whose versions in the logs fit into memory.

    Attributes:
        start: Number of rows that were read before them.
        rows: The rows.
        positions: Those that have a version in the logs (from 0, ascending).
        records: Numbers of the log records of these.
    """

    start: int
    rows: pa.RecordBatch
    positions: Index
    records: Index


class BaseRowMatches:
    """Base rows of a slice, matched with the records of its logs, and the records without a base row.

    Args:
        file_slice: The slice.
        log_records: The records of its logs.
        keys_of: Returns the record keys of base rows.
    """

    def __init__(
        self, file_slice: FileSlice, log_records: MergedLogRecords, keys_of: Callable[[pa.RecordBatch], pa.Array]
    ) -> None:
        self._slice, self._log_records, self._keys_of = file_slice, log_records, keys_of
        self._is_matched = np.zeros(len(log_records), dtype=np.bool_)

    def parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[BasePart]:
        """Yield the rows of a base file in order, in parts whose versions fit into memory.

        Raises:
            CorruptTableError: The logs have versions of rows beyond the end.
        """
        start = 0
        by_key = self._log_records.positions is None
        for whole in self._matched_by_key(batches) if by_key else self._matched_by_position(batches):
            self._is_matched[whole.records] = True
            for part in _split(whole, self._log_records):
                yield part
                start += part.rows.num_rows
        if self._log_records.positions is not None:
            check_positions(self._slice, self._log_records.positions, start)

    def _matched_by_position(self, batches: Iterable[pa.RecordBatch]) -> Iterator[BasePart]:
        logged, start = self._log_records.positions, 0
        assert logged is not None
        for batch in batches:
            first, last = np.searchsorted(logged, (start, start + batch.num_rows))
            yield BasePart(start, batch, logged[first:last] - start, np.arange(first, last))
            start += batch.num_rows

    def _matched_by_key(self, batches: Iterable[pa.RecordBatch]) -> Iterator[BasePart]:
        start = 0
        for together in _batched(batches, _LOOKUPS * len(self._log_records)):
            keys = pa.chunked_array([self._keys_of(batch) for batch in together])
            found = pc.index_in(keys, value_set=self._log_records.keys)
            positions = np.flatnonzero(pc.is_valid(found).to_numpy())
            records = found.drop_null().to_numpy().astype(np.int64)
            first = of_batch = 0
            for batch in together:
                end = of_batch + batch.num_rows
                last = int(np.searchsorted(positions, end))
                yield BasePart(start, batch, positions[first:last] - of_batch, records[first:last])
                first, of_batch, start = last, end, start + batch.num_rows
            together.clear()  # otherwise they would be in memory while the next ones are collected

    def unmatched(self) -> Iterator[Index]:
        """Yield the numbers of the records without a base row in the parts that have been read, in batches. Deletes are
        omitted."""
        return self._log_records.batches(~self._is_matched & ~self._log_records.is_delete)


def _batched(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[list[pa.RecordBatch]]:
    """Yield adjacent batches together, until they have that number of rows or `_MATCHED_BYTES`."""
    together: list[pa.RecordBatch] = []
    num_rows = size = 0
    for batch in batches:
        together.append(batch)
        num_rows, size = num_rows + batch.num_rows, size + batch.nbytes
        if num_rows >= rows or size >= _MATCHED_BYTES:
            yield together
            together, num_rows, size = [], 0, 0
    if together:
        yield together


def _split(part: BasePart, log_records: MergedLogRecords) -> Iterator[BasePart]:
    """Split base rows so that the versions of each part fit into memory."""
    cuts = list(log_records.runs(part.records, MAX_BATCH_ROWS))
    if len(cuts) < 2:
        yield part
        return
    first = 0
    for i, run in enumerate(cuts):
        end = int(part.positions[run.stop]) if i + 1 < len(cuts) else part.rows.num_rows
        rows = part.rows.slice(first, end - first)
        yield BasePart(part.start + first, rows, part.positions[run] - first, part.records[run])
        first = end


def check_positions(file_slice: FileSlice, positions: Index, rows: int) -> None:
    """Check that positions (ascending) are within a base file with ``rows`` rows.

    Raises:
        CorruptTableError: A position is beyond the end.
    """
    if len(positions) and positions[-1] >= rows:
        raise CorruptTableError(
            f"the base file {file_slice.base_path!r} has {rows} rows, but log blocks of its slice have versions "
            f"of row {int(positions[-1])}"
        )
