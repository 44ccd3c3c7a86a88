"""Write statuses: descriptions of written files, as rows of commit metadata, and their encoding in task results."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.base_file.base_file_writer import FileSummary
from pyhudi.format.file_names import file_name_of, parse_names
from pyhudi.format.log import LogFile
from pyhudi.metadata.writer.file_statistics import BOUNDS
from pyhudi.storage import join_path
from pyhudi.table.view.file_group_keys import FileGroupId
from pyhudi.timeline.commit_metadata import NEW_FILE_GROUP, WRITE_STAT_SCHEMA, WriteStat, write_stats

_ORDER = ["partitionPath", "path"]


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Numbers of records that a new version of a base file adds, updates and deletes."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0


@dataclass(frozen=True, slots=True)
class DeltaSlice:
    """Description of a file slice in the stat of one of its log files.

    Attributes:
        instant: Instant in the names of the slice's log files.
        base_file: Name of the base file in tables of version 6; empty from version 8 on.
        log_files: Names of all log files of the slice in tables of version 6; of the new one from version 8 on.
    """

    instant: str
    base_file: str
    log_files: Sequence[str]


def file_stat(
    group: FileGroupId,
    path: str,
    summary: FileSummary,
    counts: RowCounts,
    *,
    started: float,
    previous: tuple[str, str] | None = None,
) -> WriteStat:
    """Return the stat of a finished base file. ``started`` is ``time.monotonic()`` at its start, ``previous`` the
    instant and name of the base file that it replaces."""
    millis = int((time.monotonic() - started) * 1000)
    merged = previous is not None
    return {
        "fileId": group.file_id,
        "path": path,
        "partitionPath": group.partition,
        "prevCommit": NEW_FILE_GROUP if previous is None else previous[0],
        "prevBaseFile": None if previous is None else previous[1],
        "numWrites": summary.num_rows,
        "numInserts": counts.inserts,
        "numUpdateWrites": counts.updates,
        "numDeletes": counts.deletes,
        "totalWriteBytes": summary.size,
        "fileSizeInBytes": summary.size,
        "runtimeStats": {
            "totalScanTime": 0,
            "totalUpsertTime": millis if merged else 0,
            "totalCreateTime": 0 if merged else millis,
        },
        BOUNDS: summary.bounds,
    }


def previous_file(base_path: str) -> tuple[str, str]:
    """Return instant and name of a base file that is replaced."""
    name = file_name_of(base_path)
    return parse_names(pa.array([name]))["instant"][0].as_py(), name


def with_cdc_files(stat: WriteStat, files: Mapping[str, int] | None) -> WriteStat:
    """Return the stat of a base file with the files of its CDC log and their sizes; None: it has no CDC log."""
    return stat if files is None else stat | {"cdcStats": files}


def log_stat(
    group: FileGroupId,
    file: LogFile,
    file_slice: DeltaSlice,
    *,
    started: float,
    bounds: pa.StructArray | None,
) -> WriteStat:
    """Return the stat of a finished log file. ``started`` is ``time.monotonic()`` at its start."""
    return {
        "fileId": group.file_id,
        "path": join_path(group.partition, file.name),
        "partitionPath": group.partition,
        "prevCommit": file_slice.instant,
        "numWrites": file.num_records,
        "numUpdateWrites": file.num_records,
        "numDeletes": file.num_deletes,
        "totalWriteBytes": file.size,
        "fileSizeInBytes": file.size,
        "logVersion": file.version,
        "logOffset": 0,
        "baseFile": file_slice.base_file,
        "logFiles": list(file_slice.log_files),
        "runtimeStats": {
            "totalScanTime": 0,
            "totalUpsertTime": int((time.monotonic() - started) * 1000),
            "totalCreateTime": 0,
        },
        BOUNDS: bounds,
    }


def encode_stats(stats: Sequence[WriteStat]) -> bytes:
    """Encode stats for the transfer from a task to the driver."""
    table = write_stats(stats)
    first_bounds = next((stat[BOUNDS] for stat in stats if stat.get(BOUNDS) is not None), None)
    if first_bounds is not None:
        recorded = (stat.get(BOUNDS) for stat in stats)
        bounds = pa.concat_arrays([pa.nulls(1, first_bounds.type) if one is None else one for one in recorded])
        table = table.append_column(BOUNDS, bounds)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def decode_stats(parts: Iterable[bytes]) -> pa.Table:
    """Combine the results of the tasks of a write, sorted by partition and path so that retries yield the same
    metadata.

    The table has WRITE_STAT_SCHEMA, and the column BOUNDS if the write collects them.
    """
    tables = []
    for part in parts:
        with pa.ipc.open_stream(part) as stream:
            tables.append(stream.read_all())
    if not tables:
        return WRITE_STAT_SCHEMA.empty_table()
    # Tasks without files lack the additional columns.
    joined = pa.concat_tables(tables, promote_options="default")
    order = pc.sort_indices(joined.select(_ORDER), sort_keys=[(name, "ascending") for name in _ORDER])
    return joined.take(order)
