"""Writes copies of stored rows into new file groups: what a clustering's tasks do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from pyhudi.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY
from pyhudi.schema.schema_evolution import conform
from pyhudi.write.handles.create_handle import CreateHandle, task_file_ids
from pyhudi.write.rows.dictionary_encoding import as_dictionaries, dictionary_columns
from pyhudi.write.write_context import TaskId, WriteContext
from pyhudi.write.write_status import Stat

_COPIED = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY)
"""Meta columns of a row that stay what they are; the others are those of its file."""


def copied_columns(context: WriteContext) -> list[str]:
    """The columns that rows to be copied must have: some meta columns, and all of the table's own."""
    return [*_COPIED, *context.schema.names]


def write_copies(
    context: WriteContext, task: TaskId, partition: str, unit: int, batches: Iterable[pa.RecordBatch]
) -> list[Stat]:
    """Write rows of one partition, in their order, into new file groups; return the stats of the files.

    Rows keep commit time, sequence number and record key. ``unit`` tells apart what one task writes in several calls.
    """
    schema = _schema(context)
    ids = task_file_ids(f"{context.instant}/{unit}", task, partition)
    handle: CreateHandle | None = None
    repeating: frozenset[str] = frozenset()
    try:
        for batch in batches:
            rows = conform(batch.select(schema.names), schema)
            if handle is None:
                repeating = dictionary_columns(rows, context.schema.names)
                handle = CreateHandle(context, task, partition, ids, repeating=repeating, copied=True)
            handle.write(as_dictionaries(rows, repeating))
        return [] if handle is None else handle.close()
    except BaseException:
        if handle is not None:
            handle.abort()
        raise


def write_copies_to(
    context: WriteContext,
    task: TaskId,
    partition: str,
    routed: Iterable[tuple[pa.RecordBatch, Mapping[str, pa.Array]]],
) -> list[Stat]:
    """Write rows of one partition, in their order, into new file groups of given ids, a file each; return the stats of
    the files. ``routed`` has rows, and which of them (int64) go to each file group."""
    schema = _schema(context)
    handles: dict[str, CreateHandle] = {}
    repeating: frozenset[str] = frozenset()
    try:
        for batch, parts in routed:
            rows = conform(batch.select(schema.names), schema)
            repeating = repeating or dictionary_columns(rows, context.schema.names)
            for file_id, chosen in parts.items():
                if file_id not in handles:
                    ids = iter((file_id,))
                    handles[file_id] = CreateHandle(context, task, partition, ids, repeating=repeating, copied=True)
                handles[file_id].write(as_dictionaries(rows.take(chosen), repeating))
        return [stat for handle in handles.values() for stat in handle.close()]
    except BaseException:
        for handle in handles.values():
            handle.abort()
        raise


def _schema(context: WriteContext) -> pa.Schema:
    return pa.schema([*(pa.field(name, pa.string()) for name in _COPIED), *context.schema])
