"""What one Spark task does: take Arrow batches, write files, return their stats. No Spark in here."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from pyhudi.write.append import AppendHandle
from pyhudi.write.bulk import BulkWriter
from pyhudi.write.context import TaskId, WriteContext
from pyhudi.write.create import CreateHandle, file_ids
from pyhudi.write.incoming import GroupedRows, GroupKey
from pyhudi.write.merge import MergeHandle
from pyhudi.write.output import RowLayout
from pyhudi.write.status import Stat, encode_stats


def bulk_insert_task(
    batches: Iterable[pa.RecordBatch], context: WriteContext, task: TaskId, *, sorted_input: bool = False
) -> bytes:
    """Write rows as they come into new file groups of their partitions."""
    return encode_stats(BulkWriter(context, task, sorted_input=sorted_input).run(batches))


def upsert_task(batches: Iterable[pa.RecordBatch], context: WriteContext, task: TaskId) -> bytes:
    """Write rows that are sorted by file group and row position: to log files, merged with base files, or to new file
    groups."""
    rows = GroupedRows(batches)
    layout = RowLayout(context, task)
    merge = MergeHandle(context, task, layout)
    append = None if context.logs is None else AppendHandle(context, task, layout, context.logs)
    stats: list[Stat] = []
    for key in rows.groups():
        if append is not None and append.takes(key):
            stats += append.run(key, rows)
        elif key.base_path is None:
            stats += _create(context, task, layout, key, rows)
        else:
            stats.append(merge.run(key, rows))
    return encode_stats(stats)


def _create(context: WriteContext, task: TaskId, layout: RowLayout, key: GroupKey, rows: GroupedRows) -> list[Stat]:
    handle = CreateHandle(context, task, key.partition, file_ids(key.file_id))
    try:
        for batch in rows.inserts(key):
            handle.write(layout.lay_out(batch))
        return handle.close()
    except BaseException:
        handle.abort()
        raise
