"""Deletion of instants of the metadata table, and of files that no instant records."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.file_names import base_file_name, file_names_of, parse_names
from pyhudi.metadata.file_groups.delta_commit_writer import INIT_TOKEN, compaction_tokens
from pyhudi.metadata.metadata_layout import FILE_PARTITIONS, HEARTBEATS, HUDI_HEARTBEATS, names_by_partition
from pyhudi.storage import Storage, join_path
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.heartbeat import HeartbeatPolicy, heartbeat_path
from pyhudi.timeline.instant import Action, Instant

_log = logging.getLogger(__name__)


def delete_instant(
    active: ActiveTimeline, config: TableConfig, instant: str, kept: Container[str] = frozenset()
) -> None:
    """Delete the log files (from version 8 on) and the delta commit of an instant that no reader uses. ``kept``: paths
    of files, relative to the metadata table, that the next attempt has written already."""
    delta_commit = active.timeline.find(instant, Action.DELTA_COMMIT)
    if config.version >= 8:
        paths = file_names_by_partition(active.storage, config, instant)
        written = (join_path(p, name) for p, names in paths.items() for name in names)
        active.storage.delete_many(join_path(METADATA_FOLDER, path) for path in written if path not in kept)
    if delta_commit is None:
        return
    for state in active.states(delta_commit):  # The completed file first.
        active.delete(state)


def delete_unrecorded(
    storage: Storage, config: TableConfig, instant: str, recorded: Container[str], listed: Mapping[str, pa.Array]
) -> None:
    """Delete the files in indexes that tasks of an earlier attempt at an instant, or given-up attempts at tasks, have
    written: they would become valid with the delta commit. Must be called when tasks cannot write any more, before the
    delta commit is completed.

    Names do not identify the instant before version 8; there a rollback has made earlier files invalid.

    Args:
        storage: Storage of the table.
        config: Configuration of the table.
        instant: The instant.
        recorded: Paths of the files that the delta commit records, relative to the metadata table.
        listed: Names of the files in indexes that were listed since tasks cannot write any more; others are listed now.
    """
    indexes = [partition for partition in config.metadata_partitions_kept if partition not in FILE_PARTITIONS]
    if config.version < 8 or not indexes:
        return
    extra = [
        join_path(METADATA_FOLDER, partition, name)
        for partition, names in file_names_by_partition(storage, config, instant, indexes, listed).items()
        for name in names
        # Files without records, which create file groups, are not recorded.
        if join_path(partition, name) not in recorded and not name.endswith(f"_{INIT_TOKEN}")
    ]
    if extra:
        _log.warning("deleting %d files of an earlier attempt at %s, such as %s", len(extra), instant, extra[0])
        storage.delete_many(extra)


def drop_unfinished(
    active: ActiveTimeline, config: TableConfig, pending: Iterable[str], heartbeats: HeartbeatPolicy
) -> None:
    """Delete leftovers of killed writers: delta commits that no instant of the table will continue, and services.

    ``pending`` are the pending instants of the table. A compaction with a current heartbeat is kept, because it runs
    without the lock of the table.
    """
    alive = set(pending)
    for instant in active.timeline.pending().of_actions(Action.COMPACTION, Action.LOG_COMPACTION, Action.CLEAN):
        if instant.action != Action.COMPACTION or _is_dead(active.storage, instant, heartbeats):
            _drop_service(active, config, instant)
    for instant in active.timeline.pending().of_actions(Action.DELTA_COMMIT):
        if instant.requested not in alive:
            delete_instant(active, config, instant.requested)


def _is_dead(storage: Storage, compaction: Instant, heartbeats: HeartbeatPolicy) -> bool:
    return all(heartbeats.is_dead(storage, compaction.requested, folder) for folder in (HEARTBEATS, HUDI_HEARTBEATS))


def _drop_service(active: ActiveTimeline, config: TableConfig, instant: Instant) -> None:
    storage = active.storage
    if instant.action != Action.CLEAN:  # Their files have been deleted, or will be found again.
        paths = file_names_by_partition(storage, config, instant.requested)
        written = ((p, name) for p, names in paths.items() for name in names)
        storage.delete_many(
            join_path(METADATA_FOLDER, p, name) for p, name in written if config.version >= 8 or name[0] != "."
        )
    if instant.action == Action.COMPACTION and config.version >= 8:
        _delete_incomplete_files(storage, config, instant.requested)
    for state in active.states(instant):
        active.delete(state)
    if instant.action == Action.COMPACTION:
        for folder in (HEARTBEATS, HUDI_HEARTBEATS):
            storage.delete(heartbeat_path(instant.requested, folder))


def file_names_by_partition(
    storage: Storage,
    config: TableConfig,
    instant: str,
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


def _delete_incomplete_files(storage: Storage, config: TableConfig, instant: str) -> None:
    """Delete incomplete base files of a compaction that was killed."""
    for partition in config.metadata_partitions:
        names = file_names_of(storage.list(join_path(METADATA_FOLDER, partition))["path"])
        ids = pc.unique(parse_names(names)["file_id"]).drop_null().to_pylist()
        incomplete = [
            base_file_name(i, token, instant, "hfile") for i in ids for token in compaction_tokens(i, instant)
        ]
        storage.delete_many(join_path(METADATA_FOLDER, partition, name) for name in incomplete)
