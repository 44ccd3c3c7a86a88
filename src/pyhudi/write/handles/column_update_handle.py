"""Writing of the next version of a base file of which only some columns change: all others are copied as bytes."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from itertools import accumulate
from sys import maxsize
from typing import Any

import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.format.base_file.base_file_writer import BaseFileSchema, FileSummary
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter
from pyhudi.format.base_file.row_group_copy.row_group_copier import CopiedFile, ReplacedColumns
from pyhudi.format.file_names import base_file_name
from pyhudi.merge.base_file_readers import BaseFileReader
from pyhudi.metadata.writer.file_statistics import read_file_bounds
from pyhudi.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME
from pyhudi.storage import join_path
from pyhudi.table.bootstrap_index import is_skeleton
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.markers import IOType
from pyhudi.write.handles.base_file_copy import has_file_columns, new_copier
from pyhudi.write.handles.base_file_output import RowLayout
from pyhudi.write.handles.base_row_merge import BaseRowMerge, rules_for_rows
from pyhudi.write.handles.marked_file import open_marked_file
from pyhudi.write.rows.dictionary_encoding import kept_as_dictionaries, with_dictionaries
from pyhudi.write.rows.incoming_rows import FileGroupRows, GroupKey
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.write_status import RowCounts, file_stat, previous_file

_log = logging.getLogger(__name__)


class ColumnUpdateHandle:
    """Writes updates of some columns, without deletes and new records (`WriteContext.updates_columns`), to the next
    version of a Parquet base file.

    Only the columns that change are read, merged (`BaseRowMerge`) and encoded: those that are assigned or decide
    between versions, commit times and sequence numbers. Column chunks of all others are copied, and all of them in row
    groups without updates; so are key range and bloom filter. Memory is bounded by the changing columns of one row
    group.
    """

    def __init__(self, context: WriteContext, task: TaskId, layout: RowLayout) -> None:
        self._context = context
        self._task = task
        self._layout = layout
        meta = (COMMIT_TIME, COMMIT_SEQNO) if context.columns.populate_meta_fields else ()
        updated_fields = [f for f in context.columns.schema if f.name not in context.merging.unassigned]
        self._plain = pa.schema([*(context.columns.file_schema.field(name) for name in meta), *updated_fields])
        self._rules = rules_for_rows(context, self._plain)

    def run(self, key: GroupKey, rows: FileGroupRows) -> WriteStat | None:
        """Update one file group.

        Returns:
            The stat of the file. None, with nothing written and no row taken, if the base file does not store all
            columns in the form in which they would be written now; then it has to be rewritten as a whole.

        Raises:
            FormatError: The base file is corrupt.
            TransactionError: The write has ended; the new file has been deleted.
        """
        assert key.base_path is not None
        context = self._context
        if is_skeleton(key.base_path) or context.columns.file_names(key.base_path):
            return None
        started = time.monotonic()
        with context.storage.open_input(key.base_path) as source:
            base = BaseFileReader(source, key.base_path, context.invalid_text)
            if not has_file_columns(context, base.schema()):
                _log_rewrite(key, "the columns of the table have changed since")
                return None
            repeating = kept_as_dictionaries(base, self._plain, self._rules)
            columns = with_dictionaries(self._plain, repeating)
            merge = BaseRowMerge(context, self._layout, key, columns)
            ends = list(accumulate(group.num_rows for group in base.row_groups()))

            def merged(group: int) -> pa.Buffer | None:
                if not rows.has_updates_below(ends[group]):
                    merge.skip(base.row_groups()[group].num_rows)
                    return None
                batches = base.batches(columns, repeating, [group])
                return self._encoded((merge.merged(batch, rows) for batch in batches), repeating)

            replaced = ReplacedColumns(self._encoded([], repeating), merged)
            name = base_file_name(key.file_id, self._task.token, context.instant, context.files.extension)
            copied = self._copy(key, name, source, replaced, lambda: _check_end(key, merge, rows))
            if copied is None:
                return None
        path = join_path(key.partition, name)
        bounds = (
            None
            if context.columns.indexed is None
            else read_file_bounds(context.storage, path, context.columns.indexed)
        )
        return file_stat(
            key.group,
            path,
            FileSummary(copied.num_rows, copied.size, None, None, bounds),
            RowCounts(updates=merge.updates),
            started=started,
            previous=previous_file(key.base_path),
        )

    def _copy(
        self, key: GroupKey, name: str, source: Any, replaced: ReplacedColumns, check_end: Callable[[], None]
    ) -> CopiedFile | None:
        """Write the new file; None, with nothing written, if the old one cannot be copied. ``check_end`` is called when
        all rows are merged, before the file is complete."""
        context = self._context
        reason = new_copier(context, io.BytesIO(), name).check(source, replaced)
        if reason is not None:
            _log_rewrite(key, reason)
            return None
        with open_marked_file(context, key.partition, name, IOType.MERGE) as sink:
            copier = new_copier(context, sink, name)
            reason = copier.add(source, replaced)
            if reason is not None:
                raise FormatError(f"base file {key.base_path!r} has changed while it was read: {reason}")
            check_end()
            return copier.close()

    def _encoded(self, batches: Iterable[pa.RecordBatch], repeating: Collection[str]) -> pa.Buffer:
        """Return a Parquet file with the changing columns of rows, in one row group."""
        sink = pa.BufferOutputStream()
        options = replace(self._context.files.parquet, block_size=maxsize)
        schema = BaseFileSchema(self._plain, dictionary_columns=repeating)
        with ParquetFileWriter(sink, schema, options=options) as writer:
            for batch in batches:
                writer.write(batch)
        return sink.getvalue()


def _check_end(key: GroupKey, merge: BaseRowMerge, rows: FileGroupRows) -> None:
    """Check that all incoming rows were updates of rows of the base file.

    Raises:
        FormatError: Some were not.
    """
    merge.check_end(rows)
    for batch in rows.inserts():
        if batch.num_rows:
            raise FormatError(f"{batch.num_rows} updates of base file {key.base_path!r} have no row there")


def _log_rewrite(key: GroupKey, reason: str) -> None:
    _log.info("%s is rewritten as a whole, because its columns cannot be copied: %s", key.base_path, reason)
