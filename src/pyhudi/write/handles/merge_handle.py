"""Writing of the next version of a base file, with updates and deletes applied and new records appended."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa

from pyhudi.format.base_file.row_group_copy.copied_row_groups import CopiedRowGroups
from pyhudi.merge.base_file_readers import BaseFileReader, open_base
from pyhudi.schema.meta_fields import FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.markers import IOType
from pyhudi.write.handles.base_file_output import BaseFileOutput, RowLayout, RowSource
from pyhudi.write.handles.base_row_merge import BaseRowMerge, rules_for_rows
from pyhudi.write.handles.cdc_log_writer import CdcLogWriter
from pyhudi.write.rows.dictionary_encoding import kept_as_dictionaries, with_dictionaries
from pyhudi.write.rows.incoming_rows import FileGroupRows, GroupKey
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.write_status import RowCounts, file_stat, previous_file, with_cdc_files

_COPIED_SHARE = 8
"""Row groups are copied from this share of the size of new ones on; smaller ones are merged with their neighbours."""


class MergeHandle:
    """Merges the incoming rows of one file group with its base file, batch by batch (`BaseRowMerge`).

    All rows get the new file's name. If every row is deleted, the file is written without rows, as in Apache Hudi, so
    that the file group continues.

    Rewriting unchanged rows dominates the cost. So row groups without changes are copied as bytes, texts of few
    distinct values stay dictionary-encoded, and the bloom filter of the old file is continued.
    """

    def __init__(self, context: WriteContext, task: TaskId, layout: RowLayout) -> None:
        self._context = context
        self._task = task
        self._layout = layout
        # Columns that the writer fills in are not read.
        constant = {FILE_NAME, PARTITION_PATH}
        self._plain = pa.schema([f for f in context.columns.file_schema if f.name not in constant])
        self._rules = rules_for_rows(context, self._plain)

    def run(self, key: GroupKey, rows: FileGroupRows) -> WriteStat:
        """Merge one file group. Return the stat of its new base file."""
        assert key.base_path is not None
        started = time.monotonic()
        inserts = 0
        names = self._context.columns.file_names(key.base_path)
        with open_base(self._context.storage, key.base_path, self._context.invalid_text, names) as base:
            repeating = kept_as_dictionaries(base, self._plain, self._rules)
            columns = with_dictionaries(self._plain, repeating)
            source = RowSource(base.footer() if self._context.files.bloom is not None else None, repeating)
            output = BaseFileOutput(self._context, self._task, key.group, IOType.MERGE, source)
            log = self._open_log(key)
            merge = BaseRowMerge(self._context, self._layout, key, columns, log)
            try:
                for groups in self._row_groups_to_merge(rows, base, output, merge):
                    for batch in base.batches(columns, repeating, groups):
                        output.write(merge.merged(batch, rows), old_keys=True)
                merge.check_end(rows)
                for batch in rows.inserts():
                    if self._context.files.separates_inserts and not inserts:
                        output.writer.flush()
                    inserts += batch.num_rows
                    new = merge.with_commit_time(batch)
                    if log is not None:
                        log.add_inserts(new, batch.column(RECORD_KEY))
                    output.write(new)
            except BaseException:
                output.abort()
                if log is not None:
                    log.abort()
                raise
        summary = output.close()
        cdc_files = self._finish_log(log, merge, inserts, summary.num_rows)
        stat = file_stat(
            key.group,
            output.path,
            summary,
            RowCounts(inserts, merge.updates, merge.deletes),
            started=started,
            previous=previous_file(key.base_path),
        )
        return with_cdc_files(stat, cdc_files)

    def _row_groups_to_merge(
        self, rows: FileGroupRows, base: BaseFileReader, output: BaseFileOutput, merge: BaseRowMerge
    ) -> Iterator[list[int] | None]:
        """Yield the row groups of the base file that have to be merged, in order (None: all). The others are copied to
        the output: those without changes, unless they are small, so that rewriting a file again and again does not make
        it one of many small row groups."""
        groups, min_size = base.row_groups(), self._context.files.parquet.block_size // _COPIED_SHARE
        copied: CopiedRowGroups | None = None
        end = 0
        for group in groups:
            end += group.num_rows
            if group.size < min_size or rows.has_updates_below(end):
                yield [group.number]
                continue
            copied = copied or output.copyable(base)
            if copied is None:
                yield [other.number for other in groups[group.number :]]
                return
            output.copy_row_group(copied, base, group.number)
            merge.skip(group.num_rows)
        if not groups:
            yield None

    def _open_log(self, key: GroupKey) -> CdcLogWriter | None:
        context = self._context
        if context.cdc is None:
            return None
        return CdcLogWriter(context, context.cdc, self._task, key.group)

    def _finish_log(
        self, log: CdcLogWriter | None, merge: BaseRowMerge, inserts: int, num_rows: int
    ) -> dict[str, int] | None:
        """Close the CDC log, unless readers can derive its content from the counts alone: all rows are new, or a
        delete left none."""
        if log is None:
            return None
        all_new = not merge.updates and not merge.deletes and num_rows == inserts
        all_deleted = self._context.merging.hard_deletes and not num_rows and merge.deletes
        if all_new or all_deleted:
            log.abort()
            return None
        return log.close()
