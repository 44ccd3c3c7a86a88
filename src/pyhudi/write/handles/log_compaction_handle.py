"""Log compaction of one file slice: writes a log file with its log files merged."""

from __future__ import annotations

import time
from dataclasses import replace

import pyarrow as pa

from pyhudi.format.base_file.column_bounds import BoundsRecorder
from pyhudi.format.file_names import file_name_of, file_names_of
from pyhudi.format.log import NATURAL_COLUMN, LogBlockHeader, LogFile, LogWriter
from pyhudi.merge.file_group_reader import OpenSlice, open_slice
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.merge.logs.merged_log_records import MergedLogRecords
from pyhudi.schema.meta_fields import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.write.handles.compaction_handle import with_log_statistics
from pyhudi.write.handles.log_file_output import log_slice, open_log
from pyhudi.write.settings.log_settings import LogSettings
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.write_status import DeltaSlice, log_stat


def compact_logs(
    read_context: SliceContext, context: WriteContext, task: TaskId, file_slice: FileSlice, logs: LogSettings
) -> list[WriteStat]:
    """Write the merged records of a slice's logs, one version each, and the deletes, to a new log file whose blocks
    replace theirs. Return the stats of the files.

    Records keep the commit time and sequence number of the winning version. Logs with partial updates are not
    compacted, because a block cannot record the columns of single records.

    Raises:
        QueryError: A log file no longer exists.
        FormatError: A log file is corrupt.
        TransactionError: The log compaction was abandoned.
    """
    started = time.monotonic()
    read_context = replace(read_context, use_positions=False)  # Deletes are written by key.
    with open_slice(read_context, replace(file_slice, base_path=None)) as opened:
        log_records = opened.log_records
        if log_records is None or not len(log_records) or any(block.is_partial for block in opened.blocks):
            return []
        millis = int((time.monotonic() - started) * 1000)
        names = file_names_of(pa.array(file_slice.log_paths, pa.string()))
        where = log_slice(
            context, task, logs, file_id=file_slice.file_id, base_instant=file_slice.base_instant, names=names
        )
        with LogWriter(
            lambda name: open_log(context, logs, file_slice.partition, name),
            where,
            LogBlockHeader(
                context.instant,
                logs.schema,
                compacted_times=list(dict.fromkeys(block.instant or "" for block in opened.blocks)),
            ),
            options=logs.options,
            constants=None if context.columns.populate_meta_fields else dict.fromkeys(META_COLUMNS),
        ) as writer:
            recorder = None if context.columns.indexed is None else BoundsRecorder(context.columns.indexed)
            _write(writer, log_records, opened, file_slice.partition, recorder)
            files = writer.close()
    bounds = None if recorder is None else recorder.finish()
    stats = [_stat(file_slice, file, logs, started, bounds) for file in files]
    return [with_log_statistics(stat, file_slice, opened, millis) for stat in stats]


def _write(
    writer: LogWriter, log_records: MergedLogRecords, opened: OpenSlice, partition: str, recorder: BoundsRecorder | None
) -> None:
    for records in log_records.batches(~log_records.is_delete):
        rows = log_records.changes(records).rows
        if recorder is not None:
            recorder.add(rows)
        writer.write(rows)
    fields = opened.reader.rules.ordering_fields
    for records in log_records.batches(log_records.is_delete):
        deletes = log_records.changes(records)
        assert log_records.keys is not None
        columns = {
            RECORD_KEY: log_records.keys.take(pa.array(records)),
            PARTITION_PATH: pa.repeat(pa.scalar(partition), len(records)),
            **dict(zip(fields, deletes.ordering, strict=True)),
            NATURAL_COLUMN: pa.array(deletes.natural),
        }
        writer.delete(pa.table(columns))


def _stat(
    file_slice: FileSlice, file: LogFile, logs: LogSettings, started: float, bounds: pa.StructArray | None
) -> WriteStat:
    names = [file_name_of(path) for path in file_slice.log_paths] if logs.named_by_slice else []
    return log_stat(
        file_slice.group,
        file,
        DeltaSlice(file_slice.base_instant, "", [*names, file.name]),
        started=started,
        bounds=bounds,
    )
