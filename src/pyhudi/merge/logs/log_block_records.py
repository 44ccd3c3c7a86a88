"""Decoding of log blocks to record versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from pyhudi.arrow.arrays import contiguous
from pyhudi.config.enums import InvalidText
from pyhudi.errors import FormatError
from pyhudi.format.log import NATURAL_COLUMN, BlockType, LogBlock, decode_deletes, decode_matching, decode_records
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.keygen.record_key_formatter import record_keys
from pyhudi.merge.key_filter import KeyFilter
from pyhudi.merge.logs.log_record_filter import LogRecordFilter
from pyhudi.merge.logs.log_record_versions import LogRecordVersions
from pyhudi.merge.modes.delete_marker import DeleteMarker
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.merge.modes.record_versions import RecordVersions, as_nullable_fields
from pyhudi.merge.ordering_values import Index, as_mask
from pyhudi.schema.evolution.schema_projection import FileNames, conform, file_columns, with_table_names
from pyhudi.schema.meta_fields import OPERATION, RECORD_KEY
from pyhudi.schema.name_resolution import field_type, top_column
from pyhudi.schema.timestamp_units import with_actual_types


class PositionsError(FormatError):
    """Record positions of a block do not match its records; keys have to be used."""


@dataclass(frozen=True, slots=True)
class LogRecordColumns:
    """Column layout of record versions.

    ``table``: the table's columns; ``kept``: those that versions keep. ``deletes`` marks records that are deletes, and
    ``keys`` computes the keys of records without stored ones (None: all records store theirs). ``by_position``:
    versions are distinguished by the positions of their base rows in the block. ``key_rows`` selects the records whose
    versions are read (None: all).
    """

    table: pa.Schema
    kept: pa.Schema
    rules: MergeRules
    deletes: DeleteMarker
    keys: KeySpec | None
    by_position: bool
    key_rows: KeyFilter | None

    def ordering(self) -> pa.Schema:
        """Ordering fields with their types in the table."""
        return pa.schema([pa.field(name, field_type(self.kept, name)) for name in self.rules.ordering_fields])

    def read(self) -> pa.Schema:
        """Return the columns to read from a block: those that are kept, and those that identify deletes and keys."""
        more = {*self.deletes.columns(self.table)}
        if self.keys is not None:
            more |= {top_column(path, self.table.names) for path in self.keys.record_fields}
        elif not self.by_position:
            more.add(RECORD_KEY)
        kept = set(self.kept.names)
        columns = pa.schema([*self.kept, *(f for f in self.table if f.name in more - kept)])
        if OPERATION not in columns.names:  # the schemas of commits leave it out, unlike those of blocks
            columns = columns.append(pa.field(OPERATION, pa.string()))
        return as_nullable_fields(columns)


def add_block_versions(
    blocks: Iterable[LogBlock],
    layout: LogRecordColumns,
    names: Callable[[str], FileNames],
    versions: LogRecordVersions,
    invalid_text: InvalidText,
) -> None:
    """Add the versions of all blocks, in the order of the blocks; one block is decoded at a time.

    ``invalid_text`` determines the treatment of text that is not valid UTF-8.

    Raises:
        FormatError: A block is corrupt.
        PositionsError: The positions of a block do not match its records.
    """
    reader = _BlockReader(layout, versions, invalid_text)
    for block in blocks:
        reader.add(block, names(block.instant or ""))


class _BlockReader:
    """Adds the versions in log blocks to a collection."""

    def __init__(self, layout: LogRecordColumns, versions: LogRecordVersions, invalid_text: InvalidText) -> None:
        self._layout, self._versions = layout, versions
        self._invalid_text = invalid_text
        self._ordering, self._read = layout.ordering(), layout.read()
        self._filter: LogRecordFilter | None = None
        if layout.key_rows is not None and not layout.by_position:
            self._filter = LogRecordFilter.from_key_filter(
                layout.key_rows, layout.table, stored_keys=layout.keys is None
            )

    def add(self, block: LogBlock, names: FileNames) -> None:
        """Add the versions of a block, in which columns may have other names."""
        if self._filter is not None and not self._filter.may_be_in(block):
            return
        positions = block.positions() if self._layout.by_position else None
        if block.type is BlockType.DELETE:
            self._add_deletes(block, positions)
        else:
            self._add_records(block, self._decoded(block, names), names, positions)

    def _decoded(self, block: LogBlock, names: FileNames) -> pa.Table:
        columns = list(file_columns(self._read, names))
        if self._filter is None:
            return decode_records(block, columns=columns, invalid_text=self._invalid_text)
        probe, matches = list(self._filter.columns(names)), partial(self._filter.numbers, names)
        return decode_matching(block, matches, probe, columns=columns, invalid_text=self._invalid_text)

    def _add_deletes(self, block: LogBlock, positions: Index | None) -> None:
        # If they are not compared, ordering values may even belong to fields other than those of the table.
        values_count = not self._layout.rules.deletes_win
        table = decode_deletes(block, self._ordering if values_count else pa.schema([])).combine_chunks()
        if values_count:
            natural = as_mask(table[NATURAL_COLUMN])
            values = tuple(contiguous(table[name]) for name in self._ordering.names)
        else:
            natural = np.ones(table.num_rows, dtype=np.bool_)
            values = tuple(pa.nulls(table.num_rows, f.type) for f in self._ordering)
        if positions is None:
            where: pa.Array | Index = contiguous(table[RECORD_KEY])
        else:
            where = _checked_positions(positions, table.num_rows, block)
        self._versions.add_deletes(natural, values, where)

    def _add_records(self, block: LogBlock, table: pa.Table, names: FileNames, positions: Index | None) -> None:
        layout, read = self._layout, self._read
        if positions is not None:
            _checked_positions(positions, table.num_rows, block)
        start, inside = 0, file_columns(read, names)
        for stored in table.combine_chunks().to_batches():
            batch = with_table_names(stored, inside, names)
            present = frozenset(batch.schema.names) if block.is_partial else None
            rows = conform(with_actual_types(batch, read), read)
            changes = RecordVersions.from_rows(
                rows.select(layout.kept.names), layout.deletes.mask(rows), layout.rules, layout.table
            )
            if positions is not None:
                where: pa.Array | Index = positions[start : start + batch.num_rows]
            else:
                where = rows.column(RECORD_KEY) if layout.keys is None else record_keys(rows, layout.keys)
            start += batch.num_rows
            self._versions.add_rows(changes, where, present)


def _checked_positions(positions: Index, rows: int, block: LogBlock) -> Index:
    if len(positions) != rows:
        raise PositionsError(f"the block at offset {block.offset} has {rows} records and {len(positions)} positions")
    return positions
