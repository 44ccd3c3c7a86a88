"""Writing of updates and deletes of existing records to log files of a merge-on-read table."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.base_file.column_bounds import BoundsRecorder
from pyhudi.format.file_names import file_name_of, parse_names
from pyhudi.format.log import LogBlockHeader, LogWriter
from pyhudi.merge.modes.record_versions import ordering_of
from pyhudi.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import field_type
from pyhudi.table.partition_metadata import write_partition_metadata
from pyhudi.table.view.file_group_keys import group_keys
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.write.handles.base_file_output import RowLayout
from pyhudi.write.handles.log_file_output import log_slice, open_log
from pyhudi.write.location_columns import ROW_POSITION
from pyhudi.write.rows.incoming_rows import FileGroupRows, GroupKey, delete_mask
from pyhudi.write.settings.log_settings import LogSettings
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.write_status import DeltaSlice, log_stat


class AppendHandle:
    """Writes the incoming rows of one file group to new log files of its latest slice.

    The base file is not read, because rows have their position. Rows arrive and are written ordered by position; in
    every file records precede deletes.
    """

    def __init__(self, context: WriteContext, task: TaskId, layout: RowLayout, logs: LogSettings) -> None:
        self._context = context
        self._task = task
        self._layout = layout
        if logs.partial is not None:
            self._layout = RowLayout(context, task, schema=logs.partial, numbers=layout.numbers)
        self._logs = logs
        self._groups = group_keys(logs.slices)

    def takes(self, key: GroupKey) -> bool:
        """Return True if rows of the file group go to log files."""
        return self._slice_of(key) >= 0 or self._opens(key)

    def _opens(self, key: GroupKey) -> bool:
        """Return True if the file group has no file yet and begins with a log file."""
        return self._logs.opens_groups and key.base_path is None and self._slice_of(key) < 0

    def _slice_of(self, key: GroupKey) -> int:
        """Return the index of the file group's slice; -1: none. Every task has all slices, but looks up few."""
        text = group_keys(pa.table({"partition": [key.partition], "file_id": [key.file_id]}))[0]
        index: int = pc.index(self._groups, text).as_py()
        return index

    def run(self, key: GroupKey, rows: FileGroupRows) -> list[WriteStat]:
        """Write one file group. Return one stat per log file."""
        started = time.monotonic()
        if self._opens(key):
            context = self._context
            base_format = context.partition_metadata_format
            write_partition_metadata(context.storage, key.partition, context.instant, base_format=base_format)
        base_name = "" if key.base_path is None else file_name_of(key.base_path)
        slice_names: list[str] = self._slice_value(key, "log_names") or []
        indexed = self._context.columns.indexed
        recorder = None if indexed is None else BoundsRecorder(indexed, self._constants(key))
        with self._writer(key, base_name, slice_names) as writer:
            for batch in rows.remaining():
                self._append(writer, batch, recorder)
            files = writer.close()
        # With several files, each gets the bounds of all.
        bounds = None if recorder is None else recorder.finish()
        by_slice = self._logs.names_slice
        return [
            log_stat(
                key.group,
                file,
                DeltaSlice(
                    (self._slice_value(key, "base_instant") if by_slice else None) or self._instant(key),
                    base_name if by_slice else "",
                    [*slice_names, *(f.name for f in files[: i + 1])] if by_slice else [file.name],
                ),
                started=started,
                bounds=bounds,
            )
            for i, file in enumerate(files)
        ]

    def _append(self, writer: LogWriter, batch: pa.RecordBatch, recorder: BoundsRecorder | None) -> None:
        """Append the deletes and the records of a batch."""
        is_deleted = delete_mask(batch)
        if is_deleted.any():
            deletes = batch.filter(pa.array(is_deleted))
            writer.delete(self._deletes(deletes), _positions(deletes))
            batch = batch.filter(pa.array(~is_deleted))
        laid = self._layout.lay_out(batch)
        if recorder is not None:
            recorder.add(laid)
        writer.write(laid, _positions(batch))

    def _writer(self, key: GroupKey, base_name: str, slice_names: list[str]) -> LogWriter:
        context, logs = self._context, self._logs
        names = pa.array(slice_names, pa.string())
        base_instant = parse_names(pa.array([base_name], pa.string()))["instant"][0].as_py()
        return LogWriter(
            lambda name: open_log(context, logs, key.partition, name),
            log_slice(context, self._task, logs, file_id=key.file_id, base_instant=self._instant(key), names=names),
            LogBlockHeader(
                context.instant,
                logs.schema,
                base_instant=base_instant if logs.positions else None,
                is_partial=logs.partial is not None,
            ),
            options=logs.options,
            constants=self._constants(key),
        )

    def _instant(self, key: GroupKey) -> str:
        """Return the instant in the names of the file group's log files."""
        if not self._logs.named_by_slice:
            return self._context.instant
        instant: str = self._slice_value(key, "base_instant")
        return instant

    def _slice_value(self, key: GroupKey, column: str) -> Any:
        number = self._slice_of(key)
        return None if number < 0 else self._logs.slices[column][number].as_py()

    def _constants(self, key: GroupKey) -> dict[str, str | None]:
        if not self._context.columns.populate_meta_fields:
            return dict.fromkeys((COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME))
        # Records in log files have the id of their file group instead of a file name.
        return {COMMIT_TIME: self._context.instant, PARTITION_PATH: key.partition, FILE_NAME: key.file_id}

    def _deletes(self, rows: pa.RecordBatch) -> pa.Table:
        """Return keys and ordering values of deletes. Deletes by key have none, nor have rows without the columns."""
        keys = {name: rows.column(name) for name in (RECORD_KEY, PARTITION_PATH)}
        ordering = self._logs.schema.ordering
        if not len(ordering) or self._context.merging.hard_deletes:
            return pa.table(keys)
        if any(field_type(rows.schema, name) is None for name in ordering.names):
            return pa.table(keys)
        values = ordering_of(rows, ordering.names, self._context.columns.schema)
        return pa.table({**keys, **dict(zip(ordering.names, values, strict=True))})


def _positions(rows: pa.RecordBatch) -> pa.Array:
    """Return the positions in the base file of the rows that incoming rows change; null if unknown."""
    row_numbers = rows.column(ROW_POSITION)
    return pc.if_else(pc.greater_equal(row_numbers, 0), row_numbers, None)
