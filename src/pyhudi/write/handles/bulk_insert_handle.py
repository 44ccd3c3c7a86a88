"""Writing of records of any number of partitions into new file groups, in the tasks of a bulk insert."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from pyhudi.schema.meta_fields import PARTITION_PATH
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.write.handles.base_file_output import RowLayout, RowSource
from pyhudi.write.handles.create_handle import CreateHandle, task_file_ids
from pyhudi.write.rows.dictionary_encoding import as_dictionaries, as_texts, dictionary_columns
from pyhudi.write.rows.partition_spill import Codes, PartitionSpill
from pyhudi.write.settings.write_context import TaskId, WriteContext

_CHUNK_ROWS = 131_072
_CHUNK_BYTES = 48 * 1024 * 1024
MAX_OPEN_FILES = 64
"""Maximum number of base files that a task has open; rows of further partitions are spilled to local disk."""


class BulkInsertHandle:
    """Splits rows by partition path and writes each partition to its own files.

    With ``sorted_input`` the rows of a partition are contiguous, and its file is closed when the next partition begins.
    Otherwise a file per partition stays open, up to `MAX_OPEN_FILES`, and the rows of all other partitions are spilled
    to local disk until the input ends. Buffered rows are bounded by the context's ``buffer_size``.
    """

    def __init__(self, context: WriteContext, task: TaskId, *, sorted_input: bool) -> None:
        self._context = context
        self._task = task
        self._layout = RowLayout(context, task)
        self._ids: dict[str, Iterator[str]] = {}
        self._open_limit = 1 if sorted_input else MAX_OPEN_FILES
        self._sorted = sorted_input
        self._handles: dict[str, CreateHandle] = {}
        self._spill = PartitionSpill() if not sorted_input else None
        self._stats: list[WriteStat] = []
        self._repeating: frozenset[str] | None = None

    def run(self, batches: Iterable[pa.RecordBatch]) -> list[WriteStat]:
        """Write all batches. Return the stats of all files."""
        try:
            for chunk in _chunks(batches):
                self._write(chunk)
            self._close_all()
            if self._spill is not None:
                self._write_spilled(self._spill)
        except BaseException:
            for handle in self._handles.values():
                handle.abort()
            raise
        finally:
            if self._spill is not None:
                self._spill.close()
        return self._stats

    def _write(self, chunk: pa.RecordBatch) -> None:
        encoded = chunk.column(PARTITION_PATH).dictionary_encode()
        names: list[str] = encoded.dictionary.to_pylist()
        if len(names) == 1:
            self._write_partition(names[0], self._encoded(chunk))
        else:
            codes: Codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            late = self._partitions_to_spill(names)
            if not late:  # Columns of the spill file have one dictionary each.
                chunk = self._encoded(chunk)
            for code, name in enumerate(names):
                if code not in late:
                    self._write_partition(name, chunk.take(pa.array(np.flatnonzero(codes == code))))
            if late and self._spill is not None:
                waits = np.isin(codes, list(late))
                self._spill.add(chunk.filter(pa.array(waits)), names, codes[waits])
        self._bound_memory()

    def _encoded(self, chunk: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with texts of few distinct values as dictionaries; the first rows determine the columns."""
        if self._repeating is None:
            self._repeating = dictionary_columns(chunk, self._context.columns.schema.names)
        return as_dictionaries(chunk, self._repeating)

    def _partitions_to_spill(self, names: list[str]) -> set[int]:
        """Select the partitions of a chunk that get no open file."""
        if self._spill is None:
            return set()
        new = [code for code, name in enumerate(names) if name not in self._handles]
        return set(new[max(self._open_limit - len(self._handles), 0) :])

    def _write_partition(self, partition: str, rows: pa.RecordBatch) -> None:
        handle = self._handles.get(partition)
        if handle is None:
            if self._sorted:
                self._close_all()
            elif self._spill is not None and len(self._handles) >= self._open_limit:
                self._spill.add(as_texts(rows), [partition], np.zeros(rows.num_rows, dtype=np.int64))
                return
            handle = self._handles[partition] = self._open(partition)
        handle.write(self._layout.lay_out(rows))

    def _open(self, partition: str) -> CreateHandle:
        if partition not in self._ids:
            self._ids[partition] = task_file_ids(self._context.instant, self._task, partition)
        ids = self._ids[partition]
        return CreateHandle(
            self._context, self._task, partition, ids, RowSource(dictionary_columns=self._repeating or ())
        )

    def _bound_memory(self) -> None:
        waiting = {name: handle.buffered_bytes for name, handle in self._handles.items()}
        total = sum(waiting.values())
        while total > self._context.buffer_size:
            largest = max(waiting, key=lambda name: waiting[name])
            total -= waiting.pop(largest)
            self._handles[largest].flush()

    def _write_spilled(self, spill: PartitionSpill) -> None:
        for partition, rows in spill.read():
            handle = self._handles[partition] = self._open(partition)
            for chunk in _chunks(rows):
                handle.write(self._layout.lay_out(chunk))
            self._close_all()

    def _close_all(self) -> None:
        for partition in list(self._handles):
            self._stats += self._handles[partition].close()
            del self._handles[partition]


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine small batches, so that splitting by partition yields pieces of reasonable size."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        pending.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _CHUNK_ROWS or size >= _CHUNK_BYTES:
            yield _join(pending)
            pending, rows, size = [], 0, 0
    if pending:
        yield _join(pending)


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
