"""Writes the log file in which the log files of a file slice are put together: the log compaction of one slice."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from pyhudi.format.columns import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.format.filenames import next_log_version, split_paths
from pyhudi.format.log import NATURAL_COLUMN, LogFile, LogOptions, LogSchema, LogSlice, LogWriter
from pyhudi.merge.filegroup import FileSlice, OpenSlice, SliceContext, open_slice
from pyhudi.merge.logstate import LogState
from pyhudi.storage import join_path
from pyhudi.timeline.markers import IOType
from pyhudi.write.announced import AnnouncedFile
from pyhudi.write.compact import with_reading
from pyhudi.write.context import TaskId, WriteContext
from pyhudi.write.status import Stat

_BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class LogTarget:
    """How log files are written, and what is in them."""

    schema: LogSchema
    options: LogOptions = field(default_factory=LogOptions)

    @property
    def named_by_slice(self) -> bool:
        """Whether log files bear the instant of their slice (version 6) rather than that of the writer."""
        return self.schema.table_version < 8


def compact_logs(
    reading: SliceContext, context: WriteContext, task: TaskId, file_slice: FileSlice, target: LogTarget
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
        where = _where(context, task, file_slice, target)
        opening = _Opening(context, file_slice.partition, target)
        with LogWriter(
            opening.open,
            where,
            context.instant,
            target.schema,
            options=target.options,
            compacted_times=list(dict.fromkeys(block.instant or "" for block in found.blocks)),
            constants=None if context.populate_meta_fields else dict.fromkeys(META_COLUMNS),
        ) as writer:
            _write(writer, state, found, file_slice.partition)
            files = writer.close()
    names = [path.rpartition("/")[2] for path in file_slice.log_paths] if target.named_by_slice else []
    return [
        with_reading(_stat(file_slice, file, [*names, file.name], started), file_slice, found, millis) for file in files
    ]


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


def _where(context: WriteContext, task: TaskId, file_slice: FileSlice, target: LogTarget) -> LogSlice:
    if not target.named_by_slice:
        return LogSlice(file_slice.file_id, context.instant, task.token)
    names = split_paths(pa.array(file_slice.log_paths, pa.string()))[1]
    version = next_log_version(names, file_slice.file_id, file_slice.base_instant)
    # names do not bear the writer's instant, and tasks of two writers may have equal numbers
    mine = replace(task, attempt=(zlib.crc32(context.instant.encode()) ^ task.attempt) & 0x7FFFFFFF)
    return LogSlice(file_slice.file_id, file_slice.base_instant, mine.token, version)


class _Opening:
    """Opens the files, each announced by its marker."""

    def __init__(self, context: WriteContext, partition: str, target: LogTarget) -> None:
        self._context, self._partition = context, partition
        self._io_type = IOType.APPEND if target.named_by_slice else IOType.CREATE

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        storage = self._context.storage
        file = AnnouncedFile(storage, self._context.instant, self._partition, name, self._io_type)
        with storage.open_output(file.path) as sink:
            yield sink
        file.check()


def _stat(file_slice: FileSlice, file: LogFile, names: list[str], started: float) -> Stat:
    return {
        "fileId": file_slice.file_id,
        "path": join_path(file_slice.partition, file.name),
        "partitionPath": file_slice.partition,
        "prevCommit": file_slice.base_instant,
        "numWrites": file.num_records + file.num_deletes,
        "numUpdateWrites": file.num_records,
        "numDeletes": file.num_deletes,
        "totalWriteBytes": file.size,
        "fileSizeInBytes": file.size,
        "logVersion": file.version,
        "logOffset": 0,
        "baseFile": "",
        "logFiles": names,
        "runtimeStats": {
            "totalScanTime": 0,
            "totalUpsertTime": int((time.monotonic() - started) * 1000),
            "totalCreateTime": 0,
        },
    }
