"""What one Spark task does: take Arrow batches, write files, return their stats. No Spark in here."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from pyhudi.write.append import AppendHandle
from pyhudi.write.bulk import BulkWriter
from pyhudi.write.context import TaskId, WriteContext
from pyhudi.write.create import CreateHandle, file_ids
from pyhudi.write.held import HeldRows
from pyhudi.write.incoming import GroupedRows, GroupKey, GroupRows
from pyhudi.write.keyed import KeyedRows, base_keys, hold
from pyhudi.write.merge import MergeHandle
from pyhudi.write.output import RowLayout
from pyhudi.write.status import Stat, encode_stats


def bulk_insert_task(
    batches: Iterable[pa.RecordBatch], context: WriteContext, task: TaskId, *, sorted_input: bool = False
) -> bytes:
    """Write rows as they come into new file groups of their partitions."""
    stats = BulkWriter(context, task, sorted_input=sorted_input).run(batches)
    return encode_stats(stats)


def upsert_task(batches: Iterable[pa.RecordBatch], context: WriteContext, task: TaskId) -> bytes:
    """Write rows that are sorted by file group and row position: to log files, merged with base files, or to new file
    groups."""
    rows = GroupedRows(batches)
    layout = RowLayout(context, task)
    merge = MergeHandle(context, task, layout)
    append = None if context.logs is None else AppendHandle(context, task, layout, context.logs)
    stats: list[Stat] = []

    def write(key: GroupKey, rows: GroupRows) -> None:
        if append is not None and append.takes(key):
            stats.extend(append.run(key, rows))
        elif key.base_path is None:
            stats.extend(_create(context, task, layout, key, rows))
        else:
            stats.append(merge.run(key, rows))

    for key in rows.groups():
        how = context.keyed
        # log files need no places
        merged = key.base_path is not None and (append is None or not append.takes(key))
        if how is None or (how.dedupe is None and not merged):
            write(key, rows)
            continue
        with HeldRows(context.buffer_size) as held:
            hold(rows, key, how, held)
            searched = key.base_path if merged and how.match else None
            write(key, KeyedRows(held, None if searched is None else base_keys(context.storage, searched)))
    return encode_stats(stats)


def _create(context: WriteContext, task: TaskId, layout: RowLayout, key: GroupKey, rows: GroupRows) -> list[Stat]:
    handle = CreateHandle(context, task, key.partition, file_ids(key.file_id))
    try:
        for batch in rows.inserts(key):
            handle.write(layout.lay_out(batch))
        return handle.close()
    except BaseException:
        handle.abort()
        raise
