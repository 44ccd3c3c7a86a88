"""Rows of a file group without positions, which are matched by key in the task that writes the group.

This is used with indexes that determine the file group of a key from the key alone: no lookup precedes the shuffle, and
the keys of base files are read only by the tasks that read these files anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import InvalidText
from pyhudi.merge.base_file_readers import open_base
from pyhudi.merge.sorted_deduplication import SortedDeduplicator, dedupe
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.storage import Storage
from pyhudi.write.location_columns import IS_DELETE, ROW_POSITION
from pyhudi.write.rows.spillable_row_buffer import SpillableRowBuffer

Index = npt.NDArray[np.int64]
_BATCH_ROWS = 65_536
_SEARCHED_BYTES = 64 * 1024 * 1024
_MAX_TEXT_BYTES = (1 << 31) - 1
_KEY_SCHEMA = pa.schema([(RECORD_KEY, pa.string())])


@dataclass(frozen=True, slots=True)
class KeyedWrite:
    """Settings for writing rows without locations. ``match``: rows whose keys are in the base file are updates and
    deletes of its rows; otherwise all are new. ``dedupe``: merges rows with the same key first (None: they are not
    merged)."""

    match: bool = True
    dedupe: SortedDeduplicator | None = None


class LocatedRows:
    """Rows of one file group that change rows of its base file (``numbers`` of *rows* with the ``positions`` of those,
    ascending), and new ones (``new``, numbers too), whatever their delete marks. *rows* have no column with positions.

    A `FileGroupRows`.
    """

    def __init__(self, rows: SpillableRowBuffer, positions: Index, numbers: Index, new: Index) -> None:
        self._rows = rows
        self._positions = positions
        self._numbers = numbers
        self._new = new
        self._next = 0

    def updates_below(self, limit: int) -> tuple[pa.RecordBatch, Index] | None:
        """Return the rows that change base rows before ``limit``: the rows and their positions, ascending."""
        end = int(np.searchsorted(self._positions, limit, side="left"))
        start, self._next = self._next, end
        if start >= end:
            return None
        return self._rows.take(self._numbers[start:end]), self._positions[start:end]

    def has_updates_below(self, limit: int) -> bool:
        """Return True if `updates_below` would return rows."""
        return self._next < len(self._positions) and bool(self._positions[self._next] < limit)

    def inserts(self) -> Iterator[pa.RecordBatch]:
        """Yield the new records, batch by batch."""
        for start in range(0, len(self._new), _BATCH_ROWS):
            yield self._rows.take(self._new[start : start + _BATCH_ROWS])

    def remaining(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that change others, with the positions of those, batch by batch."""
        for start in range(0, len(self._numbers), _BATCH_ROWS):
            batch = self._rows.take(self._numbers[start : start + _BATCH_ROWS])
            positions = pa.array(self._positions[start : start + _BATCH_ROWS])
            yield batch.append_column(ROW_POSITION, positions)


class KeyedRows(LocatedRows):
    """Rows of one file group, split into those that change a row of its base file and new ones."""

    def __init__(self, rows: SpillableRowBuffer, base_keys: pa.ChunkedArray | None) -> None:
        none: Index = np.zeros(0, dtype=np.int64)
        positions, numbers, new = none, none, np.ones(rows.num_rows, dtype=np.bool_)
        if base_keys is not None and rows.num_rows:
            positions, numbers = KeyIndex.from_keys(rows.column(RECORD_KEY)).match(base_keys)
            new[numbers] = False
        if rows.num_rows:  # deletes of records that there are not are dropped
            new &= upserts(rows)
        super().__init__(rows, positions, numbers, np.flatnonzero(new).astype(np.int64))

    def remaining(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, batch by batch."""
        yield from self._rows.filter(np.ones(self._rows.num_rows, dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """Index of keys to match: the distinct keys, and the row numbers of each, grouped by key."""

    keys: pa.Array
    rows: Index
    starts: Index
    counts: Index

    @classmethod
    def from_keys(cls, keys: pa.ChunkedArray) -> KeyIndex:
        """Return the index of a column of keys, which may contain duplicates."""
        encoded = _as_array(keys).dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        counts = np.bincount(codes, minlength=len(encoded.dictionary)).astype(np.int64)
        order = np.argsort(codes, kind="stable").astype(np.int64)
        distinct = encoded.dictionary
        if distinct.nbytes <= _MAX_TEXT_BYTES:  # Keys to match need not be cast then.
            distinct = distinct.cast(pa.string())
        return cls(distinct, order, np.cumsum(counts) - counts, counts)

    def match(self, base: pa.ChunkedArray) -> tuple[Index, Index]:
        """Return pairs of a position in *base* and the number of a row with the same key, by ascending position, then
        number. Both sides may contain duplicate keys."""
        data_type = self.keys.type
        matches = pc.index_in(base if data_type == base.type else base.cast(data_type), value_set=self.keys)
        hit = pc.is_valid(matches)
        positions: Index = np.flatnonzero(hit.to_numpy()).astype(np.int64)
        codes = matches.drop_null().to_numpy().astype(np.int64)
        if len(self.rows) == len(self.keys):
            return positions, self.rows[self.starts[codes]]
        repeats = self.counts[codes]
        within = np.arange(int(repeats.sum())) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        return np.repeat(positions, repeats), self.rows[np.repeat(self.starts[codes], repeats) + within]

    def match_each(self, bases: Iterable[pa.ChunkedArray]) -> Iterator[tuple[Index, Index]]:
        """Yield the pairs of each base as of `match`.

        Each search hashes all keys of this index, which takes longer than to look up those of a small file. So several
        bases are searched at a time, until their keys have `_SEARCHED_BYTES`.
        """
        for together in _batched(bases):
            chunks = [chunk for base in together for chunk in base.chunks]
            positions, numbers = self.match(pa.chunked_array(chunks, pa.string()))
            first = start = 0
            for end in np.cumsum([len(base) for base in together]).tolist():
                stop = int(np.searchsorted(positions, end))
                yield positions[start:stop] - first, numbers[start:stop]
                first, start = end, stop


def _batched(bases: Iterable[pa.ChunkedArray]) -> Iterator[list[pa.ChunkedArray]]:
    together: list[pa.ChunkedArray] = []
    size = 0
    for base in bases:
        together.append(base)
        size += base.nbytes
        if size >= _SEARCHED_BYTES:
            yield together
            together, size = [], 0
    if together:
        yield together


def upserts(rows: SpillableRowBuffer) -> npt.NDArray[np.bool_]:
    """Return a mask of the buffered rows, of which there must be at least one, that are no deletes."""
    mask: npt.NDArray[np.bool_] = ~pc.fill_null(rows.column(IS_DELETE), False).to_numpy()
    return mask


def buffer_rows(
    batches: Iterable[pa.RecordBatch], how: SortedDeduplicator | None, buffered: SpillableRowBuffer
) -> None:
    """Read rows into ``buffered``, merged by key if requested."""
    if how is None:
        for batch in batches:
            buffered.add(batch)
        buffered.finish()
        return
    with SpillableRowBuffer(buffered.memory_size) as all_rows:
        for batch in batches:
            all_rows.add(batch)
        all_rows.finish()
        repeated = _repeated(all_rows.column(RECORD_KEY))
        for batch in all_rows.filter(~repeated):
            buffered.add(batch)
        several = list(all_rows.filter(repeated))
        if several:
            buffered.add(dedupe(pa.concat_batches(several), how))
        buffered.finish()


def base_keys(storage: Storage, path: str, invalid_text: InvalidText = InvalidText.FAIL) -> pa.ChunkedArray:
    """Return the record keys of a base file, row by row. ``invalid_text``: treatment of keys that are not valid
    UTF-8."""
    with open_base(storage, path, invalid_text) as base:
        chunks = [batch.column(0).cast(pa.string()) for batch in base.batches(_KEY_SCHEMA)]
    return pa.chunked_array(chunks, pa.string())


def _repeated(keys: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the keys that occur more than once."""
    if not len(keys):
        return np.zeros(0, dtype=np.bool_)
    codes = _as_array(keys).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    repeated: npt.NDArray[np.bool_] = (np.bincount(codes) > 1)[codes]
    return repeated


def _as_array(keys: pa.ChunkedArray) -> pa.Array:
    """Return the keys as one array, of any size."""
    if keys.num_chunks == 1:
        return keys.chunk(0)
    return pa.concat_arrays([chunk.cast(pa.large_string()) for chunk in keys.chunks])
