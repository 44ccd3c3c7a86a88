"""Some rows of a Parquet file as a file of their own: the pages that have them, byte for byte, under a new footer.

Arrow reads whole column chunks. For a few rows with known numbers, the page index of the file locates their pages: runs
of pages that begin and end at the same rows in all columns. Nothing is decoded.

Field numbers are those of parquet.thrift of Apache Parquet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.format.base_file.thrift_footer.file_metadata import MAGIC, end_of_file, read_file_metadata
from pyhudi.format.base_file.thrift_footer.thrift_compact import (
    Struct,
    ThriftList,
    ThriftType,
    Value,
    from_int,
    read_struct,
    to_int,
)

Index = npt.NDArray[np.int64]

_WORTH = 0.5
"""Part of a row group's rows up to which pages are picked."""
_GAP = 256 * 1024
"""Bytes between two ranges up to which they are read in one go."""
# file metadata
_NUM_ROWS, _ROW_GROUPS, _ENTRIES, _ENCRYPTION = 3, 4, 5, (8, 9)
# row group
_COLUMNS, _GROUP_ROWS, _GROUP_DROPPED = 1, 3, (5, 6, 7)
# column chunk
_META_DATA, _OFFSET_INDEX, _INDEX_SIZE, _CHUNK_DROPPED, _CRYPTO = 3, 4, 5, (4, 5, 6, 7), (8, 9)
# column metadata
_PATH, _VALUES, _SIZE, _DATA_OFFSET, _DICTIONARY_OFFSET = 3, 5, 7, 9, 11
_META_DROPPED = (10, 12, 13, 14, 15, 16)
"""Index page, statistics (of all rows), encoding statistics, bloom filter, size statistics."""
# page location
_PAGE_OFFSET, _PAGE_SIZE, _PAGE_ROW = 1, 2, 3


def select_pages(source: Any, selected: Sequence[tuple[int, Index]]) -> pa.Buffer | None:
    """Return a file with the rows of these ascending numbers, and with others of the same pages.

    Args:
        source: The file, with random access; stays open.
        selected: Row groups by their numbers, with the rows in them.

    Returns:
        The file, of all columns. None where it is encrypted, where there is no page index for all of them, where
        columns have columns inside, or where the pages are most of the row groups.

    Raises:
        FormatError: The footer or the index is damaged.
    """
    footer = read_file_metadata(source)
    if footer is None or any(field in footer for field in _ENCRYPTION):
        return None
    groups: list[_Group] = []
    for number, rows in selected:
        group = _Group.from_footer(source, footer[_ROW_GROUPS].data.values[number])
        ranges = None if group is None else group.ranges(rows)
        if group is None or ranges is None:
            return None
        groups += [group.part(*one) for one in ranges]
    out = bytearray(MAGIC)
    described = [group.written(source, out) for group in groups]
    kept = {number: value for number, value in footer.items() if number != _ENTRIES}
    kept[_NUM_ROWS] = from_int(ThriftType.I64, sum(to_int(one[_GROUP_ROWS]) for one in described))
    kept[_ROW_GROUPS] = Value(ThriftType.LIST, ThriftList(ThriftType.STRUCT, described))
    out += end_of_file(kept)
    return pa.py_buffer(bytes(out))


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A column's pages in a row group: where its dictionary begins (or, if it has none, the first page), and where each
    page begins in the file and by its rows; the last entries are the ends."""

    described: Struct
    dictionary: int
    offsets: Index
    rows: Index

    @classmethod
    def from_index(cls, described: Struct, index: Struct, num_rows: int) -> _Chunk | None:
        pages = [page for page in index[1].data.values if isinstance(page, dict)]
        if not pages:
            return None
        offsets = [to_int(page[_PAGE_OFFSET]) for page in pages]
        rows = [to_int(page[_PAGE_ROW]) if _PAGE_ROW in page else 0 for page in pages]
        meta = described[_META_DATA].data
        starts = [to_int(meta[field]) for field in (_DATA_OFFSET, _DICTIONARY_OFFSET) if field in meta]
        starts = [start for start in starts if start > 0]
        end = offsets[-1] + to_int(pages[-1][_PAGE_SIZE])
        return cls(
            described,
            min(*starts, offsets[0]),
            np.array([*offsets, end], np.int64),
            np.array([*rows, num_rows], np.int64),
        )


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group, or the part of it from row ``first`` to ``last``."""

    described: Struct
    chunks: list[_Chunk]
    first: int
    last: int

    @classmethod
    def from_footer(cls, source: Any, described: Struct) -> _Group | None:
        num_rows = to_int(described[_GROUP_ROWS])
        columns: list[Struct] = described[_COLUMNS].data.values
        for column in columns:
            nested = len(column[_META_DATA].data[_PATH].data.values) > 1
            if nested or _OFFSET_INDEX not in column or any(field in column for field in _CRYPTO):
                return None
        places = [(to_int(column[_OFFSET_INDEX]), to_int(column[_INDEX_SIZE])) for column in columns]
        chunks = [
            _Chunk.from_index(column, read_struct(data), num_rows)
            for column, data in zip(columns, _read(source, places), strict=True)
        ]
        with_index = [chunk for chunk in chunks if chunk is not None]
        return cls(described, with_index, 0, num_rows) if len(with_index) == len(columns) and with_index else None

    def ranges(self, rows: Index) -> list[tuple[int, int]] | None:
        """Ranges of rows with the given ones, between which pages end in all columns; None: they are most of the
        rows."""
        common = self.chunks[0].rows
        for chunk in self.chunks[1:]:
            common = np.intersect1d(common, chunk.rows)
        which = np.unique(np.searchsorted(common, rows, side="right") - 1)
        ranges = [(int(common[i]), int(common[i + 1])) for i in which]
        few = sum(last - first for first, last in ranges) <= _WORTH * self.last
        return ranges if few else None

    def part(self, first: int, last: int) -> _Group:
        return _Group(self.described, self.chunks, first, last)

    def written(self, source: Any, out: bytearray) -> Struct:
        """Add the pages to a file; returns the row group as its footer describes it."""
        ranges = []
        for chunk in self.chunks:
            low, high = np.searchsorted(chunk.rows, (self.first, self.last))
            ranges.append((chunk.dictionary, int(chunk.offsets[0]) - chunk.dictionary))
            ranges.append((int(chunk.offsets[low]), int(chunk.offsets[high] - chunk.offsets[low])))
        data = iter(_read(source, ranges))
        columns = []
        for chunk in self.chunks:
            dictionary, pages = next(data), next(data)
            start = len(out)
            out += dictionary
            out += pages
            columns.append(self._column(chunk, start, len(dictionary), len(pages)))
        described = {k: v for k, v in self.described.items() if k not in _GROUP_DROPPED}
        described[_COLUMNS] = Value(ThriftType.LIST, ThriftList(ThriftType.STRUCT, columns))
        described[_GROUP_ROWS] = from_int(ThriftType.I64, self.last - self.first)
        return described

    def _column(self, chunk: _Chunk, start: int, dictionary: int, pages: int) -> Struct:
        meta = {k: v for k, v in chunk.described[_META_DATA].data.items() if k not in _META_DROPPED}
        meta[_VALUES] = from_int(ThriftType.I64, self.last - self.first)
        meta[_SIZE] = from_int(ThriftType.I64, dictionary + pages)
        meta[_DATA_OFFSET] = from_int(ThriftType.I64, start + dictionary)
        meta.pop(_DICTIONARY_OFFSET, None)
        if dictionary:
            meta[_DICTIONARY_OFFSET] = from_int(ThriftType.I64, start)
        described = {k: v for k, v in chunk.described.items() if k not in _CHUNK_DROPPED}
        described[_META_DATA] = Value(ThriftType.STRUCT, dict(sorted(meta.items())))
        return described


def _read(source: Any, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """The bytes of ranges (offset, length), in their order; those close to each other are read together."""
    order = sorted(range(len(ranges)), key=lambda i: ranges[i])
    cuts = [0]
    for i, (one, other) in enumerate(pairwise(order), 1):
        if ranges[other][0] - sum(ranges[one]) > _GAP:
            cuts.append(i)
    contents: list[bytes] = [b""] * len(ranges)
    for first, last in pairwise([*cuts, len(order)]):
        run = order[first:last]
        if not run:
            continue
        start = ranges[run[0]][0]
        source.seek(start)
        data = source.read(max(sum(ranges[i]) for i in run) - start)
        for i in run:
            at = ranges[i][0] - start
            contents[i] = bytes(data[at : at + ranges[i][1]])
            if len(contents[i]) < ranges[i][1]:
                raise FormatError("a Parquet file ends before its pages do")
    return contents
