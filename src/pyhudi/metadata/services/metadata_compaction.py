"""Compaction of the metadata table, and the services that follow it: cleaning, archival.

A commit whose delta commit makes a compaction due plans it while it holds the table's lock: some listings, and two
small files on the metadata table's timeline. The plan's instant is later than all that is completed by then, and
earlier than all that comes. The files are merged without the lock, while others write; what they add is completed
after that instant, so it belongs to the slice that the compaction makes, and until that is published to the slice
before (docs/format/metadata.md, section 6.3). Publication takes the lock again.

Version 6 binds log files to slices by their names, so there the lock is kept, as Apache Hudi 0.15 keeps it.

A heartbeat shows others that somebody is at work. Whoever finds a plan without one drops it
(`pyhudi.metadata.writer.metadata_rollback.drop_unfinished`); a new attempt has a new instant.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyhudi.config import options
from pyhudi.errors import FileSizeError, FormatError, MetadataTableError, NotFoundError
from pyhudi.metadata.disable_metadata import METADATA_FOLDER, detach_metadata_table
from pyhudi.metadata.file_groups.delta_files import Stat, begin, publish
from pyhudi.metadata.metadata_layout import FILES, HEARTBEATS
from pyhudi.metadata.reader.metadata_slices import block_view, current_slices
from pyhudi.metadata.services.compaction_attempts import forget_attempts, load_attempts
from pyhudi.metadata.services.metadata_archival import archive_old
from pyhudi.metadata.services.metadata_cleaning import clean
from pyhudi.metadata.services.metadata_compaction_job import MetadataCompactionJob, MetadataSlice, run_job
from pyhudi.metadata.writer.metadata_rollback import written_by
from pyhudi.storage import join_path
from pyhudi.table.compaction_record import plan_record
from pyhudi.timeline.action_metadata import encode_record
from pyhudi.timeline.heartbeat import Heartbeat, HeartbeatPolicy, heartbeat_path
from pyhudi.timeline.instant import Action, State

if TYPE_CHECKING:
    from pyhudi.metadata.writer.metadata_write_context import MetadataWriteContext
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.timeline import Timeline

COMPACTION_SUFFIX = "001"
"""Suffix of compaction instants in metadata tables of version 6."""
_MIB = 1024 * 1024
_BROKEN = (FormatError, MetadataTableError, NotFoundError)
"""Errors of a metadata table that is to be built anew."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MetadataServiceResult:
    """Result of a compaction of the metadata table.

    Attributes:
        instant: Its instant on the metadata table's timeline; empty if nothing was published.
        num_groups: File groups with a new base file.
        num_records: Records in them.
        bytes_read: Bytes of the files that were merged.
        bytes_written: Bytes of the new base files.
        millis: Milliseconds by phase: merge, publish.
        reason: Why nothing was published.
    """

    instant: str = ""
    num_groups: int = 0
    num_records: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    millis: tuple[tuple[str, int], ...] = ()
    reason: str = ""


def schedule(metadata_context: MetadataWriteContext, config: TableConfig) -> MetadataCompactionJob | None:
    """Put a compaction on the metadata table's timeline if one is due; None if not. The caller holds the table's lock.

    The number of delta commits that make one due grows with each attempt that failed
    (`pyhudi.metadata.services.compaction_attempts`). A metadata table that turns out to be broken is taken out of use;
    the next write builds it anew.
    """
    if FILES not in config.metadata_partitions:
        return None
    storage, active = metadata_context.storage, metadata_context.own_timeline(config)
    due = metadata_context.opts.get_typed(options.METADATA_COMPACT_MAX_DELTA_COMMITS)
    deltas = deltas_since_compaction(active.timeline, config.version)
    if deltas < due or active.timeline.pending().of_actions(Action.COMPACTION).last is not None:
        return None
    last = active.timeline.completed().of_actions(Action.COMMIT).last
    attempts = load_attempts(storage, "" if last is None else last.requested)
    if deltas < attempts.next_at(due):
        return None
    instant = _next_instant(metadata_context, config, active.timeline)
    if instant is None:
        return None
    try:
        slices = _slices(storage, config, active)
    except _BROKEN as failure:
        _take_out_of_use(storage, config, failure)
        return None
    attempts.begin(deltas).save(storage)
    job = MetadataCompactionJob(storage, config.version, instant, block_view(active.timeline, config.version), slices)
    if config.version >= 8:  # before, nobody else can be at work while the lock is held
        heartbeat_of(job, metadata_context.opts).refresh()  # the thread starts with the work
    _begin(active, job)
    return job


def compact_now(metadata_context: MetadataWriteContext, config: TableConfig) -> MetadataServiceResult:
    """Merge all log files into base files, whether that is due or not. The caller holds the table's lock all the time.

    Raises:
        FormatError, MetadataTableError: files are damaged or missing.
    """
    active = metadata_context.own_timeline(config)
    slices = _slices(metadata_context.storage, config, active)
    if not slices:
        return MetadataServiceResult(reason="there are no log files")
    instant = _next_instant(metadata_context, config, active.timeline)
    if instant is None or active.timeline.pending().of_actions(Action.COMPACTION).last is not None:
        return MetadataServiceResult(reason="instants are pending")
    view = block_view(active.timeline, config.version)
    job = MetadataCompactionJob(metadata_context.storage, config.version, instant, view, slices)
    _begin(active, job)
    try:
        stats, millis = merge(job)
    except BaseException:
        discard(metadata_context, config, job)
        raise
    return complete(metadata_context, config, job, stats, millis)


def _begin(active: ActiveTimeline, job: MetadataCompactionJob) -> None:
    content = encode_record(Action.COMPACTION, State.REQUESTED, *_plan(job))
    begin(active, job.instant, Action.COMPACTION, content)


def heartbeat_of(job: MetadataCompactionJob, opts: Any) -> Heartbeat:
    """The heartbeat of a compaction."""
    policy = HeartbeatPolicy.of(opts)
    interval, misses = policy.interval_ms, policy.tolerable_misses
    return Heartbeat(job.storage, job.instant, interval_ms=interval, tolerable_misses=misses, folder=HEARTBEATS)


def merge(job: MetadataCompactionJob, engine: object = None) -> tuple[list[Stat], int]:
    """Write the base files of a compaction; returns their write stats, and milliseconds. Needs no lock."""
    begun = time.perf_counter()
    stats = run_job(job, engine)
    return stats, round((time.perf_counter() - begun) * 1000)


def complete(
    metadata_context: MetadataWriteContext,
    config: TableConfig,
    job: MetadataCompactionJob,
    stats: list[Stat],
    merge_millis: int = 0,
) -> MetadataServiceResult:
    """Publish a compaction whose base files are written, then clean and archive. The caller holds the table's lock.

    Nothing is published of partitions that were dropped or built anew meanwhile, or if somebody else has dropped the
    plan, or carried it out (as Apache Hudi does with what it finds pending); then the files are deleted.
    """
    begun = time.perf_counter()
    storage = job.storage
    active = metadata_context.own_timeline(config)
    entry = active.timeline.find(job.instant, Action.COMPACTION) if FILES in config.metadata_partitions else None
    if entry is None or entry.is_completed:
        _delete(storage, stats)
        return MetadataServiceResult(reason="the plan was dropped, or carried out by somebody else")
    current = _unchanged(job, config)
    kept = [stat for stat in stats if stat["partitionPath"] in current]
    if not kept and stats:
        discard(metadata_context, config, job)
        return MetadataServiceResult(reason="the partitions were dropped or built anew meanwhile")
    _delete_others(storage, config, job, kept)
    done = metadata_context.completed_at(job.version)
    publish(active, entry, kept, job.version, done, operation="COMPACT", compacted=True)
    forget_attempts(storage)
    try:
        clean(storage, config, active, metadata_context.completion)
        opts, data = metadata_context.opts, metadata_context.data
        archive_old(storage, opts, data, metadata_context.own_timeline(config), timezone=config.timezone)
    except Exception as failure:  # after the next compaction
        _log.warning("the metadata table of %s was not cleaned or archived: %s", storage.root, failure)
    return MetadataServiceResult(
        job.instant,
        len(kept),
        sum(stat["numWrites"] for stat in kept),
        job.num_bytes,
        sum(stat["fileSizeInBytes"] for stat in kept),
        (("merge", merge_millis), ("publish", round((time.perf_counter() - begun) * 1000))),
    )


def fail(
    metadata_context: MetadataWriteContext, config: TableConfig, job: MetadataCompactionJob, failure: BaseException
) -> None:
    """Take back a compaction that failed. A metadata table that is broken is taken out of use, and the next write
    builds it anew; after other errors the next attempt waits for more delta commits. The caller holds the lock."""
    discard(metadata_context, config, job)
    if isinstance(failure, _BROKEN) and not isinstance(failure, FileSizeError):
        _take_out_of_use(job.storage, config, failure)


def discard(metadata_context: MetadataWriteContext, config: TableConfig, job: MetadataCompactionJob) -> None:
    """Delete the files and the plan of a compaction, unless it was completed. The caller holds the table's lock."""
    active = metadata_context.own_timeline(config)
    entry = active.timeline.find(job.instant, Action.COMPACTION)
    if entry is None and active.timeline.is_completed(job.instant):
        return
    _delete_others(job.storage, config, job, ())
    if entry is not None:
        for state in active.states(entry):
            active.delete(state)
    job.storage.delete(heartbeat_path(job.instant, HEARTBEATS))


def deltas_since_compaction(metadata: Timeline, version: int) -> int:
    """Return the number of delta commits that were completed since the last compaction."""
    done = metadata.completed()
    last = done.of_actions(Action.COMMIT).last
    deltas = [i for i in done if i.action == Action.DELTA_COMMIT]
    if last is None:
        return len(deltas)
    after = last.requested
    return sum((i.order_time if version >= 8 else i.requested) > after for i in deltas)


def _next_instant(metadata_context: MetadataWriteContext, config: TableConfig, timeline: Timeline) -> str | None:
    """The instant of a new compaction; None if there cannot be one now.

    In version 6, what is pending on the table may still write to the slices, so nothing may be. From version 8 on a
    log file belongs to a slice by its completion time; only a delta commit that was completed and waits for its
    instant on the table would be passed over.
    """
    pending = metadata_context.data.timeline.pending()
    if config.version < 8 and pending:
        return None
    if any(timeline.is_completed(i.requested) for i in pending):
        return None
    if config.version >= 8:
        return metadata_context.completion()
    last = timeline.completed().of_actions(Action.DELTA_COMMIT).last
    assert last is not None
    instant = f"{last.requested[:17]}{COMPACTION_SUFFIX}"
    return None if instant in timeline else instant


def _slices(storage: Storage, config: TableConfig, active: ActiveTimeline) -> tuple[MetadataSlice, ...]:
    """The slices with log files, the largest first. What the table waits for has not been completed here, so all that
    is completed counts; of a partition that is being built the base files are still to come."""
    found = [
        MetadataSlice(partition, row)
        for partition in sorted(config.metadata_partitions)
        for row in current_slices(storage, active, active.timeline, partition, config.version).to_pylist()
        if row["log_paths"]
    ]
    return tuple(sorted(found, key=lambda one: -one.num_bytes))


def _unchanged(job: MetadataCompactionJob, config: TableConfig) -> set[str]:
    """The partitions that still have all files that were merged. Files of a partition that is built anew have other
    names; the rollback of a write takes its files away."""
    found = set()
    for partition in set(job.partitions) & set(config.metadata_partitions):
        there = set(job.storage.list(join_path(METADATA_FOLDER, partition))["path"].to_pylist())
        if all(path in there for one in job.slices if one.partition == partition for path in one.paths):
            found.add(partition)
    return found


def _delete_others(storage: Storage, config: TableConfig, job: MetadataCompactionJob, kept: Iterable[Stat]) -> None:
    """Delete base files of the compaction that are not ``kept``: of tasks that were tried again, or are not published.
    Log files of version 6 bear the instant of their slice, and stay."""
    named = {stat["path"] for stat in kept}
    paths = [
        join_path(partition, name)
        for partition, names in written_by(storage, job.instant, config).items()
        for name in names
        if name[0] != "."
    ]
    storage.delete_many(join_path(METADATA_FOLDER, path) for path in paths if path not in named)


def _delete(storage: Storage, stats: Collection[Stat]) -> None:
    storage.delete_many(join_path(METADATA_FOLDER, stat["path"]) for stat in stats)


def _take_out_of_use(storage: Storage, config: TableConfig, failure: BaseException) -> None:
    _log.warning("the metadata table of %s is taken out of use, it is broken: %s", storage.root, failure)
    detach_metadata_table(storage, config)


def _plan(job: MetadataCompactionJob) -> tuple[dict[str, Any], int]:
    """The plan as the timeline has it, and the version of the table."""
    operations = [
        {
            "partition": one.partition,
            "file_id": one.row["file_id"],
            "base_instant": one.row["base_instant"],
            "base_file": None if one.row["base_path"] is None else _name(one.row["base_path"]),
            "log_files": [_name(path) for path in one.row["log_paths"]],
            "log_bytes": sum(one.row["log_sizes"]),
            "read_mb": one.num_bytes // _MIB,
            "write_mb": (one.row["base_size"] or 0) // _MIB,
        }
        for one in job.slices
    ]
    return plan_record(operations, job.version), job.version


def _name(path: str) -> str:
    return path.rpartition("/")[2]
