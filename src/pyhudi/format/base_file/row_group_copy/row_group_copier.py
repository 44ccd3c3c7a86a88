"""Parquet files made of the row groups of others, which are copied byte for byte under a new footer.

Nothing is decoded: column chunks with their pages and statistics, page indexes and bloom filters are unchanged, and
only the offsets to them are adjusted. Columns with new values get new chunks: those with the same value in every row
(`RowGroupCopier`), and those that are replaced (`ReplacedColumns`). Footer entries of record keys (range and bloom
filter) are merged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.format.base_file.base_file_footer import NAN_KEY
from pyhudi.format.base_file.row_group_copy.footer_union import FooterUnion
from pyhudi.format.base_file.row_group_copy.row_group_writer import FileRanges, NewChunks, RowGroupWriter, index_ranges
from pyhudi.format.base_file.thrift_footer import footer_fields as fields
from pyhudi.format.base_file.thrift_footer.file_metadata import MAGIC, end_of_file, read_file_metadata
from pyhudi.format.base_file.thrift_footer.footer_fields import (
    column_path,
    encoded,
    have_same_form,
    is_encrypted,
    key_value_entries,
    number_of,
    schema_columns,
    text_of,
    top_level_elements,
    with_ordinal,
)
from pyhudi.format.base_file.thrift_footer.thrift_compact import Struct, ThriftList, ThriftType, Value, from_int, to_int
from pyhudi.format.corruption_errors import as_corruption

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

    Attributes:
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
        self._output = RowGroupWriter(sink, constants)

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
            indexes = index_ranges(source, footer)
        known_nan = None if replaced is None else self._entries.remove_nan(_column_names(replaced.empty))
        for number, group in enumerate(footer[fields.ROW_GROUPS].data.values):
            if not to_int(group[fields.GROUP_ROWS]):
                continue
            data = None if replaced is None else replaced.rows(number)  # its errors are not those of the file
            with as_corruption("cannot read the Parquet file"):
                new = {} if data is None else self._new_chunks(data, group)
                if known_nan and data is None:
                    self._entries.add_nan(known_nan)
                copied = self._output.copy(source, group, indexes, new)
            self._groups.append(encoded(with_ordinal(copied, len(self._groups))))
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
        if is_encrypted(footer):
            return "it has encrypted columns"
        if self._first is not None:
            same = schema_columns(self._first) == schema_columns(footer)
            return None if same else "its schema differs"
        elements = dict(top_level_elements(footer[fields.SCHEMA].data.values))
        for name in self._constants:
            element = elements.get(name, [{}])[0]
            if (number_of(element, fields.TYPE), number_of(element, fields.REPETITION)) != (
                fields.BYTE_ARRAY,
                fields.OPTIONAL,
            ):
                return f"its column {name.decode()!r} is not an optional text"
        return None

    def _new_chunks(self, data: pa.Buffer, group: Struct) -> NewChunks:
        """Return the chunks of a file with the replaced columns of a row group, by their paths."""
        file = pa.BufferReader(data)
        footer = read_file_metadata(file)
        assert footer is not None
        (only,) = footer[fields.ROW_GROUPS].data.values
        rows, expected = to_int(only[fields.GROUP_ROWS]), to_int(group[fields.GROUP_ROWS])
        if rows != expected:
            raise FormatError(f"{rows} rows cannot replace columns of a row group of {expected}")
        self._entries.add_nan(json.loads(key_value_entries(footer).get(NAN_KEY.encode(), b"[]")))
        ranges = FileRanges(file, [(0, file.size())])
        return {column_path(chunk): (chunk, ranges) for chunk in only[fields.COLUMNS].data.values}


def _form_obstacle(footer: Struct, empty: pa.Buffer) -> str | None:
    """Return the reason why a file does not store columns in the same form as another file, which has only these."""
    new = read_file_metadata(pa.BufferReader(empty))
    assert new is not None
    entries = key_value_entries(footer)
    if any(key.startswith(_OLD_CALENDAR) for key in entries) or entries.get(_SPARK_VERSION, b"3")[:2] in _OLD_SPARKS:
        return "its dates are in the Julian calendar"
    stored_elements = dict(top_level_elements(footer[fields.SCHEMA].data.values))
    for name, elements in top_level_elements(new[fields.SCHEMA].data.values):
        stored = stored_elements.get(name)
        if stored is None:
            return f"it lacks the column {name.decode()!r}"
        if len(stored) != len(elements) or not all(map(have_same_form, stored, elements)):
            return f"it stores the column {name.decode()!r} in another form"
    return None


def _column_names(file: pa.Buffer) -> list[str]:
    footer = read_file_metadata(pa.BufferReader(file))
    assert footer is not None
    return [name.decode() for name, _ in top_level_elements(footer[fields.SCHEMA].data.values)]
