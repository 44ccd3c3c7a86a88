"""Rollback of a write's changes to the metadata table.

From version 8 on the write's log files and its delta commit are deleted, under a rollback instant of the same time as
that of the table. Before, command blocks roll back the blocks, and a delta commit records the log files that the
rollback of the table has written. See docs/format/metadata.md, section 1.7.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.file_names import base_file_name, file_names_of, parse_names
from pyhudi.format.log.block_framing import rollback_frame
from pyhudi.metadata.file_groups.delta_commit_writer import (
    INIT_TOKEN,
    GroupFiles,
    MetadataCommit,
    Stat,
    acknowledged_partitions,
    begin_delta_commit,
    compaction_tokens,
    complete_delta_commit,
    new_token,
)
from pyhudi.metadata.file_groups.log_file_groups import group_slices, write_logs
from pyhudi.metadata.metadata_layout import (
    FILE_PARTITIONS,
    FILES,
    HEARTBEATS,
    metadata_timeline,
    names_by_partition,
)
from pyhudi.metadata.reader.initial_instants import is_initial_instant
from pyhudi.metadata.records.record_factory import file_records
from pyhudi.storage import join_path
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.timeline.heartbeat import HeartbeatPolicy, heartbeat_path
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.operation_types import BULK_INSERT_PREPPED, LOG_COMPACT
from pyhudi.timeline.plans.rollback_plan import RollbackMetadata, RollbackPlan, RollbackRequest, RolledBackPartition

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.timeline import Timeline

_HEARTBEATS = HeartbeatPolicy()
_MERGING = (LOG_COMPACT, BULK_INSERT_PREPPED)
"""Operations of delta commits whose files include the changes of earlier ones: log compactions, and builds."""
_log = logging.getLogger(__name__)

ROLLBACK_SUFFIX = "006"
"""Suffix of rollback instants in metadata tables of version 6."""


@dataclass(frozen=True, slots=True)
class TableRollback:
    """Rollback of a write to a table, as far as the metadata table has to follow it.

    Attributes:
        target: Instant to roll back.
        instant: The rollback instant of the table, which is inflight.
        log_files: Log files that the rollback has written or kept, with sizes, by partition (version 6 only).
        retried: ``target`` may be done again under the same instant.
    """

    target: str
    instant: str
    log_files: Mapping[str, Mapping[str, int]]
    retried: bool = False


def apply_rollback(
    storage: Storage, config: TableConfig, rollback: TableRollback, completion: Callable[[], str]
) -> None:
    """Roll back the changes of a write to the metadata table. Must be called before the write is removed from the
    table's timeline, and can be repeated after a crash.

    Args:
        storage: Storage of the table.
        config: Configuration of the table.
        rollback: Rollback of the table.
        completion: Returns a new completion time (used from version 8 on).
    """
    if FILES not in config.metadata_partitions:
        return
    active = metadata_timeline(storage, config.version)
    if config.version < 8:
        _append_rollback_blocks(storage, config, active, rollback)
    else:
        _delete_files(storage, config, active, rollback, completion)


def _delete_files(
    storage: Storage,
    config: TableConfig,
    active: ActiveTimeline,
    rollback: TableRollback,
    completion: Callable[[], str],
) -> None:
    """Roll back from version 8 on: the files of the write are deleted."""
    target, instant = rollback.target, rollback.instant
    delta_commit = active.timeline.find(target, Action.DELTA_COMMIT)
    begun = active.timeline.find(instant, Action.ROLLBACK)
    if delta_commit is None and (begun is None or begun.is_completed):
        # Tasks write log files of indexes before the delta commit begins. A plan is run again under the same instant,
        # which would make them valid.
        _delete(storage, active, target, config, delta_commit)
        return
    started = time.monotonic()
    paths = file_names_by_partition(storage, target, config)
    plan = RollbackPlan(
        target,
        Action.DELTA_COMMIT,
        tuple(RollbackRequest(p, files=(_uri(storage, p, name),)) for p, names in paths.items() for name in names),
    )
    entry = begin_delta_commit(active, instant, Action.ROLLBACK, plan.encode())
    _delete(storage, active, target, config, delta_commit)
    partitions = {
        partition: RolledBackPartition(deleted=tuple(_uri(storage, partition, name) for name in names))
        for partition, names in paths.items()
    }
    done = RollbackMetadata(instant, int((time.monotonic() - started) * 1000), target, Action.DELTA_COMMIT, partitions)
    active.complete(entry, done.encode(), completion())


def is_merged(storage: Storage, config: TableConfig, target: Instant) -> bool:
    """Return True if other files of the metadata table include the changes of a completed write, so that they cannot be
    rolled back: its files or logs were compacted since, or a partition was built since, also by an indexing action."""
    if FILES not in config.metadata_partitions:
        return True
    active = metadata_timeline(storage, config.version)
    timeline = active.timeline
    delta_commit = timeline.find(target.requested, Action.DELTA_COMMIT)
    if delta_commit is None or not delta_commit.is_completed:
        return True
    compactions = timeline.of_actions(Action.COMMIT, Action.COMPACTION, Action.LOG_COMPACTION)
    if any(i.requested > target.requested for i in compactions):
        return True
    deltas = timeline.completed().of_actions(Action.DELTA_COMMIT)
    if config.version < 8:
        return _is_merged_by_delta_commits(active, deltas, delta_commit)
    later = (i for i in deltas if i.order_time > delta_commit.order_time or i.requested > target.requested)
    return any(is_initial_instant(i) or active.commit_metadata(i).operation in _MERGING for i in later)


def _is_merged_by_delta_commits(active: ActiveTimeline, deltas: Timeline, delta_commit: Instant) -> bool:
    """Return True if a delta commit of version 6, whose timeline has no completion times, may include the changes of
    another one: a log compaction, or the build of a partition."""
    later = deltas.after(delta_commit.requested)
    if any(is_initial_instant(i) or active.commit_metadata(i).operation == LOG_COMPACT for i in later):
        return True
    # An index that was planned before the write may have been built after it.
    written = active.commit_metadata(delta_commit)
    known = {*written.stats["partitionPath"].to_pylist(), *acknowledged_partitions(written)}
    others = (active.commit_metadata(i) for i in deltas if not is_initial_instant(i))
    builds = (one.stats["partitionPath"].to_pylist() for one in others if one.operation == BULK_INSERT_PREPPED)
    return any(not known.issuperset(built) for built in builds)


def delete_instant(
    storage: Storage,
    active: ActiveTimeline,
    instant: str,
    config: TableConfig,
    kept: Container[str] = frozenset(),
) -> None:
    """Delete the log files (from version 8 on) and the delta commit of an instant that no reader uses. ``kept``: paths
    of files, relative to the metadata table, that the next attempt has written already."""
    _delete(storage, active, instant, config, active.timeline.find(instant, Action.DELTA_COMMIT), kept)


def _delete(
    storage: Storage,
    active: ActiveTimeline,
    instant: str,
    config: TableConfig,
    delta_commit: Instant | None,
    kept: Container[str] = frozenset(),
) -> None:
    if config.version >= 8:
        paths = file_names_by_partition(storage, instant, config)
        written = (join_path(p, name) for p, names in paths.items() for name in names)
        storage.delete_many(join_path(METADATA_FOLDER, path) for path in written if path not in kept)
    if delta_commit is None:
        return
    for state in active.states(delta_commit):  # The completed file first.
        active.delete(state)


def delete_unrecorded(
    storage: Storage, instant: str, config: TableConfig, recorded: Container[str], listed: Mapping[str, pa.Array]
) -> None:
    """Delete the files in indexes that tasks of an earlier attempt at an instant, or given-up attempts at tasks, have
    written: they would become valid with the delta commit. Must be called when tasks cannot write any more, before the
    delta commit is completed.

    Names do not identify the instant before version 8; there a rollback has made earlier files invalid.

    Args:
        storage: Storage of the table.
        instant: The instant.
        config: Configuration of the table.
        recorded: Paths of the files that the delta commit records, relative to the metadata table.
        listed: Names of the files in indexes that were listed since tasks cannot write any more; others are listed now.
    """
    indexes = [partition for partition in config.metadata_partitions_kept if partition not in FILE_PARTITIONS]
    if config.version < 8 or not indexes:
        return
    extra = [
        join_path(METADATA_FOLDER, partition, name)
        for partition, names in file_names_by_partition(storage, instant, config, indexes, listed).items()
        for name in names
        # Files without records, which create file groups, are not recorded.
        if join_path(partition, name) not in recorded and not name.endswith(f"_{INIT_TOKEN}")
    ]
    if extra:
        _log.warning("deleting %d files of an earlier attempt at %s, such as %s", len(extra), instant, extra[0])
        storage.delete_many(extra)


def file_names_by_partition(
    storage: Storage,
    instant: str,
    config: TableConfig,
    partitions: Iterable[str] | None = None,
    listed: Mapping[str, pa.Array] = MappingProxyType({}),
) -> dict[str, list[str]]:
    """Return names of the files of an instant, by partition of the metadata table (None: all partitions). ``listed``
    are the names of the files in partitions that need not be listed."""
    selected = sorted(config.metadata_partitions_kept if partitions is None else partitions)
    names = {**names_by_partition(storage, [p for p in selected if p not in listed]), **listed}
    written = {
        p: names[p].filter(pc.fill_null(pc.equal(parse_names(names[p])["instant"], instant), False)) for p in selected
    }
    return {partition: written_names.to_pylist() for partition, written_names in written.items() if len(written_names)}


def _uri(storage: Storage, partition: str, name: str) -> str:
    return storage.uri(join_path(METADATA_FOLDER, partition, name))


def _append_rollback_blocks(
    storage: Storage, config: TableConfig, active: ActiveTimeline, rollback: TableRollback
) -> None:
    """Roll back in version 6: command blocks, then a delta commit of the rollback itself."""
    delta_commit = active.timeline.find(rollback.target, Action.DELTA_COMMIT)
    rollback_instant = f"{rollback.instant}{ROLLBACK_SUFFIX}"
    begun = active.timeline.find(rollback_instant, Action.ROLLBACK)
    partitions = config.metadata_partitions_kept
    if delta_commit is None and begun is None:
        # Tasks write log files of indexes before the delta commit begins.
        partitions = tuple(p for p in partitions if rollback.retried and p not in FILE_PARTITIONS)
    if partitions and (delta_commit is not None or begun is None or not begun.is_completed):
        _write_command_blocks(storage, config, active, rollback.target, rollback_instant, partitions)
        if delta_commit is not None:
            for state in active.states(delta_commit):
                active.delete(state)
    done = active.timeline.find(rollback.instant, Action.DELTA_COMMIT)
    if done is not None and done.is_completed:
        return
    entry = begin_delta_commit(active, rollback.instant)
    stats = _record_log_files(storage, config, active, rollback)
    complete_delta_commit(active, entry, MetadataCommit(stats), config.version, None)


def _record_log_files(
    storage: Storage, config: TableConfig, active: ActiveTimeline, rollback: TableRollback
) -> list[Stat]:
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
    return write_logs(GroupFiles(storage, FILES, rollback.instant, config.version), active.timeline, records)


def _write_command_blocks(
    storage: Storage,
    config: TableConfig,
    active: ActiveTimeline,
    target: str,
    rollback: str,
    partitions: Iterable[str],
) -> Instant:
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
    entry = begin_delta_commit(active, rollback, Action.ROLLBACK, plan.encode())
    written: dict[str, dict[str, int]] = {}
    for partition, group in groups:
        block = rollback_frame(rollback, target)
        name = group.log_name(rollback, new_token(), config.version)
        data = b"".join(bytes(part) for part in block.parts)
        storage.write(join_path(METADATA_FOLDER, partition, name), data)
        written.setdefault(partition, {})[_uri(storage, partition, name)] = len(data)
    partitions = {p: RolledBackPartition(command_files=files) for p, files in written.items()}
    done = RollbackMetadata(rollback, 0, target, Action.DELTA_COMMIT, partitions)
    return active.complete(entry, done.encode())


def drop_unfinished(
    storage: Storage,
    active: ActiveTimeline,
    pending: Iterable[str],
    config: TableConfig,
    heartbeats: HeartbeatPolicy = _HEARTBEATS,
) -> None:
    """Delete leftovers of killed writers: delta commits that no instant of the table will continue, and services.

    ``pending`` are the pending instants of the table. A compaction with a current heartbeat is kept, because it runs
    without the lock of the table.
    """
    alive = set(pending)
    for instant in active.timeline.pending().of_actions(Action.COMPACTION, Action.LOG_COMPACTION, Action.CLEAN):
        if instant.action == Action.COMPACTION and not heartbeats.is_dead(storage, instant.requested, HEARTBEATS):
            continue
        if instant.action != Action.CLEAN:  # Their files have been deleted, or will be found again.
            paths = file_names_by_partition(storage, instant.requested, config)
            written = ((p, name) for p, names in paths.items() for name in names)
            made = [join_path(METADATA_FOLDER, p, name) for p, name in written if config.version >= 8 or name[0] != "."]
            storage.delete_many(made)
        if instant.action == Action.COMPACTION and config.version >= 8:
            _delete_begun(storage, instant.requested, config)
        for state in active.states(instant):
            active.delete(state)
        if instant.action == Action.COMPACTION:
            storage.delete(heartbeat_path(instant.requested, HEARTBEATS))
    for instant in active.timeline.pending().of_actions(Action.DELTA_COMMIT):
        if instant.requested not in alive:
            delete_instant(storage, active, instant.requested, config)


def _delete_begun(storage: Storage, instant: str, config: TableConfig) -> None:
    """Delete incomplete base files of a compaction that was killed."""
    for partition in config.metadata_partitions:
        names = file_names_of(storage.list(join_path(METADATA_FOLDER, partition))["path"])
        ids = pc.unique(parse_names(names)["file_id"]).drop_null().to_pylist()
        begun = [base_file_name(i, token, instant, "hfile") for i in ids for token in compaction_tokens(i, instant)]
        storage.delete_many(join_path(METADATA_FOLDER, partition, name) for name in begun)
