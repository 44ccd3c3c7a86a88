"""Merging of incoming rows with the rows of a base file, batch by batch and by position."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.merge.base_file_merge import merge_base
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.merge.modes.record_versions import RecordVersions, fold_record_versions
from pyhudi.merge.ordering_values import Index
from pyhudi.schema.evolution.schema_projection import conform
from pyhudi.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY
from pyhudi.write.handles.base_file_output import RowLayout
from pyhudi.write.handles.cdc_log_writer import CdcLogWriter
from pyhudi.write.rows.incoming_rows import FileGroupRows, GroupKey, delete_mask
from pyhudi.write.settings.write_context import WriteContext


def rules_for_rows(context: WriteContext, columns: pa.Schema) -> MergeRules:
    """Return the rules by which incoming rows merge with rows of these columns. In a write that deletes by key,
    ordering values are irrelevant."""
    by_key = context.merging.hard_deletes and context.merging.rules.merger is None
    return MergeRules() if by_key else context.merging.rules.present(columns)


class BaseRowMerge:
    """Merges the incoming rows of one file group with the rows of its base file.

    Rows are matched by position, not by key: the index has determined the base row of each update, so a key that occurs
    twice in the base file is updated twice. Unchanged rows keep their commit time and sequence number.

    Args:
        context: The write.
        layout: Conversion of incoming rows.
        key: The file group.
        columns: Columns of base rows, as merged; texts may be dictionary-encoded.
        log: CDC log that gets the changes (None: none is written).

    Attributes:
        updates: Number of changed rows so far.
        deletes: Number of deleted rows so far.
    """

    def __init__(
        self,
        context: WriteContext,
        layout: RowLayout,
        key: GroupKey,
        columns: pa.Schema,
        log: CdcLogWriter | None = None,
    ) -> None:
        self._context = context
        self._layout = layout
        self._key = key
        self._columns = columns
        self._rules = rules_for_rows(context, columns)
        self._stamp = (COMMIT_TIME, COMMIT_SEQNO) if context.columns.populate_meta_fields else ()
        self._log = log
        self._next = 0
        self.updates = self.deletes = 0

    def merged(self, batch: pa.RecordBatch, rows: FileGroupRows) -> pa.RecordBatch:
        """Return the next batch of the base file, with its updates and deletes applied.

        Raises:
            FormatError: An incoming row has no position.
        """
        base = conform(batch, self._columns)
        start, self._next = self._next, self._next + base.num_rows
        updates = rows.updates_below(self._next)
        if updates is None:
            return base
        if updates[1][0] < 0:
            raise FormatError(
                f"a record of file group {self._key.file_id!r} has no position, but base file {self._key.base_path!r} "
                "is merged by positions"
            )
        return self._apply(base, updates[0], updates[1] - start)

    def skip(self, num_rows: int) -> None:
        """Leave out the next rows of the base file, which have no updates."""
        self._next += num_rows

    def check_end(self, rows: FileGroupRows) -> None:
        """Check that no updates are left after the last batch.

        Raises:
            FormatError: The base file has fewer rows.
        """
        beyond = rows.updates_below(np.iinfo(np.int64).max)
        if beyond is not None:
            raise FormatError(
                f"base file {self._key.base_path!r} has {self._next} rows, but row {int(beyond[1][0])} is to be updated"
            )

    def with_commit_time(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return incoming rows with the columns of base rows; those that they lack are null."""
        laid = self._layout.lay_out(rows)
        columns = {name: laid.column(name) for name in laid.schema.names}
        if self._context.columns.populate_meta_fields:
            columns[COMMIT_TIME] = pa.repeat(pa.scalar(self._context.instant, pa.string()), laid.num_rows)
        filled = [_encoded(columns[f.name], f) if f.name in columns else _nulls(laid, f) for f in self._columns]
        return pa.RecordBatch.from_arrays(filled, schema=self._columns)

    def _apply(self, base: pa.RecordBatch, updates: pa.RecordBatch, positions: Index) -> pa.RecordBatch:
        changes = self._changes(updates)
        if (positions[1:] == positions[:-1]).any():
            positions, first, record = np.unique(positions, return_index=True, return_inverse=True)
            changes = fold_record_versions(changes, record, self._rules)
            updates = updates.take(pa.array(first))
        merged = merge_base(base, positions, changes, self._rules, stamp=self._stamp)
        self.updates += int(merged.changed.sum())
        self.deletes += int(merged.deleted.sum())
        if self._log is not None:
            self._log.add_merged(base, updates, positions, merged)
        return merged.rows

    def _changes(self, updates: pa.RecordBatch) -> RecordVersions:
        """Return incoming rows as versions of base rows; of deletes only the key is kept."""
        deletes = delete_mask(updates)
        hard = self._context.merging.hard_deletes
        changes = RecordVersions.from_rows(updates, deletes, self._rules, self._columns, hard_deletes=hard)
        omitted = np.zeros(len(deletes), dtype=np.bool_)
        omitted_columns = {name: omitted for name in self._columns.names if name in self._context.merging.unassigned}
        if not deletes.any():
            return replace(changes, rows=self.with_commit_time(updates), assigned=omitted_columns)
        upserts = self.with_commit_time(updates.filter(pa.array(~deletes)))
        spread = pa.array(np.cumsum(~deletes) - 1, mask=deletes)
        columns = [column.take(spread) for column in upserts.columns]
        if self._context.columns.populate_meta_fields:
            columns[self._columns.get_field_index(RECORD_KEY)] = updates.column(RECORD_KEY)
        return replace(
            changes, rows=pa.RecordBatch.from_arrays(columns, schema=self._columns), assigned=omitted_columns
        )


def _encoded(column: pa.Array, field: pa.Field) -> pa.Array:
    return column.dictionary_encode() if pa.types.is_dictionary(field.type) else column


def _nulls(rows: pa.RecordBatch, field: pa.Field) -> pa.Array:
    return pa.nulls(rows.num_rows, field.type)
