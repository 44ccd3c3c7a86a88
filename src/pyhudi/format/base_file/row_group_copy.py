"""Parquet files made of the row groups of others, which are copied byte for byte under a new footer.

Nothing is decoded: column chunks with their pages and statistics, page indexes and bloom filters are unchanged, and
only the offsets to them are adjusted. Columns with new values get new chunks: those with the same value in every row
(`RowGroupCopier`), and those that are replaced (`ReplacedColumns`). Footer entries of record keys (range and bloom
filter) are merged.

Field numbers are those of parquet.thrift of Apache Parquet.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import FormatError
from pyhudi.format.base_file.footer_union import NAN_KEY, FooterUnion
from pyhudi.format.base_file.parquet_metadata import MAGIC, end_of_file, read_file_metadata
from pyhudi.format.base_file.thrift_compact import (
    Kind,
    Struct,
    ThriftList,
    Value,
    from_int,
    read_struct,
    to_int,
    write_struct,
)
from pyhudi.format.corruption import as_corruption

_NEAR = 1 << 16
"""Bytes between ranges up to which they are read in one request."""
_PIECE = 8 << 20
_MOST_ORDINALS = 0x7FFF
# file metadata
_SCHEMA, _NUM_ROWS, _ROW_GROUPS, _ENTRIES, _CREATED_BY, _COLUMN_ORDERS, _ENCRYPTION = 2, 3, 4, 5, 6, 7, 8
# schema element
_TYPE, _LENGTH, _REPETITION, _NAME, _CHILDREN, _CONVERTED, _SCALE, _PRECISION, _LOGICAL = 1, 2, 3, 4, 5, 6, 7, 8, 10
_PHYSICAL = (_TYPE, _LENGTH, _REPETITION, _NAME, _CHILDREN, _CONVERTED, _SCALE, _PRECISION)
_BYTE_ARRAY, _OPTIONAL = 6, 1
# row group
_COLUMNS, _GROUP_PLAIN, _GROUP_ROWS, _SORTING_COLUMNS, _GROUP_OFFSET, _GROUP_SIZE, _ORDINAL = 1, 2, 3, 4, 5, 6, 7
# column chunk
_CHUNK_OFFSET, _META_DATA, _OFFSET_INDEX, _COLUMN_INDEX, _CRYPTO = 2, 3, (4, 5), (6, 7), (8, 9)
# column metadata
_PATH, _PLAIN_SIZE, _SIZE, _DATA_OFFSET, _INDEX_OFFSET, _DICTIONARY_OFFSET, _BLOOM = 3, 6, 7, 9, 10, 11, (14, 15)
_PAGE_OFFSETS = (_DATA_OFFSET, _INDEX_OFFSET, _DICTIONARY_OFFSET)
# offset index
_PAGES, _PAGE_OFFSET = 1, 1

_OLD_CALENDAR = b"org.apache.spark.legacy"
"""Begin of footer entries of Spark by which it reads all dates and times of a file in the Julian calendar."""
_SPARK_VERSION, _OLD_SPARKS = b"org.apache.spark.version", (b"1.", b"2.")
"""Footer entry with the version of Spark that wrote a file, and those of which Spark expects that calendar."""
_DISTRUSTED = re.compile(r"parquet-mr version 1\.[0-9]\.")
"""Writers whose statistics are known to be wrong. Under another writer's name readers would trust them."""


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file that consists of copies: rows, bytes."""

    num_rows: int
    size: int


@dataclass(frozen=True, slots=True)
class ReplacedColumns:
    """New values of top-level columns of a file whose other columns are copied.

    Args:
        empty: A Parquet file with these columns, without rows.
        rows: Returns, for the number of a row group with rows, a Parquet file with these columns and one row group, of
            as many rows. It is called once for each row group, in order.
    """

    empty: pa.Buffer
    rows: Callable[[int], pa.Buffer]


class RowGroupCopier:
    """Writes one Parquet file from the row groups of others. Memory: a few megabytes, and the new footer.

    Args:
        sink: Output with a method `write`. It stays open.
        constants: Top-level text columns that get a new value, by name.
        max_keys: Maximum number of keys for which the bloom filter of record keys is designed.
    """

    def __init__(self, sink: Any, constants: Mapping[str, str], max_keys: int) -> None:
        self._sink = sink
        self._constants = {name.encode(): text for name, text in constants.items()}
        self._max_keys = max_keys
        self._entries = FooterUnion(max_keys)
        self._first: Struct | None = None
        self._groups: list[bytes] = []
        self._num_rows = 0
        self._position = 0
        self._made: dict[tuple[bytes, int], tuple[Struct, _Ranges]] = {}

    def check(self, source: Any, replaced: ReplacedColumns | None = None) -> str | None:
        """Return the reason why `add` could not copy a file as the first one; None if it could.

        Raises:
            FormatError: The file is corrupt.
        """
        with as_corruption("cannot read the Parquet file"):
            footer = read_file_metadata(source)
            return self._refusal(footer, replaced, FooterUnion(self._max_keys))

    def add(self, source: Any, replaced: ReplacedColumns | None = None) -> str | None:
        """Copy all row groups of a file (random access), except the columns that are replaced. Return the reason if it
        cannot be merged with the previous ones, or if it stores the replaced columns in another form; then nothing is
        written.

        Raises:
            FormatError: The file is corrupt.
        """
        with as_corruption("cannot read the Parquet file"):
            footer = read_file_metadata(source)
            reason = self._refusal(footer, replaced, self._entries)
            if footer is None or reason is not None:
                return reason
            if self._first is None:
                self._first = {k: v for k, v in footer.items() if k not in (_ROW_GROUPS, _ENTRIES)}
                self._write(MAGIC)
            indexes = _Ranges(source, [span for chunk in _chunks(footer) for span in _index_spans(chunk)])
        if replaced is not None:
            self._entries.forget_nan(_column_names(replaced.empty))
        for number, group in enumerate(footer[_ROW_GROUPS].data.values):
            if not to_int(group[_GROUP_ROWS]):
                continue
            data = None if replaced is None else replaced.rows(number)  # its errors are not those of the file
            with as_corruption("cannot read the Parquet file"):
                new = {} if data is None else self._new_chunks(data, group)
                self._copy_group(source, group, indexes, new)
        return None

    def close(self) -> CopiedFile:
        """Write the footer."""
        first = self._first
        if first is None:
            raise FormatError("no file was added to copy row groups from")
        entries, created_by = self._entries.finish()
        pairs = [{1: Value(Kind.BINARY, key), 2: Value(Kind.BINARY, text)} for key, text in sorted(entries.items())]
        footer = {
            **first,
            _NUM_ROWS: from_int(Kind.I64, self._num_rows),
            _ROW_GROUPS: Value(Kind.LIST, ThriftList(Kind.STRUCT, self._groups)),
            _ENTRIES: Value(Kind.LIST, ThriftList(Kind.STRUCT, pairs)),
            _CREATED_BY: Value(Kind.BINARY, created_by),
        }
        self._write(end_of_file(footer))
        return CopiedFile(self._num_rows, self._position)

    def _refusal(self, footer: Struct | None, replaced: ReplacedColumns | None, entries: FooterUnion) -> str | None:
        """Return the reason why a file with this footer is not copied (None: it is); otherwise its entries are merged
        with ``entries``."""
        if footer is None:
            return "it is encrypted"
        return (
            self._obstacle(footer)
            or (None if replaced is None else _form_obstacle(footer, replaced.empty))
            or entries.add(_entries(footer), _text(footer, _CREATED_BY), to_int(footer[_NUM_ROWS]))
        )

    def _obstacle(self, footer: Struct) -> str | None:
        created_by = _text(footer, _CREATED_BY)
        if _DISTRUSTED.match(created_by):
            return f"its statistics are not reliable: {created_by}"
        if _ENCRYPTION in footer or any(set(_CRYPTO) & chunk.keys() for chunk in _chunks(footer)):
            return "it has encrypted columns"
        if self._first is not None:
            same = _columns(self._first) == _columns(footer)
            return None if same else "its schema differs"
        there = dict(_top_level_elements(footer[_SCHEMA].data.values))
        for name in self._constants:
            element = there.get(name, [{}])[0]
            if (_number(element, _TYPE), _number(element, _REPETITION)) != (_BYTE_ARRAY, _OPTIONAL):
                return f"its column {name.decode()!r} is not an optional text"
        return None

    # --- row groups --------------------------------------------------------------------------------------------------

    def _new_chunks(self, data: pa.Buffer, group: Struct) -> _NewChunks:
        """Return the chunks of a file with the replaced columns of a row group, by their paths."""
        file = pa.BufferReader(data)
        footer = read_file_metadata(file)
        assert footer is not None
        (only,) = footer[_ROW_GROUPS].data.values
        rows, wanted = to_int(only[_GROUP_ROWS]), to_int(group[_GROUP_ROWS])
        if rows != wanted:
            raise FormatError(f"{rows} rows cannot replace columns of a row group of {wanted}")
        self._entries.add_nan(json.loads(_entries(footer).get(NAN_KEY.encode(), b"[]")))
        ranges = _Ranges(file, [(0, file.size())])
        return {_path(chunk): (chunk, ranges) for chunk in only[_COLUMNS].data.values}

    def _copy_group(self, source: Any, group: Struct, indexes: _Ranges, new: _NewChunks) -> None:
        rows, begin = to_int(group[_GROUP_ROWS]), self._position
        written: list[tuple[Struct, _Ranges, int]] = []  # chunks, where their indexes are, by how much they moved
        waiting: list[tuple[int, int]] = []  # neighbours, which are copied in one go
        for chunk in group[_COLUMNS].data.values:
            path = _path(chunk)
            other = self._constant(path[0], rows) if path[0] in self._constants and len(path) == 1 else new.get(path)
            if other is not None:
                self._copy_bytes(source, waiting)
                written.append(self._new_chunk(*other))
                continue
            start, end = _span(chunk)
            if waiting and waiting[-1][1] != start:
                self._copy_bytes(source, waiting)
            waiting.append((start, end))
            written.append((chunk, indexes, self._position - waiting[0][0]))
        self._copy_bytes(source, waiting)
        chunks = [self._with_indexes(*one) for one in written]
        plain, size = (sum(to_int(c[_META_DATA].data[field]) for c in chunks) for field in (_PLAIN_SIZE, _SIZE))
        copied = {
            **group,
            _COLUMNS: Value(Kind.LIST, ThriftList(Kind.STRUCT, chunks)),
            _GROUP_PLAIN: from_int(Kind.I64, plain),
            _GROUP_OFFSET: from_int(Kind.I64, begin),
            _GROUP_SIZE: from_int(Kind.I64, size),
            _ORDINAL: from_int(Kind.I16, len(self._groups)),
        }
        if len(self._groups) > _MOST_ORDINALS:
            del copied[_ORDINAL]
        if new:
            copied.pop(_SORTING_COLUMNS, None)
        self._groups.append(_written(copied))
        self._num_rows += rows

    def _constant(self, name: bytes, rows: int) -> tuple[Struct, _Ranges]:
        """Return a chunk with one value in all rows."""
        if (name, rows) not in self._made:
            self._made = {(name, rows): constant_chunk(name.decode(), self._constants[name], rows)}
        return self._made[name, rows]

    def _new_chunk(self, chunk: Struct, file: _Ranges) -> tuple[Struct, _Ranges, int]:
        """Write a chunk of another file."""
        start, end = _span(chunk)
        delta = self._position - start
        self._write(file.read(start, end - start))
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
            self._write(piece)
            at += len(piece)

    def _with_indexes(self, chunk: Struct, indexes: _Ranges, delta: int) -> Struct:
        """Return the chunk with its new offsets. Its page indexes and bloom filter are written."""
        moved = dict(chunk)
        meta: Struct = dict(chunk[_META_DATA].data)
        for field in _PAGE_OFFSETS:
            if field in meta:
                meta[field] = from_int(Kind.I64, to_int(meta[field]) + delta)
        if _number(moved, _CHUNK_OFFSET):
            moved[_CHUNK_OFFSET] = from_int(Kind.I64, to_int(moved[_CHUNK_OFFSET]) + delta)
        for holder, fields in ((meta, _BLOOM), (moved, _COLUMN_INDEX), (moved, _OFFSET_INDEX)):
            offset, length = fields
            if offset not in holder or length not in holder:  # Old writers omit the length of filters.
                holder.pop(offset, None)
                continue
            data = indexes.read(to_int(holder[offset]), to_int(holder[length]))
            if fields == _OFFSET_INDEX:
                data = _moved_pages(data, delta)
                holder[length] = from_int(holder[length].kind, len(data))
            holder[offset] = from_int(Kind.I64, self._position)
            self._write(data)
        moved[_META_DATA] = Value(Kind.STRUCT, meta)
        return moved

    def _write(self, data: bytes) -> None:
        self._sink.write(data)
        self._position += len(data)


class _Ranges:
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


_Path = tuple[bytes, ...]
_NewChunks = Mapping[_Path, tuple[Struct, _Ranges]]


def constant_chunk(name: str, text: str, rows: int) -> tuple[Struct, _Ranges]:
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
    return next(_chunks(footer)), _Ranges(file, [(0, file.size())])


def _form_obstacle(footer: Struct, empty: pa.Buffer) -> str | None:
    """Return the reason why a file does not store columns in the same form as another file, which has only these."""
    new = read_file_metadata(pa.BufferReader(empty))
    assert new is not None
    entries = _entries(footer)
    if any(key.startswith(_OLD_CALENDAR) for key in entries) or entries.get(_SPARK_VERSION, b"3")[:2] in _OLD_SPARKS:
        return "its dates are in the Julian calendar"
    there = dict(_top_level_elements(footer[_SCHEMA].data.values))
    for name, elements in _top_level_elements(new[_SCHEMA].data.values):
        stored = there.get(name)
        if stored is None:
            return f"it lacks the column {name.decode()!r}"
        if len(stored) != len(elements) or not all(map(_have_same_form, stored, elements)):
            return f"it stores the column {name.decode()!r} in another form"
    return None


def _have_same_form(one: Struct, other: Struct) -> bool:
    """Return True if two elements of schemas describe the same bytes. Old writers omit the logical type."""
    names = (*_PHYSICAL, *((_LOGICAL,) if _LOGICAL in one and _LOGICAL in other else ()))
    return all(one.get(name) == other.get(name) for name in names)


def _column_names(file: pa.Buffer) -> list[str]:
    footer = read_file_metadata(pa.BufferReader(file))
    assert footer is not None
    return [name.decode() for name, _ in _top_level_elements(footer[_SCHEMA].data.values)]


def _path(chunk: Struct) -> _Path:
    return tuple(chunk[_META_DATA].data[_PATH].data.values)


def _columns(footer: Struct) -> tuple[list[Struct], Value | None]:
    """Return the columns of a schema and their order; the name of the schema itself differs between writers."""
    return footer[_SCHEMA].data.values[1:], footer.get(_COLUMN_ORDERS)


def _entries(footer: Struct) -> dict[bytes, bytes]:
    found = footer[_ENTRIES].data.values if _ENTRIES in footer else ()
    return {one[1].data: one[2].data for one in found if 2 in one}


def _chunks(footer: Struct) -> Iterator[Struct]:
    for group in footer[_ROW_GROUPS].data.values:
        yield from group[_COLUMNS].data.values


def _span(chunk: Struct) -> tuple[int, int]:
    """Return start and end of a chunk."""
    meta: Struct = chunk[_META_DATA].data
    start = min(offset for field in _PAGE_OFFSETS if (offset := _number(meta, field)))
    return start, start + to_int(meta[_SIZE])


def _index_spans(chunk: Struct) -> Iterator[tuple[int, int]]:
    for offset, length in (_COLUMN_INDEX, _OFFSET_INDEX):
        if offset in chunk and length in chunk:
            yield to_int(chunk[offset]), to_int(chunk[length])


def _moved_pages(data: bytes, delta: int) -> bytes:
    """Return an offset index with shifted pages."""
    index = read_struct(data)
    pages = index[_PAGES].data
    moved = [{**p, _PAGE_OFFSET: from_int(Kind.I64, to_int(p[_PAGE_OFFSET]) + delta)} for p in pages.values]
    return _written({**index, _PAGES: Value(Kind.LIST, ThriftList(pages.kind, moved))})


def _top_level_elements(schema: list[Struct]) -> Iterator[tuple[bytes, list[Struct]]]:
    """Yield the top-level columns of a schema, which is a list of tree nodes in pre-order, each with its own nodes."""
    at = 1
    while at < len(schema):
        begin, open_nodes = at, 1
        while open_nodes:
            open_nodes += (_number(schema[at], _CHILDREN) or 0) - 1
            at += 1
        yield schema[begin][_NAME].data, schema[begin:at]


def _number(fields: Struct, field: int) -> int | None:
    return to_int(fields[field]) if field in fields else None


def _text(fields: Struct, field: int) -> str:
    return fields[field].data.decode() if field in fields else ""


def _written(fields: Struct) -> bytes:
    return write_struct(dict(sorted(fields.items())))
