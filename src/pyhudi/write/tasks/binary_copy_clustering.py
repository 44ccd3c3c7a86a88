"""Binary copy of base files: concatenation without decoding, in the tasks of a clustering that does not reorder
rows."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack

from pyhudi.format.base_file import parquet
from pyhudi.format.base_file.base_file_writer import FileSummary
from pyhudi.format.base_file.row_group_copy.row_group_copier import CopiedFile, RowGroupCopier
from pyhudi.format.file_names import base_file_name
from pyhudi.metadata.writer.file_statistics import read_file_bounds
from pyhudi.storage import join_path
from pyhudi.table.partition_metadata import write_partition_metadata
from pyhudi.table.view.file_group_keys import FileGroupId
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.markers import IOType
from pyhudi.write.handles.base_file_copy import has_file_columns, new_copier
from pyhudi.write.handles.create_handle import task_file_ids
from pyhudi.write.handles.marked_file import open_marked_file
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.write_status import RowCounts, file_stat

_log = logging.getLogger(__name__)


def copy_base_files(
    context: WriteContext, task: TaskId, partition: str, group_number: int, paths: Sequence[str]
) -> WriteStat | None:
    """Write the row groups of Parquet base files of one partition, in order, to one new file. Return its stat.

    Returns None, and leaves no file, if they cannot be concatenated: a file has other columns than the current ones of
    the table, or another physical schema, or its bloom filter has another size than those of the others.
    ``group_number`` distinguishes several calls of one task.

    Raises:
        FormatError: A file is corrupt.
        NotFoundError: A file no longer exists.
        TransactionError: The write has ended; the new file has been deleted.
    """
    started = time.monotonic()
    renamed = any(context.columns.file_names(path) for path in paths)
    reason = "columns have been renamed since" if renamed else _differs(context, paths[0])
    if reason is not None:
        _refused(paths[0], reason)
        return None
    file_id = next(task_file_ids(f"{context.instant}/{group_number}/stitched", task, partition))
    name = base_file_name(file_id, task.token, context.instant, context.files.extension)
    path = join_path(partition, name)
    write_partition_metadata(context.storage, partition, context.instant, base_format=context.partition_metadata_format)
    with ExitStack() as stack:
        sink = stack.enter_context(open_marked_file(context, partition, name, IOType.CREATE))
        copied = _copy(context, new_copier(context, sink, name), paths)
        if copied is None:
            interruption = InterruptedError("the base file is discarded")
            stack.__exit__(type(interruption), interruption, None)
    if copied is None:
        return None
    bounds = (
        None if context.columns.indexed is None else read_file_bounds(context.storage, path, context.columns.indexed)
    )
    summary = FileSummary(copied.num_rows, copied.size, None, None, bounds)
    return file_stat(
        FileGroupId(partition, file_id), path, summary, RowCounts(inserts=copied.num_rows), started=started
    )


def _copy(context: WriteContext, copier: RowGroupCopier, paths: Sequence[str]) -> CopiedFile | None:
    for path in paths:
        with context.storage.open_input(path) as source:
            reason = copier.add(source)
        if reason is not None:
            _refused(path, reason)
            return None
    return copier.close()


def _differs(context: WriteContext, path: str) -> str | None:
    """Return the reason why a file does not have the current columns of the table; None if it has."""
    with context.storage.open_input(path) as source:
        schema_in_file = parquet.read_schema(parquet.open_file(source, pre_buffer=False))
    return None if has_file_columns(context, schema_in_file) else "the columns of the table have changed since"


def _refused(path: str, reason: str) -> None:
    _log.info("files are rewritten, because %s cannot be copied: %s", path, reason)
