"""Incoming rows of a write task, split by file group, with at most one batch in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from operator import itemgetter
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.schema.meta_fields import PARTITION_PATH
from pyhudi.table.view.file_group_keys import FileGroupId
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, IS_DELETE, ROW_POSITION

_AFTER_ALL = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class GroupKey:
    """File group of rows; ``base_path`` is its current base file, ``None`` for a new group."""

    partition: str
    file_id: str
    base_path: str | None

    @property
    def group(self) -> FileGroupId:
        """Identity of the file group."""
        return FileGroupId(self.partition, self.file_id)


class FileGroupRows(Protocol):
    """Rows of one file group for a handle: first those that change rows of the base file, then new records. Each row is
    returned once."""

    def updates_below(self, limit: int, /) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]] | None:
        """Return the rows that change base rows before ``limit``: the rows and their positions, ascending."""

    def has_updates_below(self, limit: int, /) -> bool:
        """Return True if `updates_below` would return rows."""

    def inserts(self) -> Iterator[pa.RecordBatch]:
        """Yield the new records, batch by batch. Deletes of non-existing records are dropped."""

    def remaining(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows for a log file, batch by batch."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of one batch with the same file group, and their row positions (new records: the maximum integer)."""

    rows: pa.RecordBatch
    positions: npt.NDArray[np.int64]

    def split(self, at: int) -> tuple[_Piece, _Piece]:
        """Return the first ``at`` rows, and the others."""
        return (
            _Piece(self.rows.slice(0, at), self.positions[:at]),
            _Piece(self.rows.slice(at), self.positions[at:]),
        )


class SortedRows:
    """Rows of one file group that arrive sorted by row position, with nulls last; one batch is in memory. A
    `FileGroupRows`."""

    def __init__(self, pieces: Iterator[_Piece]) -> None:
        self._pieces = pieces
        self._head = next(pieces, None)

    def updates_below(self, limit: int) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]] | None:
        """Return the rows that change base rows before ``limit``: the rows and their positions, ascending."""
        updates: list[_Piece] = []
        while self._head is not None:
            cut = int(np.searchsorted(self._head.positions, limit, side="left"))
            before, rest = self._head.split(cut)
            if cut:
                updates.append(before)
            if len(rest.positions):
                self._head = rest
                break
            self._head = next(self._pieces, None)
        if not updates:
            return None
        return pa.concat_batches([p.rows for p in updates]), np.concatenate([p.positions for p in updates])

    def has_updates_below(self, limit: int) -> bool:
        """Return True if `updates_below` would return rows."""
        return self._head is not None and bool(self._head.positions[0] < limit)

    def inserts(self) -> Iterator[pa.RecordBatch]:
        """Yield the remaining rows, the new records, batch by batch. Deletes of non-existing records are dropped."""
        for rows in self.remaining():
            is_deleted = delete_mask(rows)
            yield rows.filter(pa.array(~is_deleted)) if is_deleted.any() else rows

    def remaining(self) -> Iterator[pa.RecordBatch]:
        """Yield the remaining rows, updates, deletes and new records, batch by batch."""
        while self._head is not None:
            rows = self._head.rows
            self._head = next(self._pieces, None)
            yield rows


def rows_by_file_group(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[GroupKey, SortedRows]]:
    """Yield file groups with their rows. Rows that were not read are skipped when the next group is requested.

    Args:
        batches: Tagged rows, sorted by group, then row position with nulls last.
    """
    for (partition, file_id), parts in rows_by_columns(batches, PARTITION_PATH, FILE_ID):
        first = next(parts)
        pieces = map(_with_positions, chain([first], parts))
        yield GroupKey(partition, file_id, first.column(BASE_PATH)[0].as_py()), SortedRows(pieces)


def rows_by_columns(
    batches: Iterable[pa.RecordBatch], *names: str
) -> Iterator[tuple[tuple[str, ...], Iterator[pa.RecordBatch]]]:
    """Yield runs of rows with the same texts in some columns: the texts, and the rows batch by batch. Rows that were
    not read are skipped when the next run is requested."""
    runs = (run for batch in batches if batch.num_rows for run in _runs(batch, names))
    for texts, parts in groupby(runs, key=itemgetter(0)):
        yield texts, map(itemgetter(1), parts)


def delete_mask(rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Return a mask of the incoming rows that are deletes."""
    mask: npt.NDArray[np.bool_] = pc.fill_null(rows.column(IS_DELETE), False).to_numpy(zero_copy_only=False)
    return mask.astype(np.bool_, copy=False)


def _with_positions(rows: pa.RecordBatch) -> _Piece:
    return _Piece(rows, pc.fill_null(rows.column(ROW_POSITION), _AFTER_ALL).to_numpy(zero_copy_only=False))


def _runs(batch: pa.RecordBatch, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], pa.RecordBatch]]:
    """Yield the runs of one batch."""
    columns = [batch.column(name) for name in names]
    changes = np.zeros(batch.num_rows - 1, dtype=np.bool_)
    for column in columns:
        changes |= pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)).to_numpy(zero_copy_only=False)
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), batch.num_rows]
    for start, end in pairwise(bounds):
        yield tuple(column[start].as_py() for column in columns), batch.slice(start, end - start)
