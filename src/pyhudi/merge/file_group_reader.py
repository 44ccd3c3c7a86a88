"""File group reader: merges the base file and log files of a file slice into its rows.

`SliceContext` holds the settings of a query that are the same for all slices. It can be pickled, so executors can read
slices, too. `read_slice` streams one slice: the versions in the logs are folded into one per record first (beyond a
budget their columns are spilled to disk), then the base file is merged batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.errors import NotFoundError, QueryError
from pyhudi.format.corruption_errors import as_corruption
from pyhudi.format.log import Header, LogBlock
from pyhudi.keygen.record_key_formatter import record_keys
from pyhudi.merge.base_file_merge import merge_base
from pyhudi.merge.base_file_rows import BaseRead, read_base
from pyhudi.merge.base_row_matches import BaseRowMatches
from pyhudi.merge.batch_sizes import BATCH_ROWS, BatchLimits
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.merge.logs.log_block_records import LogRecordColumns, PositionsError, add_block_versions
from pyhudi.merge.logs.log_file_pool import LogFiles
from pyhudi.merge.logs.log_record_versions import LogRecordVersions
from pyhudi.merge.logs.merged_log_records import MergedLogRecords
from pyhudi.merge.logs.valid_log_blocks import valid_blocks
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.schema.evolution.schema_projection import conform
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.schema.name_resolution import top_column

_MIN_ROWS = 8_192
"""Minimum number of rows of a batch, regardless of the size of log records."""
_LOGS_OF_BUDGET = 4
"""Divisor of the budget: the share for undecoded log files."""


def read_slice(context: SliceContext, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
    """Return the merged rows of a slice: those of the base file in its order, then those that occur only in the logs.

    Raises:
        QueryError: A file no longer exists.
        FormatError: A file is corrupt.
        MergerError: A custom merger failed.
    """
    with open_slice(context, file_slice) as opened:
        yield from opened.reader.rows(opened.log_records)


@dataclass(frozen=True, slots=True)
class OpenSlice:
    """A slice whose logs have been read.

    Attributes:
        reader: Reader of the slice.
        log_records: Merged records of the logs; None: there are none.
        all_blocks: All blocks of the logs.
        blocks: Those that are valid.
        num_versions: Number of record versions in valid blocks.
    """

    reader: SliceReader
    log_records: MergedLogRecords | None
    all_blocks: list[LogBlock]
    blocks: list[LogBlock]
    num_versions: int


@contextmanager
def open_slice(context: SliceContext, file_slice: FileSlice) -> Iterator[OpenSlice]:
    """Read the logs of a slice. Its rows can be read while the context is open. Raises the errors of `read_slice`."""
    with slice_errors(file_slice), ExitStack() as stack:
        logs = stack.enter_context(open_log_files(context))
        all_blocks = list(logs.blocks(file_slice.log_paths, file_slice.log_sizes))
        blocks = valid_blocks(all_blocks, context.view)
        if (context.selection.base_rows is not None or context.view.within is not None) and combines(
            context.rules, blocks
        ):
            # Columns that a version omits come from versions that the condition excludes, or from older ones.
            selection = replace(context.selection, base_rows=None)
            context = replace(context, view=replace(context.view, within=None), selection=selection)
            blocks = valid_blocks(all_blocks, context.view)
        reader, log_records = _folded(context, file_slice, blocks, stack)
        logs.close()  # The valid blocks have been decoded.
        yield OpenSlice(reader, log_records, all_blocks, blocks, reader.num_versions)


def combines(rules: MergeRules, blocks: Iterable[LogBlock]) -> bool:
    """Return True if a row that is merged from these log blocks may combine values of several versions."""
    return rules.combines_versions or any(block.is_partial for block in blocks)


@contextmanager
def slice_errors(file_slice: FileSlice) -> Iterator[None]:
    """Context manager for reading a slice: errors name the slice and the solution."""
    try:
        with as_corruption(f"cannot read {file_slice}"):
            yield
    except NotFoundError as error:
        raise QueryError(
            f"a file of {file_slice} no longer exists: a cleaner has removed it since the query was planned. Plan "
            f"the query again, or retain more versions (hoodie.clean.commits.retained): {error}"
        ) from error


def open_log_files(context: SliceContext) -> LogFiles:
    """Open the pool of log files of a slice; most of the memory budget is left for their rows."""
    return LogFiles(context.storage, context.memory.budget // _LOGS_OF_BUDGET)


def _folded(
    context: SliceContext, file_slice: FileSlice, blocks: list[LogBlock], stack: ExitStack
) -> tuple[SliceReader, MergedLogRecords | None]:
    if not blocks:
        return SliceReader(context, file_slice, [], by_position=False), None
    if has_positions(context, file_slice, blocks):
        reader = SliceReader(context, file_slice, blocks, by_position=True)
        with suppress(PositionsError):
            return reader, reader.read_log_records(stack)
    reader = SliceReader(context, file_slice, blocks, by_position=False)
    return reader, reader.read_log_records(stack)


def has_positions(context: SliceContext, file_slice: FileSlice, blocks: list[LogBlock]) -> bool:
    """Return True if the read finds base rows by the positions in the logs."""
    if not context.use_positions or not context.selection.is_all:  # positions do not depend on which rows are read
        return False
    return stores_positions(file_slice, blocks)


def stores_positions(file_slice: FileSlice, blocks: list[LogBlock]) -> bool:
    """Return True if every version in the logs has the position of its row in the slice's base file."""
    if file_slice.base_path is None:
        return False
    instant = file_slice.base_instant
    return all(b.positions_base_instant == instant and Header.RECORD_POSITIONS in b.headers for b in blocks)


class SliceReader:
    """Reads one slice whose blocks are known. ``schema`` are the columns to read, ``rules`` the merge rules for
    them."""

    def __init__(
        self, context: SliceContext, file_slice: FileSlice, blocks: list[LogBlock], *, by_position: bool
    ) -> None:
        self._context, self._slice, self._blocks = context, file_slice, blocks
        self._by_position = by_position
        file_schema = pa.schema([f for f in context.schema if f.name not in context.stored.constant])
        self.rules = context.rules.present(file_schema)
        self.schema = pa.schema([file_schema.field(name) for name in self._needed(file_schema)])
        self.num_versions = 0

    def _needed(self, file_schema: pa.Schema) -> list[str]:
        """Return the columns of files that the result, conditions and merging need, in the order of the table."""
        context = self._context
        needed = {*context.columns, *context.selection.columns}
        if self._blocks:
            merger = self.rules.merger
            if merger is not None:
                needed |= set(file_schema.names if merger.columns is None else merger.columns)
            needed |= {top_column(path, file_schema.names) for path in self.rules.ordering_fields}
            if context.stored.keys is not None:
                needed |= {top_column(path, file_schema.names) for path in context.stored.keys.record_fields}
            elif not self._by_position or merger is not None:
                needed.add(RECORD_KEY)
        names = [name for name in file_schema.names if name in needed]
        return names or file_schema.names[:1]

    def rows(self, log_records: MergedLogRecords | None) -> Iterator[pa.RecordBatch]:
        """Yield the merged rows, given the records of the logs; None or empty: there is nothing to merge."""
        if log_records is None or not len(log_records):
            for batch in self._base(BATCH_ROWS):
                yield self.finished(batch)
            return
        matches = self.match(log_records)
        for part in matches.parts(self._base(BATCH_ROWS, self.width(log_records))):
            merged = part.rows
            if len(part.records):
                merged = merge_base(merged, part.positions, log_records.changes(part.records), self.rules).rows
            if merged.num_rows:
                yield self.finished(merged)
        for records in matches.unmatched():
            yield self.finished(log_records.changes(records).rows)

    def read_log_records(self, stack: ExitStack) -> MergedLogRecords:
        """Merge the log records of the slice. Their rows are available as long as the stack is open.

        Raises:
            PositionsError: The positions in the blocks are invalid.
        """
        context = self._context
        versions = LogRecordVersions(self.schema, self.rules, context.memory)
        stack.callback(versions.close)
        layout = LogRecordColumns(
            context.schema,
            self.schema,
            self.rules,
            context.deletes,
            context.stored.keys,
            self._by_position,
            context.key_rows,
        )
        add_block_versions(self._blocks, layout, context.stored.names, versions, context.invalid_text)
        self.num_versions = len(versions)
        return stack.enter_context(closing(versions.fold()))

    def width(self, log_records: MergedLogRecords) -> float:
        """Estimate the bytes of a base row from the logs. The file itself is more exact, except for repeated values."""
        return min(log_records.row_bytes, self._context.memory.batch_bytes / _MIN_ROWS)

    def _base(self, batch_rows: int, row_bytes: float = 0.0) -> Iterator[pa.RecordBatch]:
        context, path = self._context, self._slice.base_path
        if path is None:
            return
        names = context.stored.names(self._slice.base_instant)
        keys = None if context.key_rows is None else context.key_rows.key_array()
        limits = BatchLimits(batch_rows, context.memory.batch_bytes, row_bytes)
        read = BaseRead(self.schema, names, limits, context.selection.base_condition(), keys, context.invalid_text)
        yield from read_base(context.storage, path, read)

    def match(self, log_records: MergedLogRecords) -> BaseRowMatches:
        """Return the matches of base rows with records of the logs, of none yet."""
        return BaseRowMatches(self._slice, log_records, self._keys_of)

    def _keys_of(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the record keys of base rows."""
        spec = self._context.stored.keys
        return batch.column(RECORD_KEY) if spec is None else record_keys(batch, spec)

    def finished(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of the result."""
        context = self._context
        if not context.columns:
            return batch.select([])  # Preserves the number of rows.
        for name, value in self._slice.values.items():
            if name in context.columns:
                data_type = context.schema.field(name).type
                column = pa.repeat(pa.scalar(value, data_type), batch.num_rows)
                at = batch.schema.get_field_index(name)
                batch = batch.append_column(name, column) if at < 0 else batch.set_column(at, name, column)
        return conform(batch.select([n for n in batch.schema.names if n in context.columns]), context.output_schema)
