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

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.errors import FileSizeError, FormatError, MetadataTableError, NotFoundError
from pyhudi.metadata.delete_metadata_table import delete_metadata_table
from pyhudi.metadata.file_groups.delta_commit_writer import MetadataCommit, begin_delta_commit, complete_delta_commit
from pyhudi.metadata.file_groups.hfile_sources import MetadataSlice
from pyhudi.metadata.maintenance.compaction_attempts import delete_attempts, load_attempts
from pyhudi.metadata.maintenance.metadata_archival import archive_metadata_timeline
from pyhudi.metadata.maintenance.metadata_cleaning import clean_metadata_table
from pyhudi.metadata.maintenance.metadata_compaction_job import MetadataCompactionJob, run_job
from pyhudi.metadata.metadata_layout import FILES, HEARTBEATS
from pyhudi.metadata.reader.metadata_slices import current_slices, metadata_block_view
from pyhudi.metadata.writer.initial_statistics import LOCAL, FileStatsReader
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.metadata.writer.rollback.instant_deletion import file_names_by_partition
from pyhudi.storage import Storage, join_path
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.view.compaction_operations import operations_of
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.delta_commits import delta_commits_since_compaction
from pyhudi.timeline.heartbeat import Heartbeat, HeartbeatPolicy, heartbeat_path
from pyhudi.timeline.instant import Action
from pyhudi.timeline.operation_types import COMPACT
from pyhudi.timeline.plans.compaction_plan import CompactionPlan
from pyhudi.timeline.timeline import Timeline

COMPACTION_SUFFIX = "001"
"""Suffix of compaction instants in metadata tables of version 6."""
_BROKEN = (FormatError, MetadataTableError, NotFoundError)
"""Errors of a metadata table that must be rebuilt."""

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


def schedule_compaction(table: LockedTable) -> MetadataCompactionJob | None:
    """Add a compaction to the metadata table's timeline if one is due; otherwise return None. The caller holds the lock
    of the table.

    The number of delta commits that make one due grows with each failed attempt
    (`pyhudi.metadata.maintenance.compaction_attempts`). A corrupt metadata table is disabled; the next write rebuilds
    it.
    """
    storage, config = table.storage, table.config
    if FILES not in config.metadata_partitions:
        return None
    active = table.load_metadata_timeline()
    due = table.opts.get_typed(options.METADATA_COMPACT_MAX_DELTA_COMMITS)
    since = delta_commits_since_compaction(active.timeline)
    deltas = 0 if since is None else since.count
    if deltas < due or active.timeline.pending().of_actions(Action.COMPACTION).last is not None:
        return None
    last = active.timeline.completed().of_actions(Action.COMMIT).last
    attempts = load_attempts(storage, "" if last is None else last.requested)
    if deltas < attempts.next_at(due):
        return None
    instant = _next_instant(table, active.timeline)
    if instant is None:
        return None
    try:
        slices = _slices(active, config)
    except _BROKEN as failure:
        _disable_after_failure(storage, config, failure)
        return None
    # Delta commits that others have completed since are in none of the slices.
    table.reserved.lock.ensure_held()
    attempts.begin(deltas).save(storage)
    job = MetadataCompactionJob(
        storage, config.version, instant, metadata_block_view(active.timeline, config.version), slices
    )
    if config.version >= 8:  # Before, the lock of the table is held until the compaction is completed.
        storage.delete_tree(HEARTBEATS)  # No plan is pending: those of killed processes whose plans others executed.
        heartbeat_of(job, table.opts).refresh()  # The thread starts with the work.
    _begin(active, job)
    return job


def compact_now(table: LockedTable) -> MetadataServiceResult:
    """Merge all log files into base files, regardless of whether it is due. The caller holds the lock of the table
    throughout.

    Raises:
        FormatError, MetadataTableError: Files are corrupt or missing.
    """
    active = table.load_metadata_timeline()
    storage, config = table.storage, table.config
    slices = _slices(active, config)
    if not slices:
        return MetadataServiceResult(reason="there are no log files")
    instant = _next_instant(table, active.timeline)
    if instant is None or active.timeline.pending().of_actions(Action.COMPACTION).last is not None:
        return MetadataServiceResult(reason="instants are pending")
    view = metadata_block_view(active.timeline, config.version)
    job = MetadataCompactionJob(storage, config.version, instant, view, slices)
    _begin(active, job)
    try:
        stats, millis = merge_file_groups(job)
    except BaseException:
        discard_job(table, job)
        raise
    return complete_compaction(table, job, stats, millis)


def _begin(active: ActiveTimeline, job: MetadataCompactionJob) -> None:
    begin_delta_commit(active, job.instant, Action.COMPACTION, _plan(job).encode(job.version))


def heartbeat_of(job: MetadataCompactionJob, opts: Options) -> Heartbeat:
    """Return the heartbeat of a compaction."""
    return Heartbeat(job.storage, job.instant, HeartbeatPolicy.from_options(opts), HEARTBEATS)


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
    if isinstance(failure, _BROKEN) and not isinstance(failure, FileSizeError):
        _disable_after_failure(table.storage, table.config, failure)


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


def _next_instant(table: LockedTable, timeline: Timeline) -> str | None:
    """Return the instant of a new compaction; None if there cannot be one now.

    In version 6, pending instants of the table may still write to the slices, so there must not be any. From version 8
    on a log file belongs to a slice by its completion time; only a delta commit that is completed before its instant in
    the table would be missed.
    """
    pending, version = table.active.timeline.pending(), table.config.version
    if version < 8 and pending:
        return None
    if any(timeline.is_completed(i.requested) for i in pending):
        return None
    if version >= 8:
        return table.new_time()
    last = timeline.completed().of_actions(Action.DELTA_COMMIT).last
    assert last is not None
    instant = f"{last.requested[:17]}{COMPACTION_SUFFIX}"
    return None if instant in timeline else instant


def _slices(active: ActiveTimeline, config: TableConfig) -> tuple[MetadataSlice, ...]:
    """Return the slices with log files, the largest first.

    Delta commits that the table still waits for are not completed here, so all completed ones are included. Partitions
    under construction have no base files yet.
    """
    slices = [
        one
        for partition in sorted(config.metadata_partitions)
        for one in MetadataSlice.from_rows(
            partition, current_slices(active, active.timeline, partition, config.version)
        )
        if one.logs
    ]
    return tuple(sorted(slices, key=lambda one: -one.num_bytes))


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


def _disable_after_failure(storage: Storage, config: TableConfig, failure: BaseException) -> None:
    _log.warning("the metadata table of %s is corrupt and will be disabled: %s", storage.root, failure)
    delete_metadata_table(storage, config)


def _plan(job: MetadataCompactionJob) -> CompactionPlan:
    """Return the plan, with partitions relative to the metadata table."""
    rows = [
        {
            "partition": one.partition,
            "file_id": one.file_id,
            "base_instant": one.base_instant,
            "base_path": None if one.base is None else one.base.path,
            "base_size": None if one.base is None else one.base.size,
            "log_paths": [file.path for file in one.logs],
            "log_sizes": [file.size for file in one.logs],
        }
        for one in job.slices
    ]
    slices = pa.Table.from_pylist(rows, schema=SLICE_SCHEMA)
    return CompactionPlan(operations_of(slices, SLICE_SCHEMA.empty_table(), max_file_size=0))
