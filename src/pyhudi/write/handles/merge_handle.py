"""Writing of the next version of a base file, with updates and deletes applied and new records appended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.format.file_names import parse_names
from pyhudi.merge.base_file_merge import merge_base
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.merge.modes.record_versions import RecordVersions, fold_record_versions
from pyhudi.merge.ordering_values import Index
from pyhudi.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.schema.schema_evolution import conform
from pyhudi.storage import join_path
from pyhudi.timeline.markers import IOType
from pyhudi.write.handles.base_file_output import BaseFileOutput, RowLayout
from pyhudi.write.handles.change_log import ChangeLog
from pyhudi.write.rows.base_file_batches import BaseReader, open_base
from pyhudi.write.rows.incoming_rows import GroupKey, GroupRows, deleted
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.write_status import Stat, file_stat

_TEXTS = pa.dictionary(pa.int32(), pa.string())


class MergeHandle:
    """Merges the incoming rows of one file group with its base file, batch by batch.

    Rows are matched by position, not by key: the index has determined the base row of each update, so a key that occurs
    twice in the base file is updated twice. Unchanged rows keep their commit time and sequence number; all rows get the
    new file's name. If every row is deleted, the file is written without rows, as in Apache Hudi, so that the file
    group continues.

    Rewriting unchanged rows dominates the cost. So texts of few distinct values stay dictionary-encoded, and the bloom
    filter of the old file is continued.
    """

    def __init__(self, context: WriteContext, task: TaskId, layout: RowLayout) -> None:
        self._context = context
        self._task = task
        self._layout = layout
        # Columns that the writer fills in are not read.
        constant = {FILE_NAME, PARTITION_PATH}
        self._plain = self._schema = pa.schema([f for f in context.file_schema if f.name not in constant])
        # In a write that deletes by key, ordering values are irrelevant.
        by_key = context.hard_deletes and context.rules.merger is None
        self._rules = MergeRules() if by_key else context.rules.present(self._plain)
        self._stamp = (COMMIT_TIME, COMMIT_SEQNO) if context.populate_meta_fields else ()
        self._updates = self._deletes = self._inserts = 0
        self._log: ChangeLog | None = None

    def run(self, key: GroupKey, rows: GroupRows) -> Stat:
        """Merge one file group; ``rows`` is at its first row and is left after its last."""
        assert key.base_path is not None
        started = time.monotonic()
        self._updates = self._deletes = self._inserts = 0
        names = self._context.file_names(key.base_path)
        with open_base(self._context.storage, key.base_path, self._context.invalid_text, names) as base:
            repeating = self._kept_as_dictionaries(base)
            self._schema = pa.schema([f.with_type(_TEXTS) if f.name in repeating else f for f in self._plain])
            output = BaseFileOutput(
                self._context,
                self._task,
                key.partition,
                key.file_id,
                IOType.MERGE,
                earlier=base.footer() if self._context.bloom is not None else None,
                repeating=repeating,
            )
            self._log = self._open_log(key)
            try:
                for batch in self._merged(key, base.batches(self._schema, repeating), rows):
                    output.write(batch, old_keys=True)
                for batch in rows.inserts(key):
                    if self._context.new_apart and not self._inserts:
                        output.writer.flush()
                    output.write(self._new_rows(batch))
            except BaseException:
                output.abort()
                if self._log is not None:
                    self._log.abort()
                raise
        summary = output.close()
        change_files = self._finish_log(summary.num_rows)
        old_name = key.base_path.rpartition("/")[2]
        old_instant = parse_names(pa.array([old_name]))["instant"][0].as_py()
        return file_stat(
            key.partition,
            key.file_id,
            join_path(key.partition, output.name),
            summary,
            started=started,
            inserts=self._inserts,
            updates=self._updates,
            deletes=self._deletes,
            previous=(old_instant, old_name),
            change_files=change_files,
        )

    def _open_log(self, key: GroupKey) -> ChangeLog | None:
        context = self._context
        if context.changes is None:
            return None
        return ChangeLog(
            context.storage,
            context.changes,
            context.schema,
            partition=key.partition,
            file_id=key.file_id,
            instant=context.instant,
            token=self._task.token,
            attempt=context.attempt,
        )

    def _finish_log(self, num_rows: int) -> dict[str, int] | None:
        """Close the change log, unless readers can derive its content from the counts alone: all rows are new, or a
        delete left none."""
        if self._log is None:
            return None
        all_new = not self._updates and not self._deletes and num_rows == self._inserts
        all_deleted = self._context.hard_deletes and not num_rows and self._deletes
        if all_new or all_deleted:
            self._log.abort()
            return None
        return self._log.close()

    def _kept_as_dictionaries(self, base: BaseReader) -> frozenset[str]:
        """Return columns whose values the merge only moves."""
        if self._rules.partial is not None or self._rules.merger is not None:
            return frozenset()
        texts = {f.name for f in self._plain if f.type == pa.string()}
        compared = {path.split(".")[0] for path in self._rules.ordering_fields}
        return (base.repeating() & texts) - compared

    def _merged(self, key: GroupKey, batches: Iterator[pa.RecordBatch], rows: GroupRows) -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in batches:
            base = conform(batch, self._schema)
            updates = rows.updates_below(key, start + base.num_rows)
            if updates is not None and updates[1][0] < 0:
                raise FormatError(
                    f"a record of file group {key.file_id!r} has no position, but base file {key.base_path!r} is "
                    "merged by positions"
                )
            yield base if updates is None else self._apply(base, updates[0], updates[1] - start)
            start += base.num_rows
        beyond = rows.updates_below(key, np.iinfo(np.int64).max)
        if beyond is not None:
            raise FormatError(
                f"base file {key.base_path!r} has {start} rows, but row {int(beyond[1][0])} is to be updated"
            )

    def _apply(self, base: pa.RecordBatch, updates: pa.RecordBatch, positions: Index) -> pa.RecordBatch:
        changes = self._changes(updates)
        if (positions[1:] == positions[:-1]).any():
            positions, first, record = np.unique(positions, return_index=True, return_inverse=True)
            changes = fold_record_versions(changes, record, self._rules)
            updates = updates.take(pa.array(first))
        merged = merge_base(base, positions, changes, self._rules, stamp=self._stamp)
        self._updates += int(merged.changed.sum())
        self._deletes += int(merged.deleted.sum())
        if self._log is not None:
            self._log.add_merged(base, updates, positions, merged)
        return merged.rows

    def _changes(self, updates: pa.RecordBatch) -> RecordVersions:
        """Return incoming rows as versions of base rows; of deletes only the key is kept."""
        deletes = deleted(updates)
        hard = self._context.hard_deletes
        if not deletes.any():
            changes = RecordVersions.of(updates, deletes, self._rules, self._schema, hard_deletes=hard)
            return replace(changes, rows=self._with_commit_time(updates))
        changes = RecordVersions.of(updates, deletes, self._rules, self._schema, hard_deletes=hard)
        kept = self._with_commit_time(updates.filter(pa.array(~deletes)))
        spread = pa.array(np.cumsum(~deletes) - 1, mask=deletes)
        columns = [column.take(spread) for column in kept.columns]
        if self._context.populate_meta_fields:
            columns[self._schema.get_field_index(RECORD_KEY)] = updates.column(RECORD_KEY)
        return replace(changes, rows=pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def _new_rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        self._inserts += rows.num_rows
        new = self._with_commit_time(rows)
        if self._log is not None:
            self._log.add_inserts(new, rows.column(RECORD_KEY))
        return new

    def _with_commit_time(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return incoming rows with the schema of base rows."""
        laid = self._layout.lay_out(rows)
        columns = {name: laid.column(name) for name in laid.schema.names}
        if self._context.populate_meta_fields:
            columns[COMMIT_TIME] = pa.repeat(pa.scalar(self._context.instant, pa.string()), laid.num_rows)
        filled = [_encoded(columns[f.name], f) if f.name in columns else _nulls(laid, f) for f in self._schema]
        return pa.RecordBatch.from_arrays(filled, schema=self._schema)


def _encoded(column: pa.Array, field: pa.Field) -> pa.Array:
    return column.dictionary_encode() if pa.types.is_dictionary(field.type) else column


def _nulls(rows: pa.RecordBatch, field: pa.Field) -> pa.Array:
    return pa.nulls(rows.num_rows, field.type)
