"""Compaction of the metadata table, followed by cleaning and archival.

A commit whose delta commit makes a compaction due plans it under the lock of the table: some listings, and two small
files in the metadata table's timeline. The plan's instant is later than all completed ones, and earlier than all later
ones. Files are merged without the lock, while other writers continue. Their changes complete after that instant, so
they belong to the slice created by the compaction, and until its publication to the previous slice
(docs/format/metadata.md, section 6.3). Publication acquires the lock again.

In version 6 log files belong to slices by name, so the lock is kept, as in Apache Hudi 0.15.

A heartbeat signals that a compaction is running. A plan without one is removed
(`pyhudi.metadata.writer.rollback.instant_deletion.drop_unfinished`); a new attempt has a new instant.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pyhudi.errors import FileSizeError
from pyhudi.metadata.file_groups.delta_commit_writer import MetadataCommit, complete_delta_commit
from pyhudi.metadata.maintenance.compaction_attempts import delete_attempts
from pyhudi.metadata.maintenance.metadata_archival import archive_metadata_timeline
from pyhudi.metadata.maintenance.metadata_cleaning import clean_metadata_table
from pyhudi.metadata.maintenance.metadata_compaction_job import MetadataCompactionJob, run_job
from pyhudi.metadata.maintenance.metadata_compaction_schedule import (
    BROKEN,
    begin_compaction,
    disable_after_failure,
    next_compaction_instant,
    slices_to_merge,
)
from pyhudi.metadata.metadata_layout import FILES, HEARTBEATS
from pyhudi.metadata.reader.metadata_slices import metadata_block_view
from pyhudi.metadata.writer.initial_statistics import LOCAL, FileStatsReader
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.metadata.writer.rollback.instant_deletion import file_names_by_partition
from pyhudi.storage import Storage, join_path
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.heartbeat import heartbeat_path
from pyhudi.timeline.instant import Action
from pyhudi.timeline.operation_types import COMPACT

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MetadataServiceResult:
    """Result of a compaction of the metadata table.

    Attributes:
        instant: Its instant in the metadata table's timeline; empty if nothing was published.
        num_groups: File groups with a new base file.
        num_records: Records in them.
        bytes_read: Bytes of the files that were merged.
        bytes_written: Bytes of the new base files.
        millis: Milliseconds by phase: merge, publish.
        reason: Reason why nothing was published.
    """

    instant: str = ""
    num_groups: int = 0
    num_records: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    millis: tuple[tuple[str, int], ...] = ()
    reason: str = ""


def compact_now(table: LockedTable) -> MetadataServiceResult:
    """Merge all log files into base files, regardless of whether it is due. The caller holds the lock of the table
    throughout.

    Raises:
        FormatError, MetadataTableError: Files are corrupt or missing.
    """
    active = table.load_metadata_timeline()
    storage, config = table.storage, table.config
    slices = slices_to_merge(active, config)
    if not slices:
        return MetadataServiceResult(reason="there are no log files")
    instant = next_compaction_instant(table, active.timeline)
    if instant is None or active.timeline.pending().of_actions(Action.COMPACTION).last is not None:
        return MetadataServiceResult(reason="instants are pending")
    view = metadata_block_view(active.timeline, config.version)
    job = MetadataCompactionJob(storage, config.version, instant, view, slices)
    begin_compaction(active, job)
    try:
        stats, millis = merge_file_groups(job)
    except BaseException:
        discard_job(table, job)
        raise
    return complete_compaction(table, job, stats, millis)


def merge_file_groups(job: MetadataCompactionJob, stats_reader: FileStatsReader = LOCAL) -> tuple[list[WriteStat], int]:
    """Write the base files of a compaction, without a lock. Return their write stats, and milliseconds."""
    started = time.perf_counter()
    stats = run_job(job, stats_reader)
    return stats, round((time.perf_counter() - started) * 1000)


def complete_compaction(
    table: LockedTable,
    job: MetadataCompactionJob,
    stats: list[WriteStat],
    merge_millis: int,
) -> MetadataServiceResult:
    """Publish a compaction whose base files are written, then clean and archive. The caller holds the lock of the
    table.

    Partitions that were dropped or rebuilt in the meantime are not published, and nothing is if another process has
    removed the plan or executed it (as Apache Hudi does with pending plans); then the files are deleted.

    Raises:
        LockError: The lock was lost; nothing is published, because writes of others since then could be missing.
    """
    started = time.perf_counter()
    storage, config = table.storage, table.config
    active = table.load_metadata_timeline()
    compaction = active.timeline.find(job.instant, Action.COMPACTION) if FILES in config.metadata_partitions else None
    if compaction is None or compaction.is_completed:
        _delete(storage, stats)
        return MetadataServiceResult(reason="the plan was removed, or executed by another process")
    current = _unchanged(job, config)
    kept = [stat for stat in stats if stat["partitionPath"] in current]
    if not kept and stats:
        discard_job(table, job)
        return MetadataServiceResult(reason="the partitions were dropped or rebuilt in the meantime")
    _delete_others(storage, config, job, kept)
    table.reserved.lock.ensure_held()
    done = table.completed_at(job.version)
    complete_delta_commit(active, compaction, MetadataCommit(kept, COMPACT, compacted=True), job.version, done)
    delete_attempts(storage)
    try:
        clean_metadata_table(table, active)
        archive_metadata_timeline(table)
    except Exception as failure:  # After the next compaction.
        _log.warning("the metadata table of %s was not cleaned or archived: %s", storage.root, failure)
    return MetadataServiceResult(
        job.instant,
        len(kept),
        sum(stat["numWrites"] for stat in kept),
        job.num_bytes,
        sum(stat["fileSizeInBytes"] for stat in kept),
        (("merge", merge_millis), ("publish", round((time.perf_counter() - started) * 1000))),
    )


def rollback_failed_compaction(table: LockedTable, job: MetadataCompactionJob, failure: BaseException) -> None:
    """Undo a failed compaction. The caller holds the lock.

    A corrupt metadata table is disabled, and the next write rebuilds it; after other errors the next attempt waits for
    more delta commits.
    """
    discard_job(table, job)
    if isinstance(failure, BROKEN) and not isinstance(failure, FileSizeError):
        disable_after_failure(table.storage, table.config, failure)


def discard_job(table: LockedTable, job: MetadataCompactionJob) -> None:
    """Delete the files and the plan of a compaction, unless it was completed. The caller holds the lock of the
    table."""
    active = table.load_metadata_timeline()
    compaction = active.timeline.find(job.instant, Action.COMPACTION)
    if compaction is None and active.timeline.is_completed(job.instant):
        return
    _delete_others(table.storage, table.config, job, ())
    if compaction is not None:
        for state in active.states(compaction):
            active.delete(state)
    job.storage.delete(heartbeat_path(job.instant, HEARTBEATS))


def _unchanged(job: MetadataCompactionJob, config: TableConfig) -> set[str]:
    """Return the partitions that still have all merged files. Files of a rebuilt partition have other names; the
    rollback of a write deletes its files."""
    unchanged = set()
    for partition in set(job.partitions) & set(config.metadata_partitions):
        existing = set(job.storage.list(join_path(METADATA_FOLDER, partition))["path"].to_pylist())
        if all(file.path in existing for one in job.slices if one.partition == partition for file in one.files):
            unchanged.add(partition)
    return unchanged


def _delete_others(
    storage: Storage, config: TableConfig, job: MetadataCompactionJob, kept: Iterable[WriteStat]
) -> None:
    """Delete base files of the compaction that are not ``kept``: those of retried tasks, and unpublished ones. Log
    files of version 6 contain the instant of their slice, and are kept."""
    named = {stat["path"] for stat in kept}
    paths = [
        join_path(partition, name)
        for partition, names in file_names_by_partition(storage, config, job.instant).items()
        for name in names
        if name[0] != "."
    ]
    storage.delete_many(join_path(METADATA_FOLDER, path) for path in paths if path not in named)


def _delete(storage: Storage, stats: Collection[WriteStat]) -> None:
    storage.delete_many(join_path(METADATA_FOLDER, stat["path"]) for stat in stats)
