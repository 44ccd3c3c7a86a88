"""Row groups without changes in the next version of a file (ADR 35)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pyhudi.format.base_file.base_file_footer import CREATED_BY_KEY, NAN_KEY
from pyhudi.format.base_file.row_group_copy.row_group_writer import RowGroupWriter, index_ranges
from pyhudi.format.base_file.thrift_footer import footer_fields as fields
from pyhudi.format.base_file.thrift_footer.file_metadata import read_file_metadata
from pyhudi.format.base_file.thrift_footer.footer_fields import (
    column_path,
    encoded,
    is_encrypted,
    key_value_entries,
    schema_columns,
    text_of,
    with_ordinal,
)
from pyhudi.format.base_file.thrift_footer.thrift_compact import Struct, ThriftList, ThriftType, Value, from_int, to_int
from pyhudi.format.corruption_errors import as_corruption


class CopiedRowGroups:
    """Row groups of a Parquet file that go into the next version of the file as they are. Created by `open`.

    Args:
        source: The file (random access).
        footer: Its footer.
        constants: Top-level text columns that get a new value, by name.
    """

    def __init__(self, source: Any, footer: Struct, constants: Mapping[str, str]) -> None:
        self._source, self._footer, self._constants = source, footer, constants
        self._indexes = index_ranges(source, footer)

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
            if footer is None or is_encrypted(footer) or CREATED_BY_KEY.encode() in key_value_entries(footer):
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
        with_dictionary = [chunk for chunk in chunks if fields.DICTIONARY_OFFSET in chunk[fields.META_DATA].data]
        return [b".".join(column_path(chunk)).decode() for chunk in with_dictionary]

    def copy(self, number: int, sink: Any, position: int) -> Struct:
        """Write a row group at a position of a file. Return its entry in the footer, which has no ordinal."""
        with as_corruption("cannot read the Parquet file"):
            group = self._footer[fields.ROW_GROUPS].data.values[number]
            return RowGroupWriter(sink, self._constants, position).copy(self._source, group, self._indexes, {})


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
    numbered = [encoded(with_ordinal(group, number)) for number, group in enumerate(groups)]
    rows = sum(to_int(group[fields.GROUP_ROWS]) for group in groups)
    return {
        **footer,
        fields.NUM_ROWS: from_int(ThriftType.I64, rows),
        fields.ROW_GROUPS: Value(ThriftType.LIST, ThriftList(ThriftType.STRUCT, numbered)),
    }
