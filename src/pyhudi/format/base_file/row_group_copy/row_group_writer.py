"""Copies of row groups: column chunks with their pages, page indexes and bloom filters, at other offsets."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import FormatError
from pyhudi.format.base_file.thrift_footer import footer_fields as fields
from pyhudi.format.base_file.thrift_footer.file_metadata import read_file_metadata
from pyhudi.format.base_file.thrift_footer.footer_fields import (
    ColumnPath,
    chunk_span,
    column_chunks,
    column_path,
    index_spans,
    moved_pages,
    number_of,
)
from pyhudi.format.base_file.thrift_footer.thrift_compact import Struct, ThriftList, ThriftType, Value, from_int, to_int

_NEAR = 1 << 16
"""Bytes between ranges up to which they are read in one request."""
_PIECE = 8 << 20


class FileRanges:
    """Ranges of a file, read in one request if they are close together."""

    def __init__(self, source: Any, spans: list[tuple[int, int]]) -> None:
        self._source = source
        self._begin = min((offset for offset, _ in spans), default=0)
        size = max((offset + length for offset, length in spans), default=0) - self._begin
        self._data = source.read_at(size, self._begin) if size <= _NEAR + 2 * sum(n for _, n in spans) else b""

    def read(self, offset: int, length: int) -> bytes:
        """Read one of the ranges, or any other.

        Raises:
            FormatError: The file is too short.
        """
        at = offset - self._begin
        if at >= 0 and at + length <= len(self._data):
            return self._data[at : at + length]
        data: bytes = self._source.read_at(length, offset)
        if len(data) < length:
            raise FormatError(f"the Parquet file ends before byte {offset + length}, the end of an index")
        return data


NewChunks = Mapping[ColumnPath, tuple[Struct, FileRanges]]
"""Chunks of another file by the paths of their columns: footer entries, and the file that holds them."""


class RowGroupWriter:
    """Writes copies of row groups to a sink, from ``position`` on."""

    def __init__(self, sink: Any, constants: Mapping[str, str], position: int = 0) -> None:
        self._sink = sink
        self._constants = {name.encode(): text for name, text in constants.items()}
        self._made: dict[tuple[bytes, int], tuple[Struct, FileRanges]] = {}
        self.position = position

    def copy(self, source: Any, group: Struct, indexes: FileRanges, new: NewChunks) -> Struct:
        """Write a row group, with new chunks in place of those of the same paths. Return its entry in the footer, which
        has no ordinal."""
        rows, begin = to_int(group[fields.GROUP_ROWS]), self.position
        written: list[tuple[Struct, FileRanges, int]] = []  # chunks, where their indexes are, by how much they moved
        waiting: list[tuple[int, int]] = []  # neighbours, which are copied in one go
        for chunk in group[fields.COLUMNS].data.values:
            path = column_path(chunk)
            other = self._constant(path[0], rows) if path[0] in self._constants and len(path) == 1 else new.get(path)
            if other is not None:
                self._copy_bytes(source, waiting)
                written.append(self._new_chunk(*other))
                continue
            start, end = chunk_span(chunk)
            if waiting and waiting[-1][1] != start:
                self._copy_bytes(source, waiting)
            waiting.append((start, end))
            written.append((chunk, indexes, self.position - waiting[0][0]))
        self._copy_bytes(source, waiting)
        chunks = [self._with_indexes(*one) for one in written]
        plain, size = (
            sum(to_int(c[fields.META_DATA].data[field]) for c in chunks) for field in (fields.PLAIN_SIZE, fields.SIZE)
        )
        copied = {
            **group,
            fields.COLUMNS: Value(ThriftType.LIST, ThriftList(ThriftType.STRUCT, chunks)),
            fields.GROUP_PLAIN: from_int(ThriftType.I64, plain),
            fields.GROUP_OFFSET: from_int(ThriftType.I64, begin),
            fields.GROUP_SIZE: from_int(ThriftType.I64, size),
        }
        copied.pop(fields.ORDINAL, None)
        if new:
            copied.pop(fields.SORTING_COLUMNS, None)
        return copied

    def _constant(self, name: bytes, rows: int) -> tuple[Struct, FileRanges]:
        """Return a chunk with one value in all rows."""
        if (name, rows) not in self._made:
            self._made = {(name, rows): constant_chunk(name.decode(), self._constants[name], rows)}
        return self._made[name, rows]

    def _new_chunk(self, chunk: Struct, file: FileRanges) -> tuple[Struct, FileRanges, int]:
        """Write a chunk of another file."""
        start, end = chunk_span(chunk)
        delta = self.position - start
        self.write(file.read(start, end - start))
        return chunk, file, delta

    def _copy_bytes(self, source: Any, waiting: list[tuple[int, int]]) -> None:
        """Copy adjacent chunks and clear the list."""
        if not waiting:
            return
        at, end = waiting[0][0], waiting[-1][1]
        waiting.clear()
        while at < end:
            piece = source.read_at(min(_PIECE, end - at), at)
            if not len(piece):
                raise FormatError(f"the Parquet file ends at byte {at}, within a column chunk that ends at {end}")
            self.write(piece)
            at += len(piece)

    def _with_indexes(self, chunk: Struct, indexes: FileRanges, delta: int) -> Struct:
        """Return the chunk with its new offsets. Its page indexes and bloom filter are written."""
        moved = dict(chunk)
        meta: Struct = dict(chunk[fields.META_DATA].data)
        for field in fields.PAGE_OFFSETS:
            if number_of(meta, field):  # Zero means no page of that kind.
                meta[field] = from_int(ThriftType.I64, to_int(meta[field]) + delta)
        if number_of(moved, fields.CHUNK_OFFSET):
            moved[fields.CHUNK_OFFSET] = from_int(ThriftType.I64, to_int(moved[fields.CHUNK_OFFSET]) + delta)
        for holder, pair in ((meta, fields.BLOOM), (moved, fields.COLUMN_INDEX), (moved, fields.OFFSET_INDEX)):
            offset, length = pair
            if offset not in holder or length not in holder:  # Old writers omit the length of filters.
                holder.pop(offset, None)
                continue
            data = indexes.read(to_int(holder[offset]), to_int(holder[length]))
            if pair == fields.OFFSET_INDEX:
                data = moved_pages(data, delta)
                holder[length] = from_int(holder[length].kind, len(data))
            holder[offset] = from_int(ThriftType.I64, self.position)
            self.write(data)
        moved[fields.META_DATA] = Value(ThriftType.STRUCT, meta)
        return moved

    def write(self, data: bytes) -> None:
        """Write bytes of anything else."""
        self._sink.write(data)
        self.position += len(data)


def index_ranges(source: Any, footer: Struct) -> FileRanges:
    """Return the page indexes of all row groups of a file."""
    return FileRanges(source, [span for chunk in column_chunks(footer) for span in index_spans(chunk)])


def constant_chunk(name: str, text: str, rows: int) -> tuple[Struct, FileRanges]:
    """Return a column chunk with one text in all rows: its footer entry, and the file that holds it."""
    column = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([text]))
    sink = io.BytesIO()
    table = pa.table({name: column})
    with pq.ParquetWriter(
        *(sink, table.schema), compression="none", store_schema=False, write_page_index=True, data_page_version="1.0"
    ) as writer:
        writer.write_table(table, row_group_size=rows)
    file = pa.BufferReader(sink.getvalue())
    footer = read_file_metadata(file)
    assert footer is not None
    return next(column_chunks(footer)), FileRanges(file, [(0, file.size())])
