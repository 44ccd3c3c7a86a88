"""Scheduling of compactions of the metadata table."""

from __future__ import annotations

import logging

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.errors import FormatError, MetadataTableError, NotFoundError
from pyhudi.metadata.delete_metadata_table import delete_metadata_table
from pyhudi.metadata.file_groups.delta_commit_writer import begin_delta_commit
from pyhudi.metadata.file_groups.hfile_sources import MetadataSlice
from pyhudi.metadata.maintenance.compaction_attempts import load_attempts
from pyhudi.metadata.maintenance.metadata_compaction_job import MetadataCompactionJob
from pyhudi.metadata.metadata_layout import FILES, HEARTBEATS
from pyhudi.metadata.reader.metadata_slices import current_slices, metadata_block_view
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.view.compaction_operations import operations_of
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.delta_commits import delta_commits_since_compaction
from pyhudi.timeline.heartbeat import Heartbeat, HeartbeatPolicy
from pyhudi.timeline.instant import Action
from pyhudi.timeline.plans.compaction_plan import CompactionPlan
from pyhudi.timeline.timeline import Timeline

COMPACTION_SUFFIX = "001"
"""Suffix of compaction instants in metadata tables of version 6."""
BROKEN = (FormatError, MetadataTableError, NotFoundError)
"""Errors of a metadata table that must be rebuilt."""

_log = logging.getLogger(__name__)


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
    instant = next_compaction_instant(table, active.timeline)
    if instant is None:
        return None
    try:
        slices = slices_to_merge(active, config)
    except BROKEN as failure:
        disable_after_failure(storage, config, failure)
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
    begin_compaction(active, job)
    return job


def next_compaction_instant(table: LockedTable, timeline: Timeline) -> str | None:
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


def slices_to_merge(active: ActiveTimeline, config: TableConfig) -> tuple[MetadataSlice, ...]:
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


def begin_compaction(active: ActiveTimeline, job: MetadataCompactionJob) -> None:
    """Add a compaction to the metadata table's timeline, and begin it. The caller holds the lock of the table."""
    begin_delta_commit(active, job.instant, Action.COMPACTION, _plan(job).encode(job.version))


def heartbeat_of(job: MetadataCompactionJob, opts: Options) -> Heartbeat:
    """Return the heartbeat of a compaction."""
    return Heartbeat(job.storage, job.instant, HeartbeatPolicy.from_options(opts), HEARTBEATS)


def disable_after_failure(storage: Storage, config: TableConfig, failure: BaseException) -> None:
    """Disable a corrupt metadata table; the next write rebuilds it."""
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
