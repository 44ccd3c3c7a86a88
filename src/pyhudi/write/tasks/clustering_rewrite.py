"""Writing of stored rows into new file groups, in the tasks of a clustering."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa

from pyhudi.schema.evolution.schema_projection import conform
from pyhudi.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.write.handles.base_file_output import RowSource
from pyhudi.write.handles.create_handle import CreateHandle, task_file_ids
from pyhudi.write.rows.dictionary_encoding import as_dictionaries, dictionary_columns
from pyhudi.write.settings.write_context import TaskId, WriteContext

_COPIED = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY)
"""Meta columns of a row that are kept; the others are those of its file."""


def copied_columns(context: WriteContext) -> list[str]:
    """Return the required columns of rows to copy: some meta columns, if the table has any, and all data columns."""
    return [*_copied(context), *context.columns.schema.names]


def _copied(context: WriteContext) -> tuple[str, ...]:
    return _COPIED if context.columns.populate_meta_fields else ()


def write_copies(
    context: WriteContext, task: TaskId, partition: str, unit: int, batches: Iterable[pa.RecordBatch]
) -> list[WriteStat]:
    """Write rows of one partition, in order, to new file groups. Return the stats of the files.

    Rows keep commit time, sequence number and record key. ``unit`` distinguishes several calls of one task.
    """
    ids = task_file_ids(f"{context.instant}/{unit}", task, partition)
    return _write(context, task, partition, ((batch, {"": None}) for batch in batches), lambda _: ids)


def write_copies_to(
    context: WriteContext,
    task: TaskId,
    partition: str,
    routed: Iterable[tuple[pa.RecordBatch, Mapping[str, pa.Array]]],
) -> list[WriteStat]:
    """Write rows of one partition, in order, to new file groups with given ids, one file each. Return the stats of the
    files. ``routed`` are rows with masks of destinations: the row numbers (int64) for each file group."""
    return _write(context, task, partition, routed, lambda file_id: iter((file_id,)))


def _write(
    context: WriteContext,
    task: TaskId,
    partition: str,
    routed: Iterable[tuple[pa.RecordBatch, Mapping[str, pa.Array | None]]],
    ids: Callable[[str], Iterator[str]],
) -> list[WriteStat]:
    """Write rows to one or several destinations. ``routed``: rows, and the row numbers (None: all) for each
    destination; ``ids``: the file groups that are created for a destination."""
    schema = pa.schema([*(pa.field(name, pa.string()) for name in _copied(context)), *context.columns.schema])
    handles: dict[str, CreateHandle] = {}
    repeating: frozenset[str] | None = None
    try:
        for batch, parts in routed:
            rows = conform(batch.select(schema.names), schema)
            if repeating is None:  # The columns of a file are determined by its first rows.
                repeating = dictionary_columns(rows, context.columns.schema.names)
            for place, chosen in parts.items():
                if place not in handles:
                    source = RowSource(dictionary_columns=repeating, copied=True)
                    handles[place] = CreateHandle(context, task, partition, ids(place), source)
                handles[place].write(as_dictionaries(rows if chosen is None else rows.take(chosen), repeating))
        return [stat for handle in handles.values() for stat in handle.close()]
    except BaseException:
        for handle in handles.values():
            handle.abort()
        raise
