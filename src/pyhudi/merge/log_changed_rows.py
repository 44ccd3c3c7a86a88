"""Splits a file slice into unchanged base rows, which an engine reads natively, and rows affected by log records, which
are merged in Python.

The engine reads the base file, excludes the rows at `replaced_positions`, and adds those of `changed_rows`: together
they are the rows of `pyhudi.merge.file_group_reader.read_slice`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from pyhudi.format.base_file.parquet import row_count
from pyhudi.format.log import count_records
from pyhudi.merge.base_file_merge import merge_base
from pyhudi.merge.base_file_rows import BaseRead, Condition, read_base
from pyhudi.merge.base_row_matches import BasePart, check_positions
from pyhudi.merge.batch_sizes import BATCH_ROWS, BatchLimits
from pyhudi.merge.file_group_reader import (
    OpenSlice,
    combines,
    has_positions,
    open_log_files,
    open_slice,
    slice_errors,
    stores_positions,
)
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.merge.logs.log_file_pool import LogFiles
from pyhudi.merge.logs.merged_log_records import MergedLogRecords
from pyhudi.merge.logs.valid_log_blocks import valid_blocks
from pyhudi.merge.ordering_values import Index, Mask, distinct
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.schema.name_resolution import top_column

BASE_POSITION = "_pyhudi_base_position"
"""Bigint column: the position of the base row that a merged row replaces; `NO_BASE_ROW` if only the logs have it."""
NO_BASE_ROW = -1
"""As `pyhudi.write.location_columns.UNKNOWN_POSITION` in the rows of a write."""


def replaced_positions(context: SliceContext, file_slice: FileSlice) -> Index:
    """Return the positions (from 0, ascending) of base rows that are updated or deleted by log records.

    Raises:
        QueryError: A file is missing.
        FormatError: A file is corrupt.
    """
    nothing = np.zeros(0, dtype=np.int64)
    if file_slice.base_path is None:
        return nothing
    with slice_errors(file_slice), open_log_files(context) as logs:
        named = _named_in_headers(context, file_slice, logs)
    if named is not None:
        return named
    context = _with_all_keys(replace(context, columns=()))  # Rows are only counted.
    with open_slice(context, file_slice) as opened:
        log_records = opened.log_records
        if log_records is None or not len(log_records):
            return nothing
        overlay = _ChangedBaseRows(context, file_slice, opened, log_records)
        if log_records.positions is not None and not overlay.compares:
            return _existing(context, file_slice, log_records.positions)
        replaced = [part.start + part.positions[wins] for part, wins in overlay.touched()]
    return np.concatenate(replaced) if replaced else nothing


def changed_rows(
    context: SliceContext, file_slice: FileSlice, *, with_positions: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the merged rows at the replaced positions, and the rows that only the logs have.

    Args:
        context: Context of the read.
        file_slice: The slice.
        with_positions: Add `BASE_POSITION` as the last column: `NO_BASE_ROW` in all rows if the log blocks do not store
            positions, because those of later blocks are of no use then, and finding them takes a read of all keys.

    Raises:
        QueryError: A file is missing.
        FormatError: A file is corrupt.
        MergerError: A custom merger failed.
    """
    with open_slice(context, file_slice) as opened:
        known = with_positions and stores_positions(file_slice, opened.blocks)
        for changes in _changes(context, file_slice, opened, rows_alone=True, positions=known):
            if changes.rows.num_rows:
                yield changes.positioned() if with_positions else changes.rows


def write_changed_rows(context: SliceContext, file_slice: FileSlice, write: Callable[[pa.RecordBatch], None]) -> Index:
    """Write both halves of the affected rows, reading the log files only once.

    Args:
        context: Context of the read.
        file_slice: The slice.
        write: Called with each batch of `changed_rows`, with positions.

    Returns:
        The `replaced_positions`.

    Raises:
        QueryError: A file is missing.
        FormatError: A file is corrupt.
        MergerError: A custom merger failed.
    """
    parts = [np.zeros(0, dtype=np.int64)]
    with open_slice(_with_all_keys(context), file_slice) as opened:
        for changes in _changes(context, file_slice, opened):
            if changes.rows.num_rows:
                write(changes.positioned())
            parts.append(changes.replaced)
    return np.concatenate(parts)


@dataclass(frozen=True, slots=True)
class _Changes:
    """Merged rows.

    Attributes:
        rows: The rows.
        positions: The position of the base row that each of them replaces; None: they replace none, or it is not known.
        replaced: Positions of base rows that the rows, or deletes, replace.
    """

    rows: pa.RecordBatch
    positions: Index | None
    replaced: Index

    def positioned(self) -> pa.RecordBatch:
        """Return the rows with `BASE_POSITION`."""
        none = np.full(self.rows.num_rows, NO_BASE_ROW, dtype=np.int64)
        positions = none if self.positions is None else self.positions
        return self.rows.append_column(BASE_POSITION, pa.array(positions, pa.int64()))


def _changes(
    context: SliceContext, file_slice: FileSlice, opened: OpenSlice, *, rows_alone: bool = False, positions: bool = True
) -> Iterator[_Changes]:
    """Yield the merged rows of an open slice in batches, with their ``positions`` if requested. With ``rows_alone`` not
    all replaced positions are returned."""
    reader, log_records = opened.reader, opened.log_records
    if log_records is None or not len(log_records):
        return
    nothing = np.zeros(0, dtype=np.int64)
    overlay = _ChangedBaseRows(context, file_slice, opened, log_records)
    by_key = None if context.key_rows is None or positions else context.key_rows.condition
    # If versions in the logs are whole rows and win, or are all deletes, it makes no difference to the rows whether the
    # base file has their records.
    same_rows = overlay.whole and (log_records.is_delete.all() or not (overlay.compares or positions))
    base_counts = not (rows_alone and same_rows)
    for part, wins in overlay.touched(by_key) if base_counts else ():
        if overlay.whole:
            kept = wins & ~log_records.is_delete[part.records]
            rows = log_records.changes(part.records[kept]).rows
        else:
            touched = part.rows.take(pa.array(part.positions))
            numbers = np.arange(len(part.positions), dtype=np.int64)
            merged = merge_base(touched, numbers, log_records.changes(part.records), reader.rules)
            rows, kept = merged.rows, ~merged.deleted
        places = part.start + part.positions
        yield _Changes(reader.finished(rows), places[kept] if positions else None, places[wins])
    logged = log_records.positions if positions else None
    for records in overlay.matches.unmatched():
        rows = reader.finished(log_records.changes(records).rows)
        yield _Changes(rows, None if logged is None else logged[records], nothing)
    if overlay.named_by_positions and log_records.positions is not None and file_slice.base_path is not None:
        none = pa.RecordBatch.from_pylist([], schema=context.output_schema)
        yield _Changes(none, nothing, _existing(context, file_slice, log_records.positions))


def _with_all_keys(context: SliceContext) -> SliceContext:
    return replace(context, selection=replace(context.selection, key_rows=None))


class _ChangedBaseRows:
    """Base rows of a slice that have versions in the logs.

    ``whole``: versions in the logs are whole rows, to which base rows contribute no values. ``compares``: a base
    row may win by its ordering value. ``named_by_positions``: the logs themselves have the positions of the base rows
    that they replace. ``matches``: the base rows that `touched` has read.
    """

    def __init__(
        self, context: SliceContext, file_slice: FileSlice, opened: OpenSlice, log_records: MergedLogRecords
    ) -> None:
        self._context, self._slice, self._reader, self._log_records = context, file_slice, opened.reader, log_records
        rules = opened.reader.rules
        self.matches = opened.reader.match(log_records)
        self.whole = not combines(rules, opened.blocks)
        self.compares = self.whole and bool(rules.ordering_fields)
        self.named_by_positions = log_records.positions is not None and self.whole and not self.compares

    def touched(self, condition: Condition | None = None) -> Iterator[tuple[BasePart, Mask]]:
        """Yield the parts of the base file with versions in the logs, and a mask of the winning ones of these versions.
        With a ``condition`` only rows that meet it are read and counted."""
        path, context, log_records = self._slice.base_path, self._context, self._log_records
        if path is None or self.named_by_positions:
            return
        names = context.stored.names(self._slice.base_instant)
        width = 0.0 if self.whole else self._reader.width(log_records)
        limits = BatchLimits(BATCH_ROWS, context.memory.batch_bytes, width)
        read = BaseRead(self._schema(), names, limits, condition, invalid_text=context.invalid_text)
        for part in self.matches.parts(read_base(context.storage, path, read)):
            if len(part.positions):
                yield part, self._wins(part)

    def _wins(self, part: BasePart) -> Mask:
        if not self.compares:
            return np.ones(len(part.positions), dtype=np.bool_)
        return self._log_records.winners(part.records, self._reader.rules.stored(part.rows, part.positions))

    def _schema(self) -> pa.Schema:
        """Return the columns of the base file that are needed."""
        schema = self._reader.schema
        if not self.whole:
            return schema
        needed = {top_column(path, schema.names) for path in self._reader.rules.ordering_fields}
        if self._context.key_rows is not None:
            needed |= set(self._context.key_rows.columns)
        if self._log_records.positions is None:
            keys = self._context.stored.keys
            needed |= {RECORD_KEY} if keys is None else {top_column(path, schema.names) for path in keys.record_fields}
        return pa.schema([field for field in schema if field.name in needed])


def _named_in_headers(context: SliceContext, file_slice: FileSlice, logs: LogFiles) -> Index | None:
    """Return the positions recorded in block headers, if they suffice to determine the replaced rows: all valid blocks
    have positions, and no base row wins against a later version. Otherwise None."""
    blocks = valid_blocks(logs.blocks(file_slice.log_paths, file_slice.log_sizes), context.view)
    if not blocks:
        return np.zeros(0, dtype=np.int64)
    compares = bool(context.rules.ordering_fields) and not combines(context.rules, blocks)
    if not has_positions(context, file_slice, blocks) or compares:
        return None
    parts = [positions for block in blocks if (positions := block.positions()) is not None]
    if [len(positions) for positions in parts] != list(map(count_records, blocks)):
        return None
    return _existing(context, file_slice, distinct(np.concatenate(parts)))


def _existing(context: SliceContext, file_slice: FileSlice, rows: Index) -> Index:
    """Return the positions after a check against the row count in the footer of the base file."""
    path = file_slice.base_path
    if len(rows) and path is not None and path.endswith(".parquet"):
        with context.storage.open_input(path) as source:
            check_positions(file_slice, rows, row_count(source))
    return rows
