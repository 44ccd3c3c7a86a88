"""Compaction of one file slice: writes a base file with its base file and log files merged."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pyhudi.format.base_file.base_file_writer import FileSummary
from pyhudi.format.log import BlockType
from pyhudi.merge.base_file_merge import merge_base
from pyhudi.merge.base_file_readers import BaseFileReader, open_base
from pyhudi.merge.file_group_reader import OpenSlice, open_slice
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.merge.logs.merged_log_records import MergedLogRecords
from pyhudi.merge.modes.record_versions import RecordVersions
from pyhudi.merge.ordering_values import Index
from pyhudi.schema.evolution.schema_projection import conform
from pyhudi.schema.meta_fields import FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.markers import IOType
from pyhudi.write.handles.base_file_output import BaseFileOutput, RowSource
from pyhudi.write.rows.dictionary_encoding import as_dictionaries, kept_as_dictionaries, with_dictionaries
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.write_status import RowCounts, file_stat, previous_file


def compact_slice(read_context: SliceContext, context: WriteContext, task: TaskId, file_slice: FileSlice) -> WriteStat:
    """Write the next base file of a slice's file group, and return its stat.

    ``read_context`` determines how the slice is merged; its columns are the stored ones. Rows keep the commit time and
    the sequence number of the winning version; all get the new file's name. If all rows are deleted, the file has no
    rows, so that the file group continues.

    Raises:
        QueryError: A file of the slice no longer exists.
        FormatError: A file of the slice is corrupt.
        TransactionError: The compaction was abandoned.
    """
    started = time.monotonic()
    with open_slice(read_context, file_slice) as opened, _base_of(read_context, file_slice) as base:
        millis = int((time.monotonic() - started) * 1000)
        handle = _CompactionHandle(read_context, context, task, file_slice, opened=opened, base=base)
        summary = handle.run()
    previous = None if file_slice.base_path is None else previous_file(file_slice.base_path)
    stat = file_stat(
        file_slice.group,
        handle.output.path,
        summary,
        RowCounts(handle.inserts, handle.updates, handle.deletes),
        started=started,
        previous=previous,
    )
    return with_log_statistics(stat, file_slice, opened, millis)


def with_log_statistics(stat: WriteStat, file_slice: FileSlice, opened: OpenSlice, millis: int) -> WriteStat:
    """Return the stat with the statistics of reading the slice's logs, and the duration in milliseconds."""
    times: dict[str, Any] = stat["runtimeStats"]
    return stat | {
        "totalLogRecords": opened.num_versions,
        "totalLogFilesCompacted": len(file_slice.log_paths),
        "totalLogSizeCompacted": sum(file_slice.log_sizes),
        "totalUpdatedRecordsCompacted": 0 if opened.log_records is None else len(opened.log_records),
        "totalLogBlocks": len(opened.all_blocks),
        "totalCorruptLogBlock": sum(block.type is BlockType.CORRUPT for block in opened.all_blocks),
        "totalRollbackBlocks": sum(block.is_rollback for block in opened.all_blocks),
        "totalLogReadTimeMs": millis,
        "runtimeStats": times | {"totalScanTime": millis},
    }


@contextmanager
def _base_of(read_context: SliceContext, file_slice: FileSlice) -> Iterator[BaseFileReader | None]:
    if file_slice.base_path is None:
        yield None
        return
    names = read_context.stored.names(file_slice.base_instant)
    with open_base(read_context.storage, file_slice.base_path, read_context.invalid_text, names) as base:
        yield base


class _CompactionHandle:
    """Merges one slice, batch by batch.

    Rewriting unchanged rows dominates the cost. So texts of few distinct values stay dictionary-encoded, and the bloom
    filter of the old file is continued.
    """

    def __init__(
        self,
        read_context: SliceContext,
        context: WriteContext,
        task: TaskId,
        file_slice: FileSlice,
        *,
        opened: OpenSlice,
        base: BaseFileReader | None,
    ) -> None:
        self.inserts = self.updates = self.deletes = 0
        self._reader, self._base = opened.reader, base
        records = opened.log_records
        self._log_records = records if records is not None and len(records) else None
        # Columns that the writer fills in are not read.
        columns = pa.schema([f for f in read_context.schema if f.name not in (FILE_NAME, PARTITION_PATH)])
        keys = (RECORD_KEY,) if read_context.stored.keys is None else read_context.stored.keys.record_fields
        self._repeating: frozenset[str] = frozenset()
        if base is not None:
            self._repeating = kept_as_dictionaries(base, columns, self._reader.rules, keys)
        self._schema = with_dictionaries(columns, self._repeating)
        footer = base.footer() if base is not None and context.files.bloom is not None else None
        source = RowSource(footer, self._repeating)
        self.output = BaseFileOutput(context, task, file_slice.group, IOType.MERGE, source)

    def run(self) -> FileSummary:
        """Write the file."""
        try:
            if self._log_records is None:
                for batch in self._base_rows():
                    self.output.write(batch, old_keys=True)
            else:
                self._merge(self._log_records)
        except BaseException:
            self.output.abort()
            raise
        return self.output.close()

    def _base_rows(self) -> Iterator[pa.RecordBatch]:
        if self._base is not None:
            for stored in self._base.batches(self._schema, self._repeating):
                yield conform(stored, self._schema)

    def _merge(self, log_records: MergedLogRecords) -> None:
        """Write the rows of the base file, merged with the versions in the logs, and the records that only the logs
        have."""
        matches = self._reader.match(log_records)
        for part in matches.parts(self._base_rows()):
            rows = part.rows
            if len(part.records):
                merged = merge_base(rows, part.positions, self._changes(log_records, part.records), self._reader.rules)
                self.updates += int(merged.changed.sum())
                self.deletes += int(merged.deleted.sum())
                rows = merged.rows
            self.output.write(rows, old_keys=True)
        for records in matches.unmatched():
            self.inserts += len(records)
            self.output.write(self._changes(log_records, records).rows)

    def _changes(self, log_records: MergedLogRecords, records: Index) -> RecordVersions:
        """Return versions of these records with the schema of base rows."""
        changes = log_records.changes(records)
        rows = as_dictionaries(changes.rows.select(self._schema.names), self._repeating)
        return replace(changes, rows=pa.RecordBatch.from_arrays(rows.columns, schema=self._schema))
