"""Parquet files made of the row groups of others, which are copied byte for byte under a new footer.

Nothing is decoded: column chunks with their pages and statistics, page indexes and bloom filters are unchanged, and
only the offsets to them are adjusted. Columns with new values get new chunks: those with the same value in every row
(`RowGroupCopier`), and those that are replaced (`ReplacedColumns`). Footer entries of record keys (range and bloom
filter) are merged.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import FormatError
from pyhudi.format.base_file import parquet_footer as fields
from pyhudi.format.base_file.footer_union import CREATED_BY_KEY, NAN_KEY, FooterUnion
from pyhudi.format.base_file.parquet_footer import (
    ColumnPath,
    chunk_span,
    column_chunks,
    column_path,
    encoded,
    have_same_form,
    index_spans,
    key_value_entries,
    moved_pages,
    number_of,
    schema_columns,
    text_of,
    top_level_elements,
)
from pyhudi.format.base_file.parquet_metadata import MAGIC, end_of_file, read_file_metadata
from pyhudi.format.base_file.thrift_compact import Struct, ThriftList, ThriftType, Value, from_int, to_int
from pyhudi.format.corruption import as_corruption

_NEAR = 1 << 16
"""Bytes between ranges up to which they are read in one request."""
_PIECE = 8 << 20
_MOST_ORDINALS = 0x7FFF
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
            as many rows; None if the row group is copied as it is. It is called once for each row group, in order.
    """

    empty: pa.Buffer
    rows: Callable[[int], pa.Buffer | None]


class RowGroupCopier:
    """Writes one Parquet file from the row groups of others. Memory: a few megabytes, and the new footer.

    Args:
        sink: Output with a method `write`. It stays open.
        constants: Top-level text columns that get a new value, by name.
        max_keys: Maximum number of keys for which the bloom filter of record keys is designed.
    """

    def __init__(self, sink: Any, constants: Mapping[str, str], max_keys: int) -> None:
        self._sink = sink
        self._constants = tuple(name.encode() for name in constants)
        self._max_keys = max_keys
        self._entries = FooterUnion(max_keys)
        self._first: Struct | None = None
        self._groups: list[bytes] = []
        self._num_rows = 0
        self._output = _GroupWriter(sink, constants)

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
                self._first = {k: v for k, v in footer.items() if k not in (fields.ROW_GROUPS, fields.ENTRIES)}
                self._output.write(MAGIC)
            indexes = _indexes(source, footer)
        known_nan = None if replaced is None else self._entries.forget_nan(_column_names(replaced.empty))
        for number, group in enumerate(footer[fields.ROW_GROUPS].data.values):
            if not to_int(group[fields.GROUP_ROWS]):
                continue
            data = None if replaced is None else replaced.rows(number)  # its errors are not those of the file
            with as_corruption("cannot read the Parquet file"):
                new = {} if data is None else self._new_chunks(data, group)
                if known_nan and data is None:
                    self._entries.add_nan(known_nan)
                copied = self._output.copy(source, group, indexes, new)
            self._groups.append(encoded(_numbered(copied, len(self._groups))))
            self._num_rows += to_int(group[fields.GROUP_ROWS])
        return None

    def close(self) -> CopiedFile:
        """Write the footer."""
        first = self._first
        if first is None:
            raise FormatError("no file was added to copy row groups from")
        entries, created_by = self._entries.finish()
        pairs = [
            {1: Value(ThriftType.BINARY, key), 2: Value(ThriftType.BINARY, text)}
            for key, text in sorted(entries.items())
        ]
        footer = {
            **first,
            fields.NUM_ROWS: from_int(ThriftType.I64, self._num_rows),
            fields.ROW_GROUPS: Value(ThriftType.LIST, ThriftList(ThriftType.STRUCT, self._groups)),
            fields.ENTRIES: Value(ThriftType.LIST, ThriftList(ThriftType.STRUCT, pairs)),
            fields.CREATED_BY: Value(ThriftType.BINARY, created_by),
        }
        self._output.write(end_of_file(footer))
        return CopiedFile(self._num_rows, self._output.position)

    def _refusal(self, footer: Struct | None, replaced: ReplacedColumns | None, entries: FooterUnion) -> str | None:
        """Return the reason why a file with this footer is not copied (None: it is); otherwise its entries are merged
        with ``entries``."""
        if footer is None:
            return "it is encrypted"
        return (
            self._obstacle(footer)
            or (None if replaced is None else _form_obstacle(footer, replaced.empty))
            or entries.add(
                key_value_entries(footer), text_of(footer, fields.CREATED_BY), to_int(footer[fields.NUM_ROWS])
            )
        )

    def _obstacle(self, footer: Struct) -> str | None:
        created_by = text_of(footer, fields.CREATED_BY)
        if _DISTRUSTED.match(created_by):
            return f"its statistics are not reliable: {created_by}"
        if _is_encrypted(footer):
            return "it has encrypted columns"
        if self._first is not None:
            same = schema_columns(self._first) == schema_columns(footer)
            return None if same else "its schema differs"
        there = dict(top_level_elements(footer[fields.SCHEMA].data.values))
        for name in self._constants:
            element = there.get(name, [{}])[0]
            if (number_of(element, fields.TYPE), number_of(element, fields.REPETITION)) != (
                fields.BYTE_ARRAY,
                fields.OPTIONAL,
            ):
                return f"its column {name.decode()!r} is not an optional text"
        return None

    def _new_chunks(self, data: pa.Buffer, group: Struct) -> _NewChunks:
        """Return the chunks of a file with the replaced columns of a row group, by their paths."""
        file = pa.BufferReader(data)
        footer = read_file_metadata(file)
        assert footer is not None
        (only,) = footer[fields.ROW_GROUPS].data.values
        rows, wanted = to_int(only[fields.GROUP_ROWS]), to_int(group[fields.GROUP_ROWS])
        if rows != wanted:
            raise FormatError(f"{rows} rows cannot replace columns of a row group of {wanted}")
        self._entries.add_nan(json.loads(key_value_entries(footer).get(NAN_KEY.encode(), b"[]")))
        ranges = _Ranges(file, [(0, file.size())])
        return {column_path(chunk): (chunk, ranges) for chunk in only[fields.COLUMNS].data.values}


class _GroupWriter:
    """Writes copies of row groups to a sink, from ``position`` on."""

    def __init__(self, sink: Any, constants: Mapping[str, str], position: int = 0) -> None:
        self._sink = sink
        self._constants = {name.encode(): text for name, text in constants.items()}
        self._made: dict[tuple[bytes, int], tuple[Struct, _Ranges]] = {}
        self.position = position

    def copy(self, source: Any, group: Struct, indexes: _Ranges, new: _NewChunks) -> Struct:
        """Write a row group, with new chunks in place of those of the same paths. Return its entry in the footer, which
        has no ordinal."""
        rows, begin = to_int(group[fields.GROUP_ROWS]), self.position
        written: list[tuple[Struct, _Ranges, int]] = []  # chunks, where their indexes are, by how much they moved
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

    def _constant(self, name: bytes, rows: int) -> tuple[Struct, _Ranges]:
        """Return a chunk with one value in all rows."""
        if (name, rows) not in self._made:
            self._made = {(name, rows): constant_chunk(name.decode(), self._constants[name], rows)}
        return self._made[name, rows]

    def _new_chunk(self, chunk: Struct, file: _Ranges) -> tuple[Struct, _Ranges, int]:
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

    def _with_indexes(self, chunk: Struct, indexes: _Ranges, delta: int) -> Struct:
        """Return the chunk with its new offsets. Its page indexes and bloom filter are written."""
        moved = dict(chunk)
        meta: Struct = dict(chunk[fields.META_DATA].data)
        for field in fields.PAGE_OFFSETS:
            if number_of(meta, field):  # Zero stands for no page of that kind.
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


class CopiedRowGroups:
    """Row groups of a Parquet file that go into the next version of the file as they are. Created by `open`.

    Args:
        source: The file (random access).
        footer: Its footer.
        constants: Top-level text columns that get a new value, by name.
    """

    def __init__(self, source: Any, footer: Struct, constants: Mapping[str, str]) -> None:
        self._source, self._footer, self._constants = source, footer, constants
        self._indexes = _indexes(source, footer)

    @classmethod
    def open(cls, source: Any, constants: Mapping[str, str], empty: pa.Buffer) -> CopiedRowGroups | None:
        """Return the row groups of a file; None if they cannot be next to those of its next version.

        Args:
            source: The file (random access).
            constants: Top-level text columns that get a new value, by name.
            empty: The next version, without rows.

        Raises:
            FormatError: The file is corrupt.
        """
        with as_corruption("cannot read the Parquet file"):
            footer, new = read_file_metadata(source), read_file_metadata(pa.BufferReader(empty))
            assert new is not None
            if footer is None or _is_encrypted(footer) or CREATED_BY_KEY.encode() in key_value_entries(footer):
                return None
            # Readers conclude from the name of the writer which statistics are right.
            if text_of(footer, fields.CREATED_BY) != text_of(new, fields.CREATED_BY):
                return None
            return cls(source, footer, constants) if schema_columns(footer) == schema_columns(new) else None

    @property
    def nan_columns(self) -> frozenset[str] | None:
        """Columns, or leaves of nested ones, of which any row group has NaN; None: unknown."""
        text = key_value_entries(self._footer).get(NAN_KEY.encode())
        return None if text is None else frozenset(json.loads(text))

    def num_rows(self, number: int) -> int:
        """Return the number of rows of a row group."""
        return to_int(self._footer[fields.ROW_GROUPS].data.values[number][fields.GROUP_ROWS])

    def dictionary_columns(self) -> list[str]:
        """Return the leaf columns with a dictionary in the first row group."""
        first = self._footer[fields.ROW_GROUPS].data.values[0]
        chunks = first[fields.COLUMNS].data.values
        found = [chunk for chunk in chunks if fields.DICTIONARY_OFFSET in chunk[fields.META_DATA].data]
        return [b".".join(column_path(chunk)).decode() for chunk in found]

    def copy(self, number: int, sink: Any, position: int) -> Struct:
        """Write a row group at a position of a file. Return its entry in the footer, which has no ordinal."""
        with as_corruption("cannot read the Parquet file"):
            group = self._footer[fields.ROW_GROUPS].data.values[number]
            return _GroupWriter(sink, self._constants, position).copy(self._source, group, self._indexes, {})


def with_row_groups(footer: Struct, copied: Sequence[tuple[int, Struct]]) -> Struct:
    """Return a footer with additional row groups.

    Args:
        footer: The footer, with the row groups that were written.
        copied: Entries of row groups in the order of the file, each with the number of written ones before it.
    """
    written = footer[fields.ROW_GROUPS].data.values
    groups: list[Struct] = []
    done = 0
    for before, group in copied:
        groups += [*written[done:before], group]
        done = before
    groups += written[done:]
    numbered = [encoded(_numbered(group, number)) for number, group in enumerate(groups)]
    rows = sum(to_int(group[fields.GROUP_ROWS]) for group in groups)
    return {
        **footer,
        fields.NUM_ROWS: from_int(ThriftType.I64, rows),
        fields.ROW_GROUPS: Value(ThriftType.LIST, ThriftList(ThriftType.STRUCT, numbered)),
    }


def _indexes(source: Any, footer: Struct) -> _Ranges:
    return _Ranges(source, [span for chunk in column_chunks(footer) for span in index_spans(chunk)])


def _numbered(group: Struct, number: int) -> Struct:
    """Return the entry of a row group with its number in the file."""
    if number > _MOST_ORDINALS:
        return {field: value for field, value in group.items() if field != fields.ORDINAL}
    return {**group, fields.ORDINAL: from_int(ThriftType.I16, number)}


def _is_encrypted(footer: Struct) -> bool:
    return fields.ENCRYPTION in footer or any(set(fields.CRYPTO) & chunk.keys() for chunk in column_chunks(footer))


_NewChunks = Mapping[ColumnPath, tuple[Struct, _Ranges]]


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
    return next(column_chunks(footer)), _Ranges(file, [(0, file.size())])


def _form_obstacle(footer: Struct, empty: pa.Buffer) -> str | None:
    """Return the reason why a file does not store columns in the same form as another file, which has only these."""
    new = read_file_metadata(pa.BufferReader(empty))
    assert new is not None
    entries = key_value_entries(footer)
    if any(key.startswith(_OLD_CALENDAR) for key in entries) or entries.get(_SPARK_VERSION, b"3")[:2] in _OLD_SPARKS:
        return "its dates are in the Julian calendar"
    there = dict(top_level_elements(footer[fields.SCHEMA].data.values))
    for name, elements in top_level_elements(new[fields.SCHEMA].data.values):
        stored = there.get(name)
        if stored is None:
            return f"it lacks the column {name.decode()!r}"
        if len(stored) != len(elements) or not all(map(have_same_form, stored, elements)):
            return f"it stores the column {name.decode()!r} in another form"
    return None


def _column_names(file: pa.Buffer) -> list[str]:
    footer = read_file_metadata(pa.BufferReader(file))
    assert footer is not None
    return [name.decode() for name, _ in top_level_elements(footer[fields.SCHEMA].data.values)]
