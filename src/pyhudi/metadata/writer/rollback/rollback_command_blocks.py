"""Rollback of changes of the metadata table before version 8: command blocks make the blocks of a write invalid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from pyhudi.format.log.block_framing import rollback_frame
from pyhudi.metadata.file_groups.delta_commit_writer import (
    GroupFiles,
    MetadataCommit,
    begin_delta_commit,
    complete_delta_commit,
    new_token,
)
from pyhudi.metadata.file_groups.log_file_groups import group_slices, write_logs
from pyhudi.metadata.metadata_layout import FILE_PARTITIONS, FILES
from pyhudi.metadata.records.record_factory import file_records
from pyhudi.metadata.writer.rollback.table_rollback import TableRollback, metadata_uri
from pyhudi.storage import join_path
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.plans.rollback_plan import RollbackMetadata, RollbackPlan, RollbackRequest, RolledBackPartition

ROLLBACK_SUFFIX = "006"
"""Suffix of rollback instants in metadata tables of version 6."""


def append_rollback_blocks(active: ActiveTimeline, config: TableConfig, rollback: TableRollback) -> None:
    """Roll back in version 6: command blocks, then a delta commit of the rollback itself.

    The delta commit of the write is pending before its rollback is planned, and gone before that is completed. 0.15.0
    goes on with such a rollback. Of a completed delta commit, it fails when it has done so, and only its next write
    succeeds; beside a completed rollback, it plans another one under the same instant, and fails each time.
    """
    rolled_back = active.timeline.find(rollback.target, Action.DELTA_COMMIT)
    if rolled_back is not None and rolled_back.is_completed:
        active.delete(rolled_back)
    rollback_instant = f"{rollback.instant}{ROLLBACK_SUFFIX}"
    metadata_rollback = active.timeline.find(rollback_instant, Action.ROLLBACK)
    partitions = config.metadata_partitions_kept
    if rolled_back is None and metadata_rollback is None:
        # Tasks write log files of indexes before the delta commit begins.
        partitions = tuple(p for p in partitions if rollback.retried and p not in FILE_PARTITIONS)
    written: tuple[Instant, bytes] | None = None
    if partitions and (metadata_rollback is None or not metadata_rollback.is_completed):
        written = _write_command_blocks(
            active, config, target=rollback.target, rollback=rollback_instant, partitions=partitions
        )
    if rolled_back is not None:
        for state in active.states(rolled_back):
            active.delete(state)
    if written is not None:
        active.complete(*written)
    done = active.timeline.find(rollback.instant, Action.DELTA_COMMIT)
    if done is not None and done.is_completed:
        return
    delta_commit = begin_delta_commit(active, rollback.instant)
    stats = _record_log_files(active, config, rollback)
    complete_delta_commit(active, delta_commit, MetadataCommit(stats), config.version, None)


def _record_log_files(active: ActiveTimeline, config: TableConfig, rollback: TableRollback) -> list[WriteStat]:
    """Add the log files of a rollback to the list of files."""
    rows = [
        {"partition": partition, "name": name, "size": size}
        for partition, names in rollback.log_files.items()
        for name, size in names.items()
    ]
    if not rows:
        return []
    schema = pa.schema([("partition", pa.string()), ("name", pa.string()), ("size", pa.int64())])
    records = file_records(pa.Table.from_pylist(rows, schema=schema), rollback.log_files, config.version)
    return write_logs(GroupFiles(active.storage, FILES, rollback.instant, config.version), active.timeline, records)


def _write_command_blocks(
    active: ActiveTimeline, config: TableConfig, *, target: str, rollback: str, partitions: Iterable[str]
) -> tuple[Instant, bytes]:
    """Write a block to each file group; return the rollback, which is inflight, and its metadata."""
    storage = active.storage
    groups = [
        # A task that outlives its attempt may still write a file of the next version; the command block follows it.
        (partition, replace(group, log_version=group.log_version + 1))
        for partition in sorted(partitions)
        for group in group_slices(storage, active.timeline, partition, config.version)
    ]
    plan = RollbackPlan(
        target,
        Action.DELTA_COMMIT,
        tuple(RollbackRequest(partition, group.file_id, group.base_instant) for partition, group in groups),
    )
    inflight = begin_delta_commit(active, rollback, Action.ROLLBACK, plan.encode())
    written: dict[str, dict[str, int]] = {}
    for partition, group in groups:
        block = rollback_frame(rollback, target)
        name = group.log_name(rollback, new_token(), config.version)
        data = b"".join(bytes(part) for part in block.parts)
        storage.write(join_path(METADATA_FOLDER, partition, name), data)
        written.setdefault(partition, {})[metadata_uri(storage, partition, name)] = len(data)
    partitions = {p: RolledBackPartition(command_files=files) for p, files in written.items()}
    done = RollbackMetadata(rollback, 0, target, Action.DELTA_COMMIT, partitions)
    return inflight, done.encode()
