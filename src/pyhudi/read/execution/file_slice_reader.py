"""Queries of file slices with log files: settings of a plan for the file group reader, and reading with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.merge.base_file_rows import Condition
from pyhudi.merge.batch_sizes import MergeMemory
from pyhudi.merge.file_group_reader import read_slice
from pyhudi.merge.file_slice import FileSlice, RecordSelection, SliceContext, StoredColumns
from pyhudi.merge.log_changed_rows import BASE_POSITION, changed_rows
from pyhudi.merge.logs.valid_log_blocks import BlockView, CommittedInstants
from pyhudi.merge.modes.delete_marker import DeleteMarker
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.read.selection.commit_time_filter import CommitTimes
from pyhudi.read.selection.selected_slices import InstantBounds
from pyhudi.schema.meta_fields import COMMIT_TIME
from pyhudi.table.config.merge_settings import with_delete_marker
from pyhudi.table.schema_history import ColumnNamesByInstant, SchemaHistory
from pyhudi.table.table_snapshot import TableSnapshot


def snapshot_block_view(table: TableSnapshot) -> BlockView:
    """Return the valid log blocks of the latest snapshot: all of them from version 8 on, where files are selected by
    completed instants."""
    if table.config.version >= 8:
        return BlockView()
    timeline = table.active.timeline
    committed = CommittedInstants(
        frozenset(i.requested for i in timeline.completed()),
        frozenset(i.requested for i in timeline.pending()),
        timeline.start,
    )
    return BlockView(committed=committed)


def column_names(table: TableSnapshot, schema: pa.Schema, as_of: str | None = None) -> ColumnNamesByInstant | None:
    """Return the names of columns in the files of each instant; None if the table has no schema history.

    A history file without a commit that records it belongs to a change of columns that was undone.
    """
    table_schema = resolve_table_schema(table)
    if table_schema is None or not table_schema.has_history:
        return None
    history = SchemaHistory.load(table.active)
    return None if history is None else history.column_names(schema, as_of)


def slice_context(
    table: TableSnapshot,
    schema: pa.Schema,
    *,
    path_columns: tuple[str, ...] = (),
    bounds: InstantBounds | None = None,
    names: ColumnNamesByInstant | None = None,
    opts: Options | None = None,
) -> SliceContext:
    """Return the settings for merging slices of a table; the columns of the result are all of ``schema``.

    Args:
        table: The table.
        schema: Columns of the result.
        path_columns: Columns that files do not hold.
        bounds: Bounds of the query: only base rows and log blocks of the commit times of an incremental query take
            part, and log blocks up to a requested time.
        names: Names of columns in older files (`column_names`); None: the same in all files.
        opts: Options of the read.

    Raises:
        UnsupportedTableError: The merger of the table is not registered.
    """
    opts = opts or Options.parse({})
    bounds = bounds or InstantBounds()
    commit_times = bounds.commit_times
    config = table.config
    view = snapshot_block_view(table)
    if bounds.written_by is not None:
        view = replace(view, committed=bounds.written_by)
    merging = with_delete_marker(config.merging, opts)
    return SliceContext(
        storage=table.storage,
        schema=schema,
        columns=tuple(schema.names),
        rules=MergeRules.for_table(merging),
        deletes=DeleteMarker.from_settings(merging),
        view=replace(view, latest=bounds.log_blocks, within=commit_times),
        stored=StoredColumns(
            path_columns, None if config.populate_meta_fields else KeySpec.from_config(config, opts), names
        ),
        selection=RecordSelection(
            None if commit_times is None else Condition(commit_times.arrow(), (COMMIT_TIME,)),
        ),
        use_positions=opts.get_typed(options.MERGE_USE_RECORD_POSITIONS),
        memory=MergeMemory(opts.get_typed(options.MEMORY_MERGE_MAX_SIZE), opts.get_typed(options.MEMORY_SPILL_PATH)),
        invalid_text=opts.get_typed(options.READ_INVALID_TEXT),
    )


@dataclass(frozen=True, slots=True)
class MergedReader:
    """Reads slices with logs into batches of the requested columns. Can be pickled, so that it can be sent to
    executors.

    Attributes:
        context: Context of the reads.
        columns: Columns of the batches.
        filter: Condition of the rows.
        commit_times: Condition on their commit times.
        with_positions: `read_changed` adds `BASE_POSITION` as the last column.
    """

    context: SliceContext
    columns: tuple[str, ...]
    filter: RowFilter | None = None
    commit_times: CommitTimes | None = None
    with_positions: bool = False

    @classmethod
    def from_plan(cls, plan: ScanPlan, context: SliceContext) -> MergedReader:
        """Return the reader for the slices of a plan."""
        more = plan.filter.columns(plan.schema) if plan.filter is not None else []
        if plan.commit_times is not None:
            more = [*more, COMMIT_TIME]
        context = replace(context, columns=tuple(dict.fromkeys((*plan.columns, *more))))
        selection = replace(context.selection, key_rows=plan.key_rows)
        of_keys = plan.filter is not None and set(plan.filter.columns(plan.schema)) <= plan.keys
        if plan.filter is not None and plan.filter.expression is not None and of_keys:
            # all versions of a record agree on it, so base rows that fail need not be merged to be left out
            by_key = Condition(plan.filter.arrow(plan.schema), tuple(plan.filter.columns(plan.schema)))
            selection = replace(selection, base_rows=by_key.and_(selection.base_rows))
        return cls(replace(context, selection=selection), plan.columns, plan.filter, plan.commit_times)

    def read(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        """Yield the merged rows of one slice that satisfy the conditions.

        Raises:
            QueryError: A file no longer exists.
            FormatError: A file is corrupt.
        """
        yield from self._matching(read_slice(self.context, file_slice), self.columns)

    def read_changed(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        """Yield the merged rows of one slice that are not in the base file unchanged
        (`pyhudi.merge.log_changed_rows`)."""
        selection = replace(self.context.selection, base_rows=None)
        batches = changed_rows(
            replace(self.context, selection=selection), file_slice, with_positions=self.with_positions
        )
        yield from self._matching(batches, self.changed_schema.names)

    @property
    def changed_schema(self) -> pa.Schema:
        """Columns of `read_changed`."""
        columns = pa.schema([self.context.schema.field(name) for name in self.columns])
        return columns.append(pa.field(BASE_POSITION, pa.int64())) if self.with_positions else columns

    def _matching(self, batches: Iterator[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        conditions = []
        if self.commit_times is not None:
            conditions.append(self.commit_times.arrow())
        if self.filter is not None:
            conditions.append(self.filter.arrow(self.context.schema))
        for batch in batches:
            for condition in conditions:
                batch = batch.filter(condition)
            if batch.num_rows:
                yield batch.select(list(columns))
