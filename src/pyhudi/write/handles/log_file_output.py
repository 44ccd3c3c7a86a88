"""Names and opening of the log files that a task writes."""

from __future__ import annotations

import zlib
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import BinaryIO

import pyarrow as pa

from pyhudi.format.file_names import next_log_version
from pyhudi.format.log import LogSlice
from pyhudi.timeline.markers import IOType
from pyhudi.write.handles.marked_file import open_marked_file
from pyhudi.write.settings.log_settings import LogSettings
from pyhudi.write.settings.write_context import TaskId, WriteContext


def log_slice(
    context: WriteContext, task: TaskId, logs: LogSettings, *, file_id: str, base_instant: str, names: pa.Array
) -> LogSlice:
    """Return the names of the log files of a task, in a slice with log files of these ``names`` (used in version 6)."""
    if not logs.named_by_slice:
        return LogSlice(file_id, context.instant, task.token)
    version = next_log_version(names, file_id, base_instant)
    return LogSlice(file_id, base_instant, _own_token(task, context.instant), version)


def open_log(context: WriteContext, logs: LogSettings, partition: str, name: str) -> AbstractContextManager[BinaryIO]:
    """Open a log file for writing, after its marker is created. Raises the errors of `open_marked_file`."""
    return open_marked_file(context, partition, name, IOType.APPEND if logs.named_by_slice else IOType.CREATE)


def _own_token(task: TaskId, instant: str) -> str:
    """Return the write token for names that do not contain the instant of the write, different for every write.

    Tasks of two writes may have the same numbers, and then one would replace the other's log file.
    """
    return replace(task, attempt=(zlib.crc32(instant.encode()) ^ task.attempt) & 0x7FFFFFFF).token
