"""Rollback of a failed write's blocks in log files of a version 6 table.

Names of log files contain the instant of their slice, and if the storage supports append, several writes share one. So
the files are kept, and a command block, in a new log file, rolls back the blocks of the failed write.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format.file_names import LOG, file_name_of, file_names_of, next_log_version, parse_names
from pyhudi.format.log import LogBlockHeader, LogSchema, LogSlice, LogWriter
from pyhudi.storage import Storage, join_path
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import NEW_FILE_GROUP, decode_commit
from pyhudi.timeline.instant import Instant, State
from pyhudi.timeline.plans.rollback_plan import RollbackRequest

ROLLBACK_TOKEN = "1-0-1"
"""Write token of log files with command blocks, as in Apache Hudi."""
_UNKNOWN_SIZE = 1
"""Size of log files in plans from markers, which do not contain it; Apache Hudi writes this value."""


def append_requests(partitions: pa.Array, names: pa.Array) -> list[RollbackRequest]:
    """Return requests to roll back log blocks, one per file slice."""
    parsed = parse_names(names)
    slices: dict[tuple[str, str, str], dict[str, int]] = {}
    columns = (partitions, parsed["file_id"], parsed["instant"], names)
    for partition, file_id, instant, name in zip(*(column.to_pylist() for column in columns), strict=True):
        slices.setdefault((partition, file_id, instant), {})[name] = _UNKNOWN_SIZE
    return [RollbackRequest(p, file_id, instant, log_blocks=blocks) for (p, file_id, instant), blocks in slices.items()]


def planned_logs(active: ActiveTimeline, target: Instant) -> tuple[pa.Array, pa.Array]:
    """Return partitions and names of the log files to which a write may have appended, from its workload profile: the
    inflight file lists the file groups with updates. Used if its markers are lost."""
    partitions: list[str] = []
    names: list[str] = []
    try:
        stats = decode_commit(active.read_state(target, State.INFLIGHT)).stats
    except FormatError:  # Without a profile there were no updates.
        stats = None
    updates = [] if stats is None else stats.filter(pc.greater(stats["numUpdateWrites"], 0)).to_pylist()
    by_partition: dict[str, dict[str, str]] = {}
    for row in updates:
        # A slice without a base file has no base instant.
        earliest = by_partition.setdefault(row["partitionPath"], {})
        earliest[row["fileId"]] = row["prevCommit"].removeprefix(NEW_FILE_GROUP)
    for partition, earliest in sorted(by_partition.items()):
        log_names = parse_names(_names_in(active.storage, partition))
        logs = log_names.filter(pc.equal(log_names["kind"], LOG)).select(["name", "file_id", "instant"])
        for row in logs.to_pylist():
            # Including those of a slice that a compaction has opened since.
            if row["file_id"] in earliest and row["instant"] >= earliest[row["file_id"]]:
                partitions.append(partition)
                names.append(row["name"])
    return pa.array(partitions, pa.string()), pa.array(names, pa.string())


def write_rollback_blocks(
    storage: Storage, requests: Iterable[RollbackRequest], rollback: str, target: str
) -> dict[str, dict[str, int]]:
    """Write the command blocks of requests. Return the new files' paths with their sizes, by partition.

    Nothing is written for slices whose log files do not exist, because the write did not reach them.
    """
    wanted = [r for r in requests if r.log_blocks and r.file_id is not None and r.base_instant is not None]
    partitions = sorted({request.partition for request in wanted})
    names = dict(zip(partitions, concurrent_map(partial(_names_in, storage), partitions), strict=True))

    def write(request: RollbackRequest) -> dict[str, int]:
        where = _next_log(request, names[request.partition])
        return {} if where is None else _write_rollback_block(storage, request.partition, where, rollback, target)

    written: dict[str, dict[str, int]] = {}
    for request, files in zip(wanted, concurrent_map(write, wanted), strict=True):
        if files:
            written.setdefault(request.partition, {}).update(files)
    return written


def _next_log(request: RollbackRequest, names: pa.Array) -> LogSlice | None:
    """Return the next log file of the slice of a request; None if none of the log files that it names exists.

    ``names`` are those in the folder of its partition.
    """
    assert request.file_id is not None
    assert request.base_instant is not None
    named = pa.array([file_name_of(name) for name in request.log_blocks], pa.string())
    if not pc.any(pc.is_in(named, value_set=names)).as_py():
        return None
    slice_logs = names.filter(pc.starts_with(names, f".{request.file_id}_{request.base_instant}.log."))
    version = next_log_version(slice_logs, request.file_id, request.base_instant)
    return LogSlice(request.file_id, request.base_instant, ROLLBACK_TOKEN, version)


def _write_rollback_block(
    storage: Storage, partition: str, where: LogSlice, rollback: str, target: str
) -> dict[str, int]:
    def open_file(name: str) -> AbstractContextManager[BinaryIO]:
        return storage.open_output(join_path(partition, name))

    with LogWriter(open_file, where, LogBlockHeader(rollback, LogSchema("", pa.schema([]), 6))) as writer:
        writer.roll_back(target)
        return {join_path(partition, file.name): file.size for file in writer.close()}


def _names_in(storage: Storage, partition: str) -> pa.Array:
    return file_names_of(storage.list(partition)["path"])
