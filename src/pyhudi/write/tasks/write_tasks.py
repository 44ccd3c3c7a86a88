"""Write tasks, independent of Spark: take Arrow batches, write files, return their stats."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.write.handles.append_handle import AppendHandle
from pyhudi.write.handles.base_file_output import RowLayout
from pyhudi.write.handles.bulk_insert_handle import BulkInsertHandle
from pyhudi.write.handles.column_update_handle import ColumnUpdateHandle
from pyhudi.write.handles.create_handle import CreateHandle, file_ids
from pyhudi.write.handles.merge_handle import MergeHandle
from pyhudi.write.rows.incoming_rows import FileGroupRows, GroupKey, rows_by_file_group
from pyhudi.write.rows.keyed_rows import KeyedRows, base_keys, buffer_rows
from pyhudi.write.rows.spillable_row_buffer import SpillableRowBuffer
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.write_status import encode_stats


def bulk_insert_task(
    batches: Iterable[pa.RecordBatch], context: WriteContext, task: TaskId, *, sorted_input: bool = False
) -> bytes:
    """Write rows in input order to new file groups of their partitions."""
    stats = BulkInsertHandle(context, task, sorted_input=sorted_input).run(batches)
    return encode_stats(stats)


def upsert_task(batches: Iterable[pa.RecordBatch], context: WriteContext, task: TaskId) -> bytes:
    """Write rows that are sorted by file group and row position: to log files, merged with base files, or to new file
    groups."""
    writer = GroupWriter(context, task)
    how = context.merging.keyed
    for key, rows in rows_by_file_group(batches):
        # Log files need no positions.
        merged = key.base_path is not None and not writer.appends(key)
        if how is None or (how.dedupe is None and not merged):
            writer.write(key, rows)
            continue
        with SpillableRowBuffer(context.buffer_size) as buffered:
            buffer_rows(rows.remaining(), how.dedupe, buffered)
            searched = key.base_path if merged and how.match else None
            keys = None if searched is None else base_keys(context.storage, searched, context.invalid_text)
            writer.write(key, KeyedRows(buffered, keys))
    return encode_stats(writer.stats)


class GroupWriter:
    """Writes the rows of file groups and collects the stats of the files."""

    def __init__(self, context: WriteContext, task: TaskId) -> None:
        self.stats: list[WriteStat] = []
        self._context = context
        self._task = task
        self._layout = RowLayout(context, task)
        self._merge = MergeHandle(context, task, self._layout)
        self._update = ColumnUpdateHandle(context, task, self._layout) if _updates_columns(context) else None
        self._append = None if context.logs is None else AppendHandle(context, task, self._layout, context.logs)

    def appends(self, key: GroupKey) -> bool:
        """Return True if the rows of a group may be written to log files."""
        return self._append is not None and self._append.takes(key)

    def write(self, key: GroupKey, rows: FileGroupRows, *, append: bool = True) -> None:
        """Write a group's rows to log files if possible and requested (*append*), otherwise to its next base file."""
        if append and self._append is not None and self._append.takes(key):
            self.stats.extend(self._append.run(key, rows))
        elif key.base_path is None:
            self.stats.extend(self._create(key, rows))
        else:
            updated = None if self._update is None else self._update.run(key, rows)
            self.stats.append(self._merge.run(key, rows) if updated is None else updated)

    def _create(self, key: GroupKey, rows: FileGroupRows) -> list[WriteStat]:
        handle = CreateHandle(self._context, self._task, key.partition, file_ids(key.file_id))
        try:
            for batch in rows.inserts():
                handle.write(self._layout.lay_out(batch))
            return handle.close()
        except BaseException:
            handle.abort()
            raise


def _updates_columns(context: WriteContext) -> bool:
    """Return True if columns that do not change may be copied from base files. CDC logs need whole rows."""
    return context.merging.updates_columns and context.files.extension == "parquet" and context.cdc is None
