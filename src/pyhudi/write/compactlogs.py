"""Writes the log file in which the log files of a file slice are put together: the log compaction of one slice."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from pyhudi.format.columns import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.format.filenames import next_log_version, split_paths
from pyhudi.format.log import NATURAL_COLUMN, LogFile, LogSlice, LogWriter
from pyhudi.merge.filegroup import FileSlice, OpenSlice, SliceContext, open_slice
from pyhudi.merge.logstate import LogState
from pyhudi.timeline.markers import IOType
from pyhudi.write.announced import AnnouncedFile
from pyhudi.write.compact import with_reading
from pyhudi.write.context import TaskId, WriteContext
from pyhudi.write.logs import LogSettings
from pyhudi.write.status import Stat, log_stat

_BATCH_ROWS = 65_536


def compact_logs(
    reading: SliceContext, context: WriteContext, task: TaskId, file_slice: FileSlice, logs: LogSettings
) -> list[Stat]:
    """Write what the logs of a slice say, one version of each record and the deletes, into a log file of its own, whose
    blocks stand for theirs from then on. Returns the stats of the files.

    Records keep the commit time and sequence number of the version that won. Logs with partial updates are left as they
    are: a block cannot say of single records which columns they have.

    Raises:
        QueryError: a log file is gone.
        FormatError: a log file is damaged.
        TransactionError: the log compaction was given up meanwhile.
    """
    started = time.monotonic()
    reading = replace(reading, use_positions=False)  # deletes are written by key
    with open_slice(reading, replace(file_slice, base_path=None)) as found:
        state = found.state
        if state is None or not len(state) or any(block.is_partial for block in found.blocks):
            return []
        millis = int((time.monotonic() - started) * 1000)
        where = _where(context, task, file_slice, logs)
        opening = _Opening(context, file_slice.partition, logs)
        with LogWriter(
            opening.open,
            where,
            context.instant,
            logs.schema,
            options=logs.options,
            compacted_times=list(dict.fromkeys(block.instant or "" for block in found.blocks)),
            constants=None if context.populate_meta_fields else dict.fromkeys(META_COLUMNS),
        ) as writer:
            _write(writer, state, found, file_slice.partition)
            files = writer.close()
    stats = [_stat(file_slice, file, logs, started) for file in files]
    return [with_reading(stat, file_slice, found, millis) for stat in stats]


def _write(writer: LogWriter, state: LogState, found: OpenSlice, partition: str) -> None:
    for records in _chunks(np.flatnonzero(~state.is_delete)):
        writer.write(state.changes(records).rows)
    fields = found.reader.rules.ordering_fields
    for records in _chunks(np.flatnonzero(state.is_delete)):
        gone = state.changes(records)
        assert state.keys is not None
        columns = {
            RECORD_KEY: state.keys.take(pa.array(records)),
            PARTITION_PATH: pa.repeat(pa.scalar(partition), len(records)),
            **dict(zip(fields, gone.ordering, strict=True)),
            NATURAL_COLUMN: pa.array(gone.natural),
        }
        writer.delete(pa.table(columns))


def _chunks(records: np.ndarray) -> Iterator[np.ndarray]:
    for first in range(0, len(records), _BATCH_ROWS):
        yield records[first : first + _BATCH_ROWS]


def _where(context: WriteContext, task: TaskId, file_slice: FileSlice, logs: LogSettings) -> LogSlice:
    if not logs.named_by_slice:
        return LogSlice(file_slice.file_id, context.instant, task.token)
    names = split_paths(pa.array(file_slice.log_paths, pa.string()))[1]
    version = next_log_version(names, file_slice.file_id, file_slice.base_instant)
    # names do not bear the writer's instant, and tasks of two writers may have equal numbers
    mine = replace(task, attempt=(zlib.crc32(context.instant.encode()) ^ task.attempt) & 0x7FFFFFFF)
    return LogSlice(file_slice.file_id, file_slice.base_instant, mine.token, version)


class _Opening:
    """Opens the files, each announced by its marker."""

    def __init__(self, context: WriteContext, partition: str, logs: LogSettings) -> None:
        self._context, self._partition = context, partition
        self._io_type = IOType.APPEND if logs.named_by_slice else IOType.CREATE

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        storage = self._context.storage
        file = AnnouncedFile(storage, self._context.instant, self._partition, name, self._io_type)
        with storage.open_output(file.path) as sink:
            yield sink
        file.check()


def _stat(file_slice: FileSlice, file: LogFile, logs: LogSettings, started: float) -> Stat:
    names = [path.rpartition("/")[2] for path in file_slice.log_paths] if logs.named_by_slice else []
    return log_stat(
        file_slice.partition,
        file_slice.file_id,
        file,
        started=started,
        previous=file_slice.base_instant,
        base_name="",
        log_names=[*names, file.name],
    )
