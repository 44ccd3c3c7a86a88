"""Writing of the CDC log of one file group: the changes in a new version of its base file, for change data
queries."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from pyhudi.config.enums import CdcMode
from pyhudi.format.log import LogBlockHeader, LogSlice, LogWriter
from pyhudi.format.log.cdc_schema import DELETE, INSERT, UPDATE
from pyhudi.merge.base_file_merge import Merged
from pyhudi.merge.ordering_values import Index
from pyhudi.schema.evolution.schema_projection import conform
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.storage import join_path
from pyhudi.table.view.file_group_keys import FileGroupId
from pyhudi.timeline.markers import IOType
from pyhudi.write.handles.marked_file import open_marked_file
from pyhudi.write.settings.log_settings import CdcSettings
from pyhudi.write.settings.write_context import TaskId, WriteContext


class CdcLogWriter:
    """CDC log being written, together with the base file whose changes it contains.

    Names of the files contain the instant of the write in all table versions. Changes are added batch by batch, and
    buffered until they fill a block.
    """

    def __init__(self, context: WriteContext, settings: CdcSettings, task: TaskId, group: FileGroupId) -> None:
        self._context = context
        self._settings = settings
        self._columns = pa.schema([f for f in context.columns.schema if not is_meta_column(f.name)])
        self._partition = group.partition
        where = LogSlice(group.file_id, context.instant, task.token, is_cdc=True)
        self._writer = LogWriter(
            self._open, where, LogBlockHeader(context.instant, settings.schema), options=settings.options
        )

    def add_merged(self, base: pa.RecordBatch, updates: pa.RecordBatch, positions: Index, merged: Merged) -> None:
        """Add the updates and deletes of a batch of the base file. ``updates`` are the incoming rows with the keys of
        the rows at ``positions``."""
        if not (merged.changed.any() or merged.deleted.any()):
            return
        keyed = RECORD_KEY in base.schema.names
        keys = base.column(RECORD_KEY).take(pa.array(positions)) if keyed else updates.column(RECORD_KEY)
        deleted_positions = positions[merged.deleted]
        if len(deleted_positions):
            self.write_changes(
                DELETE, keys.filter(pa.array(merged.deleted)), base.take(pa.array(deleted_positions)), None
            )
        old = positions[merged.changed]
        if len(old):
            new = old - np.searchsorted(deleted_positions, old)
            after = merged.rows.take(pa.array(new)) if self._has_after else None
            self.write_changes(UPDATE, keys.filter(pa.array(merged.changed)), base.take(pa.array(old)), after)

    def add_inserts(self, rows: pa.RecordBatch, keys: pa.Array) -> None:
        """Add new records of the file group."""
        if rows.num_rows:
            self.write_changes(INSERT, keys, None, rows)

    def close(self) -> dict[str, int]:
        """Finish the log. Return its files with their sizes. Without changes there is one empty file.

        Raises:
            TransactionError: The write has ended; the file has been deleted.
        """
        files = self._writer.close()
        if not files:
            self._writer.write_empty_block()
            files = self._writer.close()
        return {join_path(self._partition, file.name): file.size for file in files}

    def abort(self) -> None:
        """Discard the log."""
        self._writer.abort()

    @property
    def _has_after(self) -> bool:
        return self._settings.mode is CdcMode.DATA_BEFORE_AFTER

    def write_changes(
        self, op: str, keys: pa.Array, before: pa.RecordBatch | None, after: pa.RecordBatch | None
    ) -> None:
        """Write a batch of changes.

        Args:
            op: Their operation, as in the column ``op``.
            keys: Record keys.
            before: The rows before the change; None: they are new.
            after: The rows after it; None: they were deleted, or are not stored.
        """
        count = len(keys)
        columns: dict[str, pa.Array] = {"op": pa.repeat(op, count)}
        if self._has_after:
            columns["ts_ms"] = pa.repeat(self._context.instant, count)
        else:
            columns["record_key"] = keys.cast(pa.string())
        if self._settings.mode is not CdcMode.OP_KEY_ONLY:
            columns["before"] = self._image(before, count)
        if self._has_after:
            columns["after"] = self._image(after, count)
        self._writer.write(pa.RecordBatch.from_pydict(columns))

    def _image(self, rows: pa.RecordBatch | None, count: int) -> pa.StructArray:
        kind = pa.struct(list(self._columns))
        if rows is None:
            return pa.nulls(count, kind)
        named = [name for name in self._columns.names if name in rows.schema.names]
        plain = {name: _plain(rows.column(name)) for name in named}
        laid = conform(pa.RecordBatch.from_pydict(plain), self._columns)
        return pa.StructArray.from_arrays(laid.columns, fields=list(self._columns))

    def _open(self, name: str) -> AbstractContextManager[BinaryIO]:
        return open_marked_file(self._context, self._partition, name, IOType.CREATE)


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
