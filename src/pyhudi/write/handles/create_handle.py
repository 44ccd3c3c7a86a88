"""Writing of new records into new file groups."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pyarrow as pa

from pyhudi.format.file_names import file_prefix_of, new_file_id
from pyhudi.table.view.file_group_keys import FileGroupId
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.markers import IOType
from pyhudi.write.handles.base_file_output import BaseFileOutput, RowSource
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.write_status import RowCounts, file_stat

_FIRST_RATIO = 0.3
_FULL = 0.9
"""Fraction of its maximum size at which a file is full, because the last tenth would need a small row group."""


def task_file_ids(instant: str, task: TaskId, partition: str) -> Iterator[str]:
    """Return ids of the file groups that a task creates in a partition, the same for all its attempts, so that
    leftovers of an attempt do not look like a separate file group."""
    return file_ids(new_file_id(file_prefix_of(f"{instant}/{task.stage}/{task.partition}/{partition}"), 0))


def file_ids(first: str) -> Iterator[str]:
    """Return ids of new file groups with a common prefix, numbered from ``first``."""
    prefix, _, number = first.rpartition("-")
    return (new_file_id(prefix, number) for number in itertools.count(int(number)))


class CreateHandle:
    """Writes records of one partition into new base files, starting another one when a file is full.

    Rows have the form of `RowLayout`; ``source`` describes them. ``ids`` yields the ids of new file groups.
    """

    def __init__(
        self,
        context: WriteContext,
        task: TaskId,
        partition: str,
        ids: Iterator[str],
        source: RowSource | None = None,
    ) -> None:
        self._source = source
        self._context = context
        self._task = task
        self._partition = partition
        self._ids = ids
        self._output: BaseFileOutput | None = None
        self._started = 0.0
        self._stats: list[WriteStat] = []

    @property
    def buffered_bytes(self) -> int:
        """Buffered Arrow bytes."""
        return 0 if self._output is None else self._output.writer.buffered_bytes

    def flush(self) -> None:
        """Write buffered rows."""
        if self._output is not None:
            self._output.writer.flush()

    def write(self, rows: pa.RecordBatch) -> None:
        """Add rows."""
        while rows.num_rows:
            output = self._output or self._open()
            room = self._room(output, rows)
            if room == 0:
                self._finish(output)
                continue
            output.write(rows.slice(0, room))
            rows = rows.slice(room)

    def close(self) -> list[WriteStat]:
        """Finish the last file. Return the stats of all."""
        if self._output is not None:
            self._finish(self._output)
        return self._stats

    def abort(self) -> None:
        """Discard the open file."""
        if self._output is not None:
            self._output.abort()
            self._output = None

    def _open(self) -> BaseFileOutput:
        self._started = time.monotonic()
        self._output = BaseFileOutput(
            self._context,
            self._task,
            FileGroupId(self._partition, next(self._ids)),
            IOType.CREATE,
            self._source,
        )
        return self._output

    def _finish(self, output: BaseFileOutput) -> None:
        summary = output.close()
        self._output = None
        self._stats.append(
            file_stat(output.group, output.path, summary, RowCounts(inserts=summary.num_rows), started=self._started)
        )

    def _room(self, output: BaseFileOutput, rows: pa.RecordBatch) -> int:
        """Return the number of rows that still fit into the file; every file takes at least one row."""
        writer, limit = output.writer, self._context.files.max_size
        if not writer.num_rows:
            row_size: float = rows.nbytes * _FIRST_RATIO / rows.num_rows
            return max(1, min(int(rows.num_rows), int(limit / row_size) if row_size else int(rows.num_rows)))
        if writer.estimated_size >= _FULL * limit and writer.buffered_bytes:
            # The estimate assumes a compression ratio; near the limit, measure instead.
            writer.flush()
        size = writer.estimated_size
        if size >= _FULL * limit:
            return 0
        fits = (limit - size) * writer.num_rows // max(size, 1)
        return max(1, min(int(rows.num_rows), fits))
