"""Incoming rows of a write task, split by file group, with at most one batch in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
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


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of one group within one batch, with their row positions (new records: the maximum integer)."""

    key: GroupKey
    rows: pa.RecordBatch
    positions: npt.NDArray[np.int64]


class FileGroupRows(Protocol):
    """Rows of one file group for a handle: first those that change rows of the base file, then new records."""

    def updates_below(self, key: GroupKey, limit: int, /) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]] | None: ...
    def has_updates_below(self, key: GroupKey, limit: int, /) -> bool: ...
    def inserts(self, key: GroupKey, /) -> Iterator[pa.RecordBatch]: ...
    def remaining(self, key: GroupKey, /) -> Iterator[pa.RecordBatch]: ...


class FileGroupRowReader:
    """Reads batches that are sorted by group, then row position with nulls last, one group after the other.

    A group must be read completely, or `finish_group` called, before the next one is requested.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._pieces = _split(batches)
        self._head: _Piece | None = next(self._pieces, None)

    def groups(self) -> Iterator[GroupKey]:
        """Yield the groups in order."""
        while self._head is not None:
            key = self._head.key
            yield key
            self.finish_group(key)

    def finish_group(self, key: GroupKey) -> None:
        """Skip the remaining rows of a group."""
        while self._head is not None and self._head.key == key:
            self._head = next(self._pieces, None)

    def updates_below(self, key: GroupKey, limit: int) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]] | None:
        """Return the group's rows that update base rows before ``limit``: the rows and their positions, ascending."""
        pieces: list[_Piece] = []
        while self._head is not None and self._head.key == key:
            head = self._head
            cut = int(np.searchsorted(head.positions, limit, side="left"))
            if cut:
                pieces.append(_Piece(key, head.rows.slice(0, cut), head.positions[:cut]))
            if cut < len(head.positions):
                self._head = _Piece(key, head.rows.slice(cut), head.positions[cut:])
                break
            self._head = next(self._pieces, None)
        if not pieces:
            return None
        return pa.concat_batches([p.rows for p in pieces]), np.concatenate([p.positions for p in pieces])

    def has_updates_below(self, key: GroupKey, limit: int) -> bool:
        """Return True if `updates_below` would return rows."""
        head = self._head
        return head is not None and head.key == key and bool(head.positions[0] < limit)

    def inserts(self, key: GroupKey) -> Iterator[pa.RecordBatch]:
        """Yield the remaining rows of the group, its new records, batch by batch. Deletes of non-existing records are
        dropped."""
        while self._head is not None and self._head.key == key:
            rows = self._head.rows
            self._head = next(self._pieces, None)
            is_deleted = deleted(rows)
            yield rows.filter(pa.array(~is_deleted)) if is_deleted.any() else rows

    def remaining(self, key: GroupKey) -> Iterator[pa.RecordBatch]:
        """Yield the remaining rows of the group, updates, deletes and new records, batch by batch."""
        while self._head is not None and self._head.key == key:
            rows = self._head.rows
            self._head = next(self._pieces, None)
            yield rows


def deleted(rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Return a mask of the incoming rows that are deletes."""
    mask: npt.NDArray[np.bool_] = pc.fill_null(rows.column(IS_DELETE), False).to_numpy(zero_copy_only=False)
    return mask.astype(np.bool_, copy=False)


def _split(batches: Iterable[pa.RecordBatch]) -> Iterator[_Piece]:
    for batch in batches:
        if not batch.num_rows:
            continue
        bounds = _run_bounds(batch)
        positions = pc.fill_null(batch.column(ROW_POSITION), _AFTER_ALL).to_numpy(zero_copy_only=False)
        for start, end in pairwise(bounds):
            key = GroupKey(
                batch.column(PARTITION_PATH)[start].as_py(),
                batch.column(FILE_ID)[start].as_py(),
                batch.column(BASE_PATH)[start].as_py(),
            )
            yield _Piece(key, batch.slice(start, end - start), positions[start:end])


def _run_bounds(batch: pa.RecordBatch) -> list[int]:
    """Return the start of every run of one group, and the end of the last."""
    changes = np.zeros(batch.num_rows - 1, dtype=np.bool_)
    for name in (PARTITION_PATH, FILE_ID):
        column = batch.column(name)
        changes |= pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)).to_numpy(zero_copy_only=False)
    return [0, *(np.flatnonzero(changes) + 1).tolist(), batch.num_rows]
